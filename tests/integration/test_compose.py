"""docker-compose.yml and the Dockerfiles, read as data: names, pins, users, health, and what the host can reach."""

import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

from journeyman.settings import ServiceSettings, load
from journeyman.testing import compose

ROOT = Path(__file__).resolve().parents[2]
OURS = ("scheduler", "rollout", "sandbox", "verifier", "trainer", "registry")
SECRETS = {"S3_SECRET_KEY": "objects-secret", "POSTGRES_PASSWORD": "ledger-secret"}


@pytest.fixture(scope="module")
def cluster() -> compose.ComposeFile:
    return compose.read(ROOT / "docker-compose.yml", SECRETS)


def settings_class(service: str) -> type[ServiceSettings]:
    """The one subclass of ServiceSettings that a service's settings module defines."""
    module = importlib.import_module(f"{service}_service.settings")
    found = [
        member
        for member in vars(module).values()
        if isinstance(member, type) and issubclass(member, ServiceSettings) and member.__module__ == module.__name__
    ]
    assert len(found) == 1
    return found[0]


@pytest.mark.parametrize("service", OURS)
def test_every_variable_is_a_setting_and_every_required_setting_is_given(
    cluster: compose.ComposeFile, service: str
) -> None:
    settings = settings_class(service)
    prefix = settings.model_config.get("env_prefix", "")
    known = {f"{prefix}{name}".upper(): field for name, field in settings.model_fields.items()}
    given = {name for name in cluster.services[service].environment if name.startswith(f"{service.upper()}_")}
    assert given == set(cluster.services[service].environment) - {"OMP_NUM_THREADS"}
    assert given <= set(known)
    assert {name for name, field in known.items() if field.is_required()} <= given


@pytest.mark.parametrize("service", OURS)
def test_values_pass_the_services_own_validation(cluster: compose.ComposeFile, service: str) -> None:
    environment = {name: str(value) for name, value in cluster.services[service].environment.items()}
    settings = load(settings_class(service), environment)
    assert settings.listen == "0.0.0.0:50051"
    assert settings.bus == "kafka://kafka:9092"
    assert settings.objects == "s3://journeyman:objects-secret@objects:9000/journeyman?secure=false"


def test_every_part_of_the_cluster_is_there(cluster: compose.ComposeFile) -> None:
    assert set(cluster.services) == {*OURS, "kafka", "postgres", "minio", "seaweedfs", "volume-owner"}


def test_images_are_pinned_and_replaceable(cluster: compose.ComposeFile) -> None:
    for name, raw in compose.read_raw(ROOT / "docker-compose.yml").services.items():
        assert re.fullmatch(r"\$\{[A-Z0-9_]+_IMAGE:-[^}]+\}", raw.image), name
        tag = cluster.services[name].image.rpartition(":")[2]
        assert re.search(r"\d+\.\d+|\d{4}-\d{2}-\d{2}", tag), f"{name}: {tag} is no version"


def test_nobody_runs_as_root_but_the_volume_owner(cluster: compose.ComposeFile) -> None:
    for name, service in cluster.services.items():
        if name != "volume-owner":
            assert service.user not in (None, "root", "0", "0:0"), name
        assert "no-new-privileges:true" in service.security_opt, name


def test_long_running_services_have_health_checks_and_volumes_are_declared(cluster: compose.ComposeFile) -> None:
    for name, service in cluster.services.items():
        assert (service.healthcheck is not None) == (service.restart == "unless-stopped"), name
        assert all(volume.split(":")[0] in cluster.volumes for volume in service.volumes), name
    for name in OURS:
        healthcheck = cluster.services[name].healthcheck
        assert healthcheck is not None
        assert healthcheck.test == ["CMD", "python", "-m", "journeyman.rpc.probe", "127.0.0.1:50051"]


def test_one_network_and_only_loopback_reaches_it(cluster: compose.ComposeFile) -> None:
    assert list(cluster.networks) == ["journeyman"]
    for name, service in cluster.services.items():
        assert list(service.networks) == ["journeyman"] or service.network_mode == "none", name
        assert all(port.startswith("127.0.0.1:") for port in service.ports), name
    assert {name for name, service in cluster.services.items() if service.ports} == {"scheduler", "trainer", "registry"}


