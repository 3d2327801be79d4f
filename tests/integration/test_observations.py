"""Demonstrations are made in process; the sandbox shows the very same bytes. A sample of each domain with a box is played again there."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

import journeyman
from journeyman.boxes.client import SandboxBoxes
from journeyman.episodes.demonstration import Demonstration, demonstrations
from journeyman.episodes.episode import Episode
from journeyman.packs.load import load_pack
from journeyman.rpc.client import channel

ROOT = Path(journeyman.__file__).parent.parent
START_S = 30.0


def is_serving(target: str) -> bool:
    with grpc.insecure_channel(target) as plain:
        try:
            reply = health_pb2_grpc.HealthStub(plain).Check(health_pb2.HealthCheckRequest(), timeout=1)
        except grpc.RpcError:
            return False
        return reply.status == health_pb2.HealthCheckResponse.SERVING


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """host:port of a sandbox service; skipped where this machine offers no isolation."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        target = f"127.0.0.1:{probe.getsockname()[1]}"
    folder = tmp_path_factory.mktemp("sandbox")
    env = {
        **{name: value for name, value in os.environ.items() if not name.startswith("SANDBOX_")},
        "SANDBOX_LISTEN": target,
        "SANDBOX_BUS": "memory:",
        "SANDBOX_OBJECTS": f"file:{folder}",
        "SANDBOX_LOG_FILE": str(folder / "sandbox.jsonl"),
    }
    process = subprocess.Popen([sys.executable, "-m", "sandbox_service"], env=env, cwd=ROOT, stderr=subprocess.PIPE)
    deadline_s = time.monotonic() + START_S
    while not is_serving(target):
        if process.poll() == 2:
            pytest.skip(f"no sandbox here: {process.communicate()[1].decode().strip()}")
        assert process.poll() is None, process.communicate()[1].decode()
        assert time.monotonic() < deadline_s, "the sandbox does not start"
    yield target
    process.terminate()
    assert process.wait(30) == 0


@pytest.mark.parametrize("name", ["code.repair", "terminal.shell"])
async def test_the_sandbox_shows_the_same_bytes(sandbox: str, name: str) -> None:
    pack = load_pack(name)
    sample = [made for level in pack.spec.levels for made in islice(demonstrations(pack, level, 5), 15)]
    async with channel(sandbox) as to_sandbox:
        boxes = SandboxBoxes(to_sandbox)
        for number, made in enumerate(sample):
            files = {file.path: file.content for file in made.task.files}
            box = await boxes.open(files, key=f"{name}/{number}", lease_s=60.0)
            try:
                await assert_same(made, Episode(pack, made.task, box))
            finally:
                await boxes.destroy([box])
        await boxes.close()


async def assert_same(made: Demonstration, episode: Episode) -> None:
    """Says the same again and compares everything that came back."""
    for spoken in made.turns:
        turn = await episode.advance(spoken.text)
        assert (turn.observation, turn.call) == (spoken.observation, spoken.call)
    assert (turn.ending, turn.attribution) == (made.ending, made.attribution)
    assert episode.response == made.response
    assert await episode.final_files() == made.final_files
