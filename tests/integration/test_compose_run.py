"""The services of docker-compose.yml as local processes, with the file's commands and environment, on real servers: a whole small run.

The broker is noida-db, the store SeaweedFS, the database PostgreSQL; none of them is what the file names, but each speaks its protocol.
"""

import asyncio
import json
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
import sqlalchemy

from examples.cluster_run import Sizes, connect_and_train
from journeyman.objects.connect import open_objects
from journeyman.testing import compose
from journeyman.testing.local_cluster import LocalCluster
from journeyman.testing.local_postgres import find_binaries, local_postgres

pytestmark = [pytest.mark.kafka, pytest.mark.s3, pytest.mark.postgres, pytest.mark.slow, pytest.mark.timeout(600)]

ROOT = Path(__file__).resolve().parents[2]
OURS = ("scheduler", "rollout", "sandbox", "verifier", "trainer", "registry")
SECRETS = {"S3_SECRET_KEY": "objects-secret", "POSTGRES_PASSWORD": "ledger-secret"}
SIZES = Sizes(sft_steps=150, sft_episodes=1500, steps=3, groups=4, group_size=6, deadline_s=240)
STARTS_WITHIN_S = 60.0


def missing(what: str) -> None:
    """A laptop may lack a server; CI has them all."""
    if os.environ.get("CI"):
        pytest.fail(f"{what} is missing: CI needs it")
    pytest.skip(f"{what} is missing")


def free_ports(count: int) -> list[int]:
    with ExitStack() as held:
        probes = [held.enter_context(socket.socket()) for _ in range(count)]
        for probe in probes:
            probe.bind(("127.0.0.1", 0))
        return [probe.getsockname()[1] for probe in probes]


def program(name: str) -> str:
    found = shutil.which(name, path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}")
    if found is None:
        missing(name)
    return str(found)


@contextmanager
def running(command: list[str], folder: Path, is_ready: Callable[[], bool]) -> Iterator[None]:
    """A server as a process; killed at the end, since nothing it holds is wanted any more."""
    with (
        (folder / "server.log").open("wb") as log,
        subprocess.Popen(command, cwd=folder, stdout=log, stderr=log) as server,
    ):
        try:
            deadline = time.monotonic() + STARTS_WITHIN_S
            while not is_ready():
                assert server.poll() is None, (folder / "server.log").read_text()[-2000:]
                assert time.monotonic() < deadline, f"{command[0]} is not ready"
                time.sleep(0.1)
            yield
        finally:
            server.kill()


@contextmanager
def broker(folder: Path) -> Iterator[str]:
    """host:port of a Kafka-protocol broker."""
    (port,) = free_ports(1)
    command = [
        program("noida-db"),
        "start",
        "--data-dir",
        str(folder / "data"),
        "--only",
        "kafka",
        "--kafka-port",
        str(port),
    ]
    with running(command, folder, lambda: accepts(port)):
        yield f"127.0.0.1:{port}"


@contextmanager
def store(folder: Path, access_key: str, secret_key: str) -> Iterator[str]:
    """host:port of an S3 store that knows one pair of keys."""
    master, volume, filer, s3 = free_ports(4)
    keys = {"accessKey": access_key, "secretKey": secret_key}
    identity = {"name": "journeyman", "credentials": [keys], "actions": ["Admin", "Read", "List", "Tagging", "Write"]}
    (folder / "s3.json").write_text(json.dumps({"identities": [identity]}))
    command = [
        program("weed"), "server", f"-dir={folder}", "-ip=127.0.0.1", "-ip.bind=127.0.0.1", f"-master.port={master}",
        f"-volume.port={volume}", "-volume.max=0", "-filer", f"-filer.port={filer}", "-s3", f"-s3.port={s3}",
        f"-s3.config={folder / 's3.json'}", "-master.volumeSizeLimitMB=128", "-master.telemetry=false",
    ]  # fmt: skip
    with running(command, folder, lambda: answers(f"http://127.0.0.1:{s3}/healthz")):
        yield f"127.0.0.1:{s3}"


def accepts(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=2) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


@contextmanager
def database() -> Iterator[str]:
    """host:port of a PostgreSQL server with the databases that the file's config makes."""
    binaries = find_binaries()
    if binaries is None:
        missing("PostgreSQL")
        return
    with local_postgres(binaries) as url:
        engine = sqlalchemy.create_engine(url, isolation_level="AUTOCOMMIT")
        with engine.connect() as connection:
            for name in ("scheduler", "registry"):
                connection.execute(sqlalchemy.text(f"CREATE DATABASE {name}"))
        engine.dispose()
        yield f"{engine.url.host}:{engine.url.port}"


@contextmanager
def composed(folder: Path) -> Iterator[tuple[LocalCluster, Mapping[str, str]]]:
    """All six services on real servers, and where each name of the file is to be found."""
    file = compose.read(ROOT / "docker-compose.yml", SECRETS)
    for name in ("broker", "store", "logs"):
        (folder / name).mkdir()
    with (
        broker(folder / "broker") as kafka,
        store(folder / "store", "journeyman", SECRETS["S3_SECRET_KEY"]) as objects,
        database() as postgres,
    ):
        addresses = {"kafka:9092": kafka, "objects:9000": objects, "postgres:5432": postgres}
        for name, port in zip(OURS, free_ports(len(OURS)), strict=True):
            addresses[f"{name}:50051"] = f"127.0.0.1:{port}"
        with LocalCluster(file, ROOT, OURS, addresses, folder / "logs") as cluster:
            yield cluster, addresses


def test_the_composed_services_complete_a_run_on_real_servers(tmp_path: Path) -> None:
    with composed(tmp_path) as (cluster, addresses):
        domains = ["code.repair", "math.tool"]
        run = asyncio.run(
            connect_and_train(addresses["scheduler:50051"], addresses["trainer:50051"], "composed", domains, SIZES)
        )
        url = f"s3://journeyman:{SECRETS['S3_SECRET_KEY']}@{addresses['objects:9000']}/journeyman?secure=false"
        policies = asyncio.run(stored(url, "policies/composed/"))
        trajectories = asyncio.run(stored(url, "trajectories/composed/"))
        codes = cluster.stop()
    assert run.groups.committed >= SIZES.steps
    assert run.groups.admitted == run.groups.committed + run.groups.dropped
    assert (run.lost_groups, run.infra_failures_in_advantages) == (0, 0)
    assert any(key.endswith("model.safetensors") for key in policies)
    assert trajectories
    assert codes == dict.fromkeys(OURS, 0)


async def stored(url: str, prefix: str) -> list[str]:
    """Keys in the store."""
    return list(await open_objects(url).list(prefix))
