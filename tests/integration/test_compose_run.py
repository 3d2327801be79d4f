"""The services of docker-compose.yml as local processes, with the file's commands and environment, on real servers: a whole small run.

The broker is noida-db, the store SeaweedFS, the database PostgreSQL; none of them is what the file names, but each speaks its protocol.
"""

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest
import sqlalchemy

from examples.cluster_run import Sizes, connect_and_train
from journeyman.objects.connect import open_objects
from journeyman.testing import compose
from journeyman.testing.local_cluster import LocalCluster
from journeyman.testing.local_postgres import find_binaries, local_postgres
from journeyman.testing.local_servers import find, free_ports, kafka_broker, s3_store
from journeyman.testing.missing import missing

pytestmark = [pytest.mark.kafka, pytest.mark.s3, pytest.mark.postgres, pytest.mark.slow, pytest.mark.timeout(600)]

ROOT = Path(__file__).resolve().parents[2]
OURS = ("scheduler", "rollout", "sandbox", "verifier", "trainer", "registry")
SECRETS = {"S3_SECRET_KEY": "objects-secret", "POSTGRES_PASSWORD": "ledger-secret"}
SIZES = Sizes(sft_steps=150, sft_episodes=1500, steps=3, groups=4, group_size=6, deadline_s=240)


def program(name: str) -> str:
    found = find(name)
    if found is None:
        missing(f"{name} is not installed")
    return str(found)


@contextmanager
def database() -> Iterator[str]:
    """host:port of a PostgreSQL server with the databases that the file's config makes."""
    binaries = find_binaries()
    if binaries is None:
        missing("PostgreSQL is not installed")
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
    (folder / "logs").mkdir()
    with (
        kafka_broker(program("noida-db")) as kafka,
        s3_store(program("weed"), "journeyman", SECRETS["S3_SECRET_KEY"]) as objects,
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
