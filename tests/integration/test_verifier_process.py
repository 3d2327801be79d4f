"""The verifier as a process of its own: judges what is on the bus, answers over gRPC, stops when told, refuses bad settings."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from jm.events.v1 import events_pb2 as events
from jm.verifier.v1 import verifier_pb2 as verifier
from jm.verifier.v1.verifier_pb2_grpc import VerifierServiceStub

import journeyman
from journeyman.bus.connect import open_bus
from journeyman.bus.envelope import parse, publish
from journeyman.convert import object_ref_to_proto
from journeyman.episodes.demonstration import demonstrate
from journeyman.objects.connect import open_objects
from journeyman.packs.load import load_pack
from journeyman.records import Split
from journeyman.rpc.client import channel
from journeyman.testing.played import trajectory_of
from journeyman.trajectories import encode_group, object_key

ROOT = Path(journeyman.__file__).parent.parent


@dataclass
class Running:
    """A verifier process."""

    process: subprocess.Popen[bytes]
    target: str
    bus: str
    objects: str


def start(folder: Path, **more: str) -> Running:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        target = f"127.0.0.1:{probe.getsockname()[1]}"
    bus, objects = f"sqlite:{folder / 'bus.db'}", f"file:{folder / 'objects'}"
    env = {
        **{name: value for name, value in os.environ.items() if not name.startswith("VERIFIER_")},
        "VERIFIER_LISTEN": target,
        "VERIFIER_BUS": bus,
        "VERIFIER_OBJECTS": objects,
        "VERIFIER_LOG_FILE": str(folder / "verifier.jsonl"),
        **more,
    }
    process = subprocess.Popen([sys.executable, "-m", "verifier_service"], env=env, cwd=ROOT, stderr=subprocess.PIPE)
    return Running(process=process, target=target, bus=bus, objects=objects)


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Running]:
    started = start(tmp_path)
    yield started
    started.process.kill()
    started.process.communicate()


async def test_it_judges_answers_and_stops(running: Running) -> None:
    pack = load_pack("math.tool")
    task = next(pack.tasks(Split.TRAIN, 1, 0))
    members = [trajectory_of(demonstrate(pack, task, seed), index=seed) for seed in range(4)]
    data = encode_group(members)
    ref = object_ref_to_proto(await open_objects(running.objects).put(object_key(members, data), data))
    bus = open_bus(running.bus)
    consumer = await bus.consumer("test", ["trajectory.verified"])
    recorded = events.TrajectoryRecorded(group_id="group", object=ref)
    await publish(bus, "group", recorded, event_id="e", run_id="run")
    found = await consumer.poll(1, 60.0)
    verified = parse(found[0].value).trajectory_verified
    assert [verdict.status for verdict in verified.verdicts] == [events.VERDICT_STATUS_GRADED] * 4

    async with channel(running.target) as to_verifier:
        stub = VerifierServiceStub(to_verifier)
        reply = await stub.VerifyGroup(verifier.VerifyGroupRequest(group_id="group", object=ref))
        assert reply.verified == verified
        domains = await stub.ListDomains(verifier.ListDomainsRequest())
        assert pack.ref in [domain.ref for domain in domains.domains]
    await consumer.close()
    await bus.close()
    running.process.send_signal(signal.SIGTERM)
    assert running.process.wait(30) == 0


def test_an_unknown_setting_is_refused_with_the_right_name(tmp_path: Path) -> None:
    running = start(tmp_path, VERIFIER_GRADER="2")
    _, stderr = running.process.communicate(timeout=30)
    assert running.process.returncode == 2
    assert stderr.decode().strip().endswith("did you mean VERIFIER_GRADERS?")
