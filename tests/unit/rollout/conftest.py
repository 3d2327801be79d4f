"""A worker around the scripted engine, a fake scheduler behind real gRPC, the memory bus, boxes in process."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest
from jm.events.v1 import events_pb2 as ev
from jm.scheduler.v1.scheduler_pb2_grpc import SchedulerServiceStub, add_SchedulerServiceServicer_to_server

from journeyman.boxes.inprocess import InProcessBox
from journeyman.boxes.port import Box, BoxFailure
from journeyman.bus.envelope import parse
from journeyman.bus.memory import MemoryBus
from journeyman.chat.tokenizer import ChatTokenizer
from journeyman.objects.folder import FolderObjects
from journeyman.packs.load import load_pack
from journeyman.records import PolicyRef, PolicyVersion, Split, Task, TaskFile, Trajectory
from journeyman.rpc.client import channel
from journeyman.rpc.server import RpcServer
from journeyman.testing.scheduler import FakeScheduler
from journeyman.topics import ALERT_RAISED, TRAJECTORY_RECORDED
from journeyman.trajectories import decode_group
from rollout_service.adapters.recorder import ObjectRecorder
from rollout_service.adapters.scheduler_leases import SchedulerLeases
from rollout_service.app import Worker, WorkerOptions
from rollout_service.consumer import PolicyBoard
from rollout_service.core.slot_time import SlotTime
from rollout_service.engines.scripted import Player, ScriptedEngine, demonstrator
from rollout_service.serving import Serving

TOKENIZER = ChatTokenizer.train(["hello world"], 300)


class FolderBoxes:
    """Boxes that are folders; is_broken makes them fail."""

    isolation = "in process"

    def __init__(self, root: Path) -> None:
        self._root = root
        self.num_opened = 0
        self.num_destroyed = 0
        self.num_calls = 0
        self.is_broken = False

    async def open_group(self, files: Sequence[TaskFile], count: int, *, key: str) -> Sequence[Box]:
        self.num_calls += 1
        if self.is_broken:
            raise BoxFailure("no box to be had")
        boxes = []
        for _ in range(count):
            folder = self._root / str(self.num_opened)
            folder.mkdir(parents=True)
            self.num_opened += 1
            box = InProcessBox(folder)
            await box.write_files({file.path: file.content for file in files})
            boxes.append(box)
        return boxes

    async def destroy(self, boxes: Sequence[Box]) -> None:
        self.num_destroyed += len(boxes)


class Stage:
    """Everything around one worker."""

    def __init__(self, folder: Path, bus: MemoryBus, scheduler: FakeScheduler) -> None:
        self.objects = FolderObjects(folder / "objects")
        self.boxes = FolderBoxes(folder / "boxes")
        self.bus, self.scheduler = bus, scheduler
        self.board = PolicyBoard()
        self.slot_time = SlotTime(64, time.monotonic())
        self.tokenizer = TOKENIZER
        self.engine: ScriptedEngine
        self.worker: Worker
        self.serving: Serving

    async def publish(self, step: int, run_id: str = "run") -> PolicyRef:
        """A policy that the scripted engine can load."""
        version = PolicyVersion(incarnation=1, step=step)
        ref = PolicyRef(run_id=run_id, version=version, uri=f"policies/{run_id}/{version}", manifest_sha256="0")
        await self.objects.put(f"{ref.uri}/tokenizer.json", TOKENIZER.files(max_tokens=256)["tokenizer.json"])
        self.board.put(ref)
        return ref

    async def facts(self, topic: str) -> list[ev.Envelope]:
        """Everything published on a topic."""
        consumer = await self.bus.consumer(f"reader-{time.monotonic_ns()}", [topic])
        records = await consumer.poll(1000, 0.05)
        await consumer.close()
        return [parse(record.value) for record in records]

    async def recorded(self, count: int = 1) -> list[ev.TrajectoryRecorded]:
        """The first facts about recorded groups, once there are so many."""
        end_s = time.monotonic() + 20
        while len(facts := await self.facts(TRAJECTORY_RECORDED.name)) < count:
            assert time.monotonic() < end_s, "not recorded in time"
            await asyncio.sleep(0.02)
        return [fact.trajectory_recorded for fact in facts]

    async def alerts(self) -> list[ev.AlertRaised]:
        return [fact.alert_raised for fact in await self.facts(ALERT_RAISED.name)]

    async def trajectories(self, fact: ev.TrajectoryRecorded) -> list[Trajectory]:
        """What the fact's object holds."""
        return decode_group(await self.objects.get(fact.object.uri))


async def until(condition: Callable[[], bool], timeout_s: float = 20.0) -> None:
    """Polls."""
    end_s = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < end_s, "did not happen in time"
        await asyncio.sleep(0.01)


def a_task(domain: str = "math.tool", number: int = 0) -> Task:
    tasks = load_pack(domain).tasks(Split.TRAIN, 1, 5)
    return [next(tasks) for _ in range(number + 1)][-1]


@asynccontextmanager
async def staged(
    folder: Path,
    *,
    players: Callable[[Task, int], Player] = demonstrator,
    turn_s: float = 0.002,
    lease_s: float = 30.0,
    member_wall_s: float = 30.0,
    drain_grace_s: float = 5.0,
) -> AsyncIterator[Stage]:
    """A worker at work."""
    async with AsyncExitStack() as stack:
        stage = Stage(folder, MemoryBus(), FakeScheduler(lease_s=lease_s))
        server = RpcServer("127.0.0.1:0")
        server.add(add_SchedulerServiceServicer_to_server, stage.scheduler, "jm.scheduler.v1.SchedulerService")
        await server.start()
        stack.push_async_callback(server.stop, 0)
        to_scheduler = channel(f"127.0.0.1:{server.port}")
        stack.push_async_callback(to_scheduler.close, None)
        stage.engine = engine = ScriptedEngine(stage.objects, max_tokens=256, turn_s=turn_s, players=players)
        recorder = ObjectRecorder(stage.objects, stage.bus, "worker")
        stage.serving = Serving(engine, stage.board, recorder, stage.slot_time)
        stage.worker = Worker(
            leases=SchedulerLeases(SchedulerServiceStub(to_scheduler), "worker"),
            engine=engine,
            serving=stage.serving,
            boxes=stage.boxes,
            recorder=recorder,
            slot_time=stage.slot_time,
            options=WorkerOptions(member_wall_s=member_wall_s, drain_grace_s=drain_grace_s),
        )
        stop = asyncio.Event()
        tasks = [
            asyncio.create_task(work(stop)) for work in (stage.worker.work, stage.worker.renew, stage.serving.follow)
        ]
        try:
            yield stage
        finally:
            await stage.worker.drain()
            stop.set()
            await asyncio.gather(*tasks)


@pytest.fixture
def stage_of() -> Callable[..., object]:
    return staged


@pytest.fixture
def task_of() -> Callable[..., Task]:
    return a_task


@pytest.fixture
def eventually() -> Callable[..., object]:
    return until