def test_services_wait_for_health_and_never_for_each_other_in_a_circle(cluster: compose.ComposeFile) -> None:
    for service in cluster.services.values():
        assert all(dependency.condition != "service_started" for dependency in service.depends_on.values())
    order = compose.start_order(cluster.services)
    assert order.index("kafka") < order.index("scheduler") < order.index("rollout")


def test_both_stores_answer_to_one_name(cluster: compose.ComposeFile) -> None:
    for store in ("minio", "seaweedfs"):
        service = cluster.services[store]
        assert service.profiles == [store]
        assert service.networks == {"journeyman": {"aliases": ["objects"]}}


def test_the_file_refuses_to_start_without_passwords() -> None:
    with pytest.raises(compose.MissingVariable, match="deploy/make-env"):
        compose.read(ROOT / "docker-compose.yml", {})


def test_make_env_writes_fresh_passwords_once(tmp_path: Path) -> None:
    script = tmp_path / "deploy" / "make-env"
    script.parent.mkdir()
    script.write_bytes((ROOT / "deploy" / "make-env").read_bytes())
    subprocess.run(["sh", str(script), "seaweedfs"], check=True, capture_output=True)
    first = (tmp_path / ".env").read_text()
    variables = dict(line.split("=", 1) for line in first.splitlines())
    assert variables["COMPOSE_PROFILES"] == "seaweedfs"
    assert len(variables["S3_SECRET_KEY"]) == len(variables["POSTGRES_PASSWORD"]) == 48
    assert (tmp_path / ".env").stat().st_mode & 0o077 == 0
    subprocess.run(["sh", str(script)], check=True, capture_output=True)
    assert (tmp_path / ".env").read_text() == first
    assert subprocess.run(["sh", str(script), "ceph"], capture_output=True).returncode == 2


@pytest.mark.parametrize("service", OURS)
def test_a_dockerfile_installs_its_own_service_only_and_drops_root(cluster: compose.ComposeFile, service: str) -> None:
    build = cluster.services[service].build
    assert build is not None
    text = (ROOT / build.dockerfile).read_text()
    assert text.index("USER 10001:10001") < text.index(f'ENTRYPOINT ["python", "-m", "{service}_service"]')
    assert set(re.findall(r"\b(\w+)_service\b", text)) == {service}
    extras = set(re.findall(r"\[([\w,]+)\]", text).pop(0).split(","))
    assert extras & set(OURS) == {service}
    assert f"ARG PYTHON_IMAGE={build.args['PYTHON_IMAGE']}" in text


@pytest.mark.slow
@pytest.mark.parametrize("service", OURS)
def test_what_a_dockerfile_copies_is_enough_to_run_the_service(service: str, tmp_path: Path) -> None:
    """Does what the file's COPY and pip lines do, without the third-party packages, which come from this environment."""
    context = tmp_path / "context"
    context.mkdir()
    for line in (ROOT / f"{service}_service" / "Dockerfile").read_text().splitlines():
        if line.startswith("COPY ") and "--from" not in line:
            *sources, target = line.split()[1:]
            (context / target).parent.mkdir(parents=True, exist_ok=True)
            subprocess.run(["cp", "-r", *(str(ROOT / source) for source in sources), str(context / target)], check=True)
    site = tmp_path / "site"
    pip = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-deps",
        "--no-build-isolation",
        "--target",
        str(site),
    ]
    subprocess.run([*pip, "."], cwd=context, check=True, timeout=100)
    names = [name for name in OURS if (site / f"{name}_service").exists()]
    assert names == [service]
    code = (
        f"import sys; sys.path[:] = [{str(site)!r}] + [entry for entry in sys.path if {str(ROOT)!r} != entry];"
        f"import importlib; module = importlib.import_module('{service}_service.__main__'); print(module.__file__)"
    )
    done = subprocess.run([sys.executable, "-I", "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(str(site))
