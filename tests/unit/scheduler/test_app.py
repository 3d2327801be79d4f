"""The scheduler's use cases on a real SQLite ledger: waiting leases, callers that go away, ledgers that fail, broken promises that show."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path

import pytest
from sqlalchemy import Engine, text

from journeyman.bus.port import Outgoing
from journeyman.errors import ErrorCode, JourneymanError
from journeyman.records import Attribution, LatestPolicy, ObjectRef, Split, Verdict, VerdictStatus
from journeyman.testing.scripted_tasks import ScriptedTasks
from scheduler_service.adapters.ledger import SqlLedger
from scheduler_service.adapters.sql_engine import WRITES, open_engine
from scheduler_service.app import Scheduler
from scheduler_service.core.group_state import JudgedMember, MemberRecord
from scheduler_service.core.leasing import Ask
from scheduler_service.core.playing import AttemptName, LeasedGroup
from scheduler_service.core.results import Recorded, Verified
from scheduler_service.core.run import DomainShare, RunKind, RunSpec
from scheduler_service.core.working_set import Batch
from scheduler_service.facts import to_outgoing
from scheduler_service.views import IdleCause, Nothing

SOURCE = ScriptedTasks({"math.tool": (1, 2)})
STORED = ObjectRef(uri="trajectories/x", sha256="00", num_bytes=3)
ASK = Ask(worker_id="w", max_rollouts=99, loaded=None, is_idle=False)


def spec(run_id: str = "r", slots: int = 2) -> RunSpec:
    return RunSpec(
        run_id=run_id,
        kind=RunKind.TRAIN,
        domains=(DomainShare(domain="math.tool", levels=(), num_groups=0),),
        split=Split.TRAIN,
        policy=LatestPolicy(run_id=run_id),
        group_size=2,
        admission_slots=slots,
        min_graded=2,
        retry_budget=1,
        lease_s=10.0,
        seed=1,
        max_off_policy_steps=1,
        temperature=1.0,
    )


class Clock:
    """Time that a test moves."""

    def __init__(self) -> None:
        self.now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


class FrailLedger(SqlLedger):
    """A ledger that can be held up, and whose answer can get lost after the change was stored."""

    def __init__(self, engine: Engine) -> None:
        super().__init__(engine)
        self.gate = asyncio.Event()
        self.gate.set()
        self.is_storing = asyncio.Event()
        self.loses_answer = False

    async def store(self, batch: Batch, facts: Sequence[Outgoing], slot_seconds: Mapping[str, float]) -> None:
        self.is_storing.set()
        await self.gate.wait()
        await super().store(batch, facts, slot_seconds)
        if self.loses_answer:
            self.loses_answer = False
            raise JourneymanError(ErrorCode.UNAVAILABLE, "connection lost")


@pytest.fixture
def ledger_url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'ledger.db'}"


@pytest.fixture
async def ledger(ledger_url: str) -> AsyncIterator[FrailLedger]:
    opened = FrailLedger(await open_engine(ledger_url))
    yield opened
    await opened.close()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def app(ledger: FrailLedger, clock: Clock) -> Scheduler:
    made = Scheduler(ledger, SOURCE, to_outgoing, clock)
    await made.load()
    return made


async def leased(app: Scheduler, ask: Ask = ASK) -> list[LeasedGroup]:
    answer = await app.lease(ask, {}, 0.0)
    return [] if isinstance(answer, Nothing) else answer


def results(item: LeasedGroup, *, passes: Sequence[bool]) -> list[Recorded | Verified]:
    group_id = item.group.group_id
    members, judged = [], []
    for index, passed in enumerate(passes):
        attempt = item.group.rollouts[index].attempt
        members.append(MemberRecord(index=index, attempt=attempt, completed=True, attribution=Attribution.POLICY))
        verdict = Verdict(
            index=index,
            attempt=attempt,
            status=VerdictStatus.GRADED,
            score=float(passed),
            passed=passed,
            partial=0.0,
            attribution=Attribution.POLICY,
            tier="rule",
            reason="",
            tiers=(),
            num_turns=1,
            num_sampled_tokens=3,
        )
        judged.append(JudgedMember(verdict=verdict, object=STORED))
    return [
        Recorded(group_id=group_id, members=tuple(members), object=STORED),
        Verified(group_id=group_id, members=tuple(judged)),
    ]


async def test_a_lease_waits_until_there_is_something(app: Scheduler) -> None:
    waiting = asyncio.ensure_future(app.lease(ASK, {}, 30.0))
    await asyncio.sleep(0)
    await app.create_run(spec())
    answer = await asyncio.wait_for(waiting, 10)
    assert not isinstance(answer, Nothing)
    assert len(answer) == 2


async def test_nothing_comes_with_its_cause(app: Scheduler) -> None:
    assert await app.lease(ASK, {}, 0.0) == Nothing(cause=IdleCause.NO_RUN)
    await app.create_run(spec())
    await leased(app)
    assert await app.lease(ASK, {}, 0.0) == Nothing(cause=IdleCause.SLOTS_FULL)
    await app.close_run("r", cancels=False)
    assert await app.lease(ASK, {}, 0.0) == Nothing(cause=IdleCause.ALL_LEASED)


async def test_draining_answers_waiting_leases(app: Scheduler) -> None:
    waiting = asyncio.ensure_future(app.lease(ASK, {}, 30.0))
    await asyncio.sleep(0)
    await app.drain()
    assert await asyncio.wait_for(waiting, 10) == Nothing(cause=IdleCause.NO_RUN)


async def test_what_was_leased_to_a_worker_that_went_away_goes_back_at_no_cost(
    app: Scheduler, ledger: FrailLedger
) -> None:
    await app.create_run(spec())
    ledger.is_storing.clear()
    ledger.gate.clear()
    gone = asyncio.ensure_future(app.lease(ASK, {}, 0.0))
    await ledger.is_storing.wait()
    gone.cancel()
    ledger.gate.set()
    with pytest.raises(asyncio.CancelledError):
        await gone
    assert (await app.status()).num_leased == 0
    again = await leased(app)
    assert [item.group.rollouts[0].attempt for item in again] == [2, 2]
    assert (await app.get_run("r"))[0].num_requeued == 0


async def test_after_a_store_of_unknown_outcome_the_ledger_decides(app: Scheduler, ledger: FrailLedger) -> None:
    await app.create_run(spec())
    ledger.loses_answer = True
    with pytest.raises(JourneymanError) as caught:
        await leased(app)
    assert caught.value.retryable
    assert await leased(app) == []
    run, findings = await app.get_run("r")
    assert (run.num_admitted, run.totals.in_flight, findings.num_lost_groups) == (2, 2, 0)


async def test_leases_run_out_by_the_clock_and_are_played_again(app: Scheduler, clock: Clock) -> None:
    await app.create_run(spec())
    (first, second) = await leased(app)
    clock.now_s += 8
    kept = [AttemptName(group_id=first.group.group_id, index=index, attempt=1) for index in (0, 1)]
    until_s, lost = await app.renew("w", kept)
    assert (until_s, lost) == (clock.now_s + 10, [])
    clock.now_s += 5
    await app.tick()
    again = await leased(app)
    assert [item.group.group_id for item in again] == [second.group.group_id]
    stale = [AttemptName(group_id=second.group.group_id, index=0, attempt=1)]
    assert (await app.renew("w", stale))[1] == stale
    assert (await app.get_run("r"))[0].num_requeued == 2


async def test_a_restart_keeps_leases_and_facts(app: Scheduler, ledger: FrailLedger, clock: Clock) -> None:
    await app.create_run(spec())
    (first, second) = await leased(app)
    await app.receive(results(first, passes=[True, False]))
    clock.now_s += 1000
    restarted = Scheduler(ledger, SOURCE, to_outgoing, clock)
    await restarted.load()
    await restarted.tick()
    await restarted.receive(results(second, passes=[True, False]))
    topics = [fact.topic for _, fact in await ledger.unpublished(10)]
    assert topics == ["group.ready", "group.ready"]
    run, _ = await restarted.get_run("r")
    assert (run.totals.ready, run.num_requeued, run.num_trajectories, run.num_sampled_tokens) == (2, 0, 4, 12)


async def test_slot_seconds_are_booked_and_survive(app: Scheduler, ledger: FrailLedger, clock: Clock) -> None:
    await app.lease(ASK, {"decode": 1.5, "tool": 0.5, "no_lease": float("nan")}, 0.0)
    assert (await app.status()).slot_seconds == {"decode": 1.5, "tool": 0.5}
    await app.tick()
    await app.lease(ASK, {"decode": 1.0}, 0.0)
    assert (await app.status()).slot_seconds == {"decode": 2.5, "tool": 0.5}
    assert await ledger.slot_seconds() == {"decode": 1.5, "tool": 0.5}
    assert (await app.status()).num_workers == 1
    clock.now_s += 1000
    assert (await app.status()).num_workers == 0


async def test_returning_a_lease_for_the_models_doing_is_refused(app: Scheduler) -> None:
    with pytest.raises(JourneymanError, match="attribution='policy'"):
        await app.give_back("w", [], Attribution.POLICY)


async def test_groups_are_listed_by_page(app: Scheduler) -> None:
    await app.create_run(spec(slots=5))
    await leased(app)
    first = await app.list_groups("r", below=None, limit=2, state="")
    assert [group.number for group in first] == [4, 3]
    assert [group.number for group in await app.list_groups("r", below=3, limit=0, state="OPEN")] == [2, 1, 0]
    for wrong in ({"limit": 1001, "state": ""}, {"limit": 1, "state": "OPENED"}):
        with pytest.raises(JourneymanError) as caught:
            await app.list_groups("r", below=None, **wrong)  # type: ignore[arg-type]  # test data
        assert caught.value.code is ErrorCode.INVALID_INPUT


async def test_broken_promises_show(app: Scheduler, ledger_url: str, ledger: FrailLedger, clock: Clock) -> None:
    """A lost group and an infrastructure failure in an advantage are put into the ledger; each raises its own counter."""
    await app.create_run(spec(slots=3))
    for item in await leased(app):
        await app.receive(results(item, passes=[True, False]))
    assert await _broken(ledger, clock) == (0, 0)
    await _execute(
        ledger_url,
        'UPDATE scheduler_groups SET rollouts_json = replace(rollouts_json, \'"attribution":"policy"\', '
        '\'"attribution":"sandbox"\') WHERE number = 0',
    )
    assert await _broken(ledger, clock) == (0, 2)
    await _execute(ledger_url, "UPDATE scheduler_groups SET state = 'NOWHERE' WHERE number = 1")
    assert await _broken(ledger, clock) == (1, 2)
    await _execute(ledger_url, "DELETE FROM scheduler_groups WHERE number = 2")
    assert await _broken(ledger, clock) == (2, 2)


async def _broken(ledger: FrailLedger, clock: Clock) -> tuple[int, int]:
    """What a scheduler that starts now finds."""
    fresh = Scheduler(ledger, SOURCE, to_outgoing, clock)
    await fresh.load()
    _, findings = await fresh.get_run("r")
    return findings.num_lost_groups, findings.num_infra_in_advantages


async def _execute(url: str, statement: str) -> None:
    engine = await open_engine(url)
    with engine.execution_options(**WRITES).begin() as connection:
        assert connection.execute(text(statement)).rowcount == 1
    engine.dispose()
