"""The scheduler as a process, over real gRPC and a SQLite bus; worker, verifier and trainer are scripted here.

The scheduler is killed with SIGKILL in the middle and started again: every admitted group must still end, once, with a reason.
"""

import asyncio
import os
import random
import signal
import socket
import sys
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import pytest
from google.protobuf.duration_pb2 import Duration
from jm.common.v1 import common_pb2 as common
from jm.events.v1 import events_pb2 as ev
from jm.scheduler.v1 import scheduler_pb2 as pb
from jm.scheduler.v1.scheduler_pb2_grpc import SchedulerServiceStub

from journeyman.bus.connect import open_bus
from journeyman.bus.consumer import ConsumerLoop, Handler
from journeyman.bus.envelope import event_id, publish
from journeyman.bus.port import Bus, Record
from journeyman.errors import JourneymanError
from journeyman.rpc.client import channel

DEADLINE_S = 60.0
DOMAINS = ("math.tool", "longcontext.retrieval")


class Service:
    """The scheduler's process."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.address = f"127.0.0.1:{probe.getsockname()[1]}"
        self.bus_url = f"sqlite:{folder / 'bus.db'}"
        self.process: asyncio.subprocess.Process | None = None

    async def start(self, **changes: str) -> asyncio.subprocess.Process:
        environment = {
            **os.environ,
            "SCHEDULER_LISTEN": self.address,
            "SCHEDULER_BUS": self.bus_url,
            "SCHEDULER_LEDGER": f"sqlite:///{self.folder / 'ledger.db'}",
            "SCHEDULER_LOG_FILE": str(self.folder / "scheduler.jsonl"),
            **changes,
        }
        self.process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "scheduler_service", env=environment, stderr=asyncio.subprocess.PIPE
        )
        return self.process

    async def kill(self) -> None:
        assert self.process is not None
        self.process.send_signal(signal.SIGKILL)
        await self.process.wait()


@pytest.fixture
async def service(tmp_path: Path) -> AsyncIterator[Service]:
    made = Service(tmp_path)
    await made.start()
    yield made
    if made.process is not None and made.process.returncode is None:
        await made.kill()


class World:
    """Everything around the scheduler, playing by the rules and repeating itself as the bus may."""

    def __init__(self, service: Service) -> None:
        self.channel = channel(service.address, timeout_s=5.0)
        self.stub = SchedulerServiceStub(self.channel)
        self.bus: Bus = open_bus(service.bus_url)
        self.stop = asyncio.Event()
        self.rng = random.Random(0)
        self.facts: Counter[tuple[str, str]] = Counter()
        self.closed: list[ev.GroupClosed] = []
        self.step = 0
        self.lost: set[tuple[str, int, int]] = set()

    async def patiently(self) -> None:
        """Waits until the scheduler answers."""
        async with asyncio.timeout(DEADLINE_S):
            while True:
                try:
                    await self.stub.GetStatus(pb.GetStatusRequest())
                    return
                except JourneymanError:
                    await asyncio.sleep(0.05)

    async def work(self) -> None:
        """A worker that plays at once, and now and then fails, repeats itself or forgets a lease."""
        while not self.stop.is_set():
            try:
                answer = await self.stub.Lease(pb.LeaseRequest(worker_id="w", max_rollouts=24))
            except JourneymanError:
                await asyncio.sleep(0.05)
                continue
            for lease in answer.leases:
                await self.play(lease)

    async def play(self, lease: pb.GroupLease) -> None:
        kept = []
        for member in lease.rollouts:
            if member.attempt == 1 and self.rng.random() < 0.05:
                self.lost.add((lease.group_id, member.index, member.attempt))
            else:
                kept.append(member)
        if not kept:
            return
        stored = common.ObjectRef(uri=f"trajectories/{lease.group_id}/{kept[0].index}", sha256="00", num_bytes=1)
        members = [self.member(member) for member in kept]
        fact = ev.TrajectoryRecorded(group_id=lease.group_id, object=stored, members=members, worker_id="w")
        await self.tell(lease.group_id, fact, lease.run_id, kept[0].attempt, kept[0].index)

    def member(self, member: pb.LeasedRollout) -> ev.RecordedMember:
        fails = member.attempt == 1 and self.rng.random() < 0.05
        return ev.RecordedMember(
            index=member.index,
            attempt=member.attempt,
            completed=not fails,
            attribution=common.ATTRIBUTION_SANDBOX if fails else common.ATTRIBUTION_POLICY,
            num_sampled_tokens=3,
            num_turns=1,
        )

    async def tell(
        self,
        group_id: str,
        fact: ev.TrajectoryRecorded | ev.GroupTaken | ev.GroupCommitted | ev.TrajectoryVerified,
        run_id: str,
        *parts: object,
    ) -> None:
        """Publishes once or twice."""
        identity = event_id(fact.DESCRIPTOR.name, group_id, *parts)
        for _ in range(1 + (self.rng.random() < 0.2)):
            await publish(self.bus, group_id, fact, event_id=identity, run_id=run_id)

    async def on_recorded(self, envelope: ev.Envelope, record: Record) -> None:
        """The verifier: the even members pass."""
        fact = envelope.trajectory_recorded
        verdicts = [
            ev.Verdict(
                index=member.index,
                attempt=member.attempt,
                status=ev.VERDICT_STATUS_GRADED,
                score=float(member.index % 2 == 0),
                passed=member.index % 2 == 0,
                attribution=common.ATTRIBUTION_POLICY,
                num_turns=1,
                num_sampled_tokens=3,
                object=fact.object,
            )
            for member in fact.members
            if member.completed
        ]
        if verdicts:
            judged = ev.TrajectoryVerified(group_id=fact.group_id, verdicts=verdicts, verifier_ref="v")
            await self.tell(fact.group_id, judged, envelope.run_id, envelope.event_id)

    async def on_ready(self, envelope: ev.Envelope, record: Record) -> None:
        """The trainer: takes and commits at once."""
        group_id = envelope.group_ready.group_id
        self.note("ready", group_id, envelope)
        assert len(envelope.group_ready.members) >= 2
        self.step += 1
        version = common.PolicyVersion(incarnation=1, step=self.step)
        await self.tell(group_id, ev.GroupTaken(group_id=group_id, into=version), envelope.run_id)
        await self.tell(group_id, ev.GroupCommitted(group_id=group_id, version=version), envelope.run_id)

    async def on_closed(self, envelope: ev.Envelope, record: Record) -> None:
        self.note("closed", envelope.group_closed.group_id, envelope)
        self.closed.append(envelope.group_closed)

    async def on_dropped(self, envelope: ev.Envelope, record: Record) -> None:
        self.note("dropped", envelope.group_dropped.group_id, envelope)

    def note(self, kind: str, group_id: str, envelope: ev.Envelope) -> None:
        assert envelope.event_id == event_id(f"group.{kind}", group_id)
        self.facts[kind, group_id] += 1

    def loops(self) -> list[ConsumerLoop]:
        verifier: Mapping[str, Handler] = {"trajectory.recorded": self.on_recorded}
        trainer: Mapping[str, Handler] = {"group.ready": self.on_ready}
        registry: Mapping[str, Handler] = {"group.closed": self.on_closed, "group.dropped": self.on_dropped}
        return [
            ConsumerLoop(self.bus, "verifier", verifier),
            ConsumerLoop(self.bus, "trainer", trainer),
            ConsumerLoop(self.bus, "registry", registry),
        ]

    async def run(self, run_id: str) -> pb.Run:
        return (await self.stub.GetRun(pb.GetRunRequest(run_id=run_id))).run

    async def until(self, run_id: str, **wanted: int) -> pb.Run:
        """Waits until the run has at least so many groups of each kind, or is finished where none is named."""
        async with asyncio.timeout(DEADLINE_S):
            while True:
                run = await self.run(run_id)
                if wanted and all(getattr(run.groups, kind) >= count for kind, count in wanted.items()):
                    return run
                if not wanted and run.state == pb.RUN_STATE_FINISHED:
                    return run
                await asyncio.sleep(0.05)


@pytest.fixture
async def client(service: Service) -> AsyncIterator[World]:
    """A world in which nobody plays."""
    made = World(service)
    await made.patiently()
    yield made
    made.stop.set()
    await made.channel.close(None)
    await made.bus.close()


@pytest.fixture
async def world(client: World) -> AsyncIterator[World]:
    """A world at work."""
    loops = [asyncio.ensure_future(loop.run(client.stop)) for loop in client.loops()]
    tasks = [asyncio.ensure_future(client.work()), *loops]
    yield client
    client.stop.set()
    await asyncio.gather(*tasks)


def spec(run_id: str, kind: pb.RunKind, num_groups: int = 0) -> pb.RunSpec:
    trains = kind == pb.RUN_KIND_TRAIN
    return pb.RunSpec(
        run_id=run_id,
        kind=kind,
        domains=[pb.DomainShare(domain=domain, num_groups=num_groups) for domain in DOMAINS],
        split=common.SPLIT_TRAIN if trains else common.SPLIT_HELDOUT,
        policy=common.PolicySelector(latest_of_run=run_id),
        group_size=8 if trains else 2,
        admission_slots=6,
        min_graded=2,
        retry_budget=5,
        lease=Duration(seconds=1),
        seed=1,
        max_off_policy_steps=1,
        temperature=1.0,
    )


async def test_runs_come_to_their_end_through_kills_of_the_scheduler(world: World, service: Service) -> None:
    await world.stub.CreateRun(pb.CreateRunRequest(spec=spec("train", pb.RUN_KIND_TRAIN)))
    await world.stub.CreateRun(pb.CreateRunRequest(spec=spec("eval", pb.RUN_KIND_EVAL, num_groups=15)))
    for committed in (10, 25):
        await world.until("train", committed=committed)
        await service.kill()
        await service.start()
        await world.patiently()
    evaluated = await world.until("eval")
    await world.stub.CloseRun(pb.CloseRunRequest(run_id="train"))
    trained = await world.until("train")
    for run in (evaluated, trained):
        groups = run.groups
        assert groups.admitted == groups.committed + groups.closed + groups.dropped
        assert (groups.in_flight, groups.ready, groups.taken) == (0, 0, 0)
        assert (run.lost_groups, run.infra_failures_in_advantages) == (0, 0)
    assert (evaluated.groups.admitted, evaluated.groups.closed) == (30, 30)
    assert {domain.num_graded + domain.num_excluded for domain in evaluated.domains} == {30}
    assert trained.groups.committed > 25
    if world.lost:
        assert trained.requeued_rollouts + evaluated.requeued_rollouts > 0
    await the_ledger_agrees(world, trained)


async def the_ledger_agrees(world: World, run: pb.Run) -> None:
    """Every group is listed once, in a terminal state, and those that were lost were played again under a higher attempt."""
    rows: list[pb.GroupRow] = []
    token = ""
    while True:
        page = await world.stub.ListGroups(pb.ListGroupsRequest(run_id="train", page_size=10, page_token=token))
        rows += page.groups
        token = page.next_page_token
        if not token:
            break
    assert len({row.group_id for row in rows}) == len(rows) == run.groups.admitted
    assert {row.state for row in rows} <= {"COMMITTED", "DROPPED"}
    for row in rows:
        for rollout in row.rollouts:
            assert (row.group_id, rollout.index, rollout.attempt) not in world.lost or rollout.state == "EXCLUDED"


async def test_cancelling_drops_everything_in_flight(client: World) -> None:
    await client.stub.CreateRun(pb.CreateRunRequest(spec=spec("train", pb.RUN_KIND_TRAIN)))
    lease = await client.stub.Lease(pb.LeaseRequest(worker_id="x", max_rollouts=16, is_idle=True))
    assert [len(item.rollouts) for item in lease.leases] == [8, 8]
    closed = await client.stub.CloseRun(pb.CloseRunRequest(run_id="train", cancel=True))
    assert closed.run.state == pb.RUN_STATE_FINISHED
    assert closed.run.groups.dropped == closed.run.groups.admitted
    assert {drop.reason for drop in closed.run.drops} == {ev.DROP_REASON_CANCELLED}
    held = [pb.RolloutAttempt(group_id=item.group_id, index=0, attempt=1) for item in lease.leases]
    answer = await client.stub.Renew(pb.RenewRequest(worker_id="x", attempts=held))
    assert list(answer.lost) == held


async def test_tasks_of_clients_come_by_call_and_by_bus(client: World) -> None:
    await client.stub.CreateRun(pb.CreateRunRequest(spec=spec("source", pb.RUN_KIND_COLLECT, num_groups=2)))
    drawn = await client.stub.Lease(pb.LeaseRequest(worker_id="x", max_rollouts=16))
    tasks = [lease.task for lease in drawn.leases]
    mine = spec("mine", pb.RUN_KIND_COLLECT)
    del mine.domains[:]
    await client.stub.CreateRun(pb.CreateRunRequest(spec=mine))
    for expected in ((1, 0), (0, 1)):
        answer = await client.stub.SubmitTasks(pb.SubmitTasksRequest(run_id="mine", tasks=tasks[:1]))
        assert (answer.num_accepted, answer.num_duplicates) == expected
    fact = ev.TaskSubmitted(task=tasks[1])
    await publish(client.bus, "mine", fact, event_id=event_id("t", tasks[1].task_id), run_id="mine")
    got: list[str] = []
    async with asyncio.timeout(DEADLINE_S):
        while len(got) < 2:
            leased = await client.stub.Lease(pb.LeaseRequest(worker_id="y", max_rollouts=16))
            got += [lease.task.task_id for lease in leased.leases]
    assert got == [task.task_id for task in tasks[:2]]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"SCHEDULER_LEDGER": "sqlite:////nowhere/at/all.db"}, "SCHEDULER_LEDGER=sqlite:////nowhere/at/all.db"),
        ({"SCHEDULER_LEGDER": "x"}, "did you mean SCHEDULER_LEDGER?"),
        ({"SCHEDULER_TICK_S": "0"}, "SCHEDULER_TICK_S='0'"),
        ({"SCHEDULER_BUS": "carrier-pigeon:"}, "carrier-pigeon:"),
    ],
)
async def test_bad_settings_end_it_with_one_line(changes: dict[str, str], words: str, tmp_path: Path) -> None:
    process = await Service(tmp_path).start(**changes)
    _, errors = await asyncio.wait_for(process.communicate(), DEADLINE_S)
    assert process.returncode == 2
    assert words in errors.decode().splitlines()[-1]
