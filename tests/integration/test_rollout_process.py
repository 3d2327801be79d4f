"""The rollout service as a process: it plays, dies without a trace and stops politely."""

import asyncio
import os
import signal
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from jm.events.v1 import events_pb2 as ev
from jm.rollout.v1 import rollout_pb2
from jm.rollout.v1.rollout_pb2_grpc import RolloutServiceStub
from jm.scheduler.v1.scheduler_pb2_grpc import add_SchedulerServiceServicer_to_server

from journeyman.artefacts import MadeHow, write_policy
from journeyman.bus.connect import open_bus
from journeyman.bus.envelope import event_id, parse, publish
from journeyman.chat.tokenizer import ChatTokenizer
from journeyman.convert import policy_ref_to_proto
from journeyman.model.config import ModelConfig
from journeyman.model.qwen3 import Qwen3, initialise
from journeyman.objects.connect import open_objects
from journeyman.packs.load import load_pack
from journeyman.records import LatestPolicy, PolicyVersion, Split
from journeyman.rpc.client import channel
from journeyman.rpc.server import RpcServer
from journeyman.testing.scheduler import FakeScheduler
from journeyman.trajectories import decode_group

LATEST = LatestPolicy(run_id="run")
SMALL = ModelConfig(vocab_size=300, hidden_size=32, intermediate_size=64, num_hidden_layers=1, head_dim=8)


class Site:
    """The folder that the process works in, and what surrounds it."""

    def __init__(self, folder: Path, scheduler: FakeScheduler, scheduler_port: int) -> None:
        self.scheduler = scheduler
        self.bus = open_bus(f"sqlite:{folder / 'bus.db'}")
        self.objects = open_objects(f"file:{folder / 'objects'}")
        self._env = {
            **os.environ,
            "ROLLOUT_BUS": f"sqlite:{folder / 'bus.db'}",
            "ROLLOUT_OBJECTS": f"file:{folder / 'objects'}",
            "ROLLOUT_LISTEN": "127.0.0.1:0",
            "ROLLOUT_SCHEDULER": f"127.0.0.1:{scheduler_port}",
            "ROLLOUT_SLOTS": "16",
            "ROLLOUT_MAX_TOKENS": "224",
            "OMP_NUM_THREADS": "1",
        }

    async def start(self, **settings: str) -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "rollout_service",
            env={**self._env, **settings},
            stderr=asyncio.subprocess.PIPE,
        )

    async def publish(self, step: int) -> None:
        """Weights from a seed, and the fact."""
        ref = await write_policy(
            self.objects,
            run_id="run",
            version=PolicyVersion(incarnation=0, step=step),
            model=initialise(Qwen3(SMALL), step),
            tokenizer=ChatTokenizer.train(["hello"], 300),
            made_how=MadeHow(stage="rl"),
        )
        fact = ev.PolicyPublished(policy=policy_ref_to_proto(ref), made_by="rl")
        await publish(self.bus, "run", fact, event_id=event_id("policy", step), run_id="run")

    def add_groups(self, first: int, count: int, **options: int) -> None:
        tasks = load_pack("math.tool").tasks(Split.TRAIN, 1, first)
        for number in range(first, first + count):
            self.scheduler.add(next(tasks), LATEST, group_id=f"g{number}", **options)

    async def recorded(self, count: int, timeout_s: float = 60.0) -> dict[str, ev.TrajectoryRecorded]:
        """Facts by group, once so many groups have one."""
        consumer = await self.bus.consumer(f"test-{time.monotonic_ns()}", ["trajectory.recorded"])
        facts: dict[str, ev.TrajectoryRecorded] = {}
        end_s = time.monotonic() + timeout_s
        while len(facts) < count:
            assert time.monotonic() < end_s, f"only {sorted(facts)} in time"
            for record in await consumer.poll(100, 0.1):
                fact = parse(record.value).trajectory_recorded
                facts[fact.group_id] = fact
        await consumer.close()
        return facts


@asynccontextmanager
async def site_in(folder: Path) -> AsyncIterator[Site]:
    scheduler = FakeScheduler()
    server = RpcServer("127.0.0.1:0")
    server.add(add_SchedulerServiceServicer_to_server, scheduler, "jm.scheduler.v1.SchedulerService")
    await server.start()
    site = Site(folder, scheduler, server.port)
    try:
        yield site
    finally:
        await site.bus.close()
        await server.stop(0)


async def stopped(process: asyncio.subprocess.Process) -> str:
    """Asks it to stop; its log."""
    process.send_signal(signal.SIGTERM)
    _, log = await asyncio.wait_for(process.communicate(), 30)
    assert process.returncode == 0, log.decode()
    return log.decode()


@pytest.mark.parametrize("engine", ["torch", "scripted"])
async def test_it_plays_with_published_weights_and_stops(tmp_path: Path, engine: str) -> None:
    async with site_in(tmp_path) as site:
        site.add_groups(0, 3)
        await site.publish(0)
        process = await site.start(ROLLOUT_ENGINE=engine)
        facts = await site.recorded(3)
        await site.publish(1)
        site.add_groups(3, 2)
        facts = await site.recorded(5)
        log = await stopped(process)
        assert '"background task failed"' not in log
    for fact in facts.values():
        assert all(member.completed for member in fact.members), fact
        assert len(decode_group(await site.objects.get(fact.object.uri))) == 4


async def test_killed_in_play_it_leaves_nothing_and_another_attempt_is_recorded(tmp_path: Path) -> None:
    async with site_in(tmp_path) as site:
        await site.publish(0)
        site.add_groups(0, 1)
        process = await site.start(ROLLOUT_ENGINE="scripted", ROLLOUT_SCRIPTED_TURN_S="30")
        end_s = time.monotonic() + 30
        while not any(request.max_rollouts < 16 for request in site.scheduler.asked):  # it plays
            assert time.monotonic() < end_s
            await asyncio.sleep(0.02)
        process.kill()
        await process.wait()
        assert await site.objects.list("trajectories") == []
        site.add_groups(0, 1, attempt=2)
        process = await site.start(ROLLOUT_ENGINE="scripted")
        facts = await site.recorded(1)
        assert {member.attempt for member in facts["g0"].members} == {2}
        await stopped(process)


async def test_it_tells_how_it_is_doing(tmp_path: Path, unused_tcp_port_factory) -> None:
    port = unused_tcp_port_factory()
    async with site_in(tmp_path) as site:
        await site.publish(0)
        site.add_groups(0, 2)
        process = await site.start(ROLLOUT_ENGINE="scripted", ROLLOUT_LISTEN=f"127.0.0.1:{port}")
        await site.recorded(2)
        to_worker = channel(f"127.0.0.1:{port}")
        status = await RolloutServiceStub(to_worker).GetStatus(rollout_pb2.GetStatusRequest())
        assert status.is_routable
        assert status.policy.run_id == "run"
        assert status.num_slots == 16
        assert status.sampled_tokens > 0
        assert {use.cause for use in status.slot_use} >= {"no_lease", "starting"}
        await to_worker.close(None)
        await stopped(process)


async def test_bad_settings_are_one_line_and_exit_2(tmp_path: Path) -> None:
    async with site_in(tmp_path) as site:
        for name, value, words in (
            ("ROLLOUT_SLOT", "1", "did you mean ROLLOUT_SLOTS"),
            ("ROLLOUT_SLOTS", "no", "ROLLOUT_SLOTS"),
        ):
            process = await site.start(**{name: value})
            _, log = await process.communicate()
            assert process.returncode == 2
            assert words in log.decode().strip().splitlines()[-1]
            assert "Traceback" not in log.decode()
