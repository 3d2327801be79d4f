"""The contract of the scheduler's ledger, on SQLite and on PostgreSQL."""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import inspect, text

from journeyman.bus.port import Outgoing
from journeyman.errors import ErrorCode, JourneymanError
from journeyman.records import LatestPolicy, ObjectRef, PolicyVersion, Split
from journeyman.testing.scripted_tasks import ScriptedTasks
from scheduler_service.adapters.ledger import SqlLedger
from scheduler_service.adapters.sql_engine import WRITES, open_engine
from scheduler_service.adapters.tables import METADATA
from scheduler_service.core import group_state
from scheduler_service.core.group import DropReason, Group, GroupState
from scheduler_service.core.run import DomainShare, GroupTotals, Run, RunKind, RunSpec, RunState
from scheduler_service.core.working_set import Batch, TaskName

SOURCE = ScriptedTasks({"math.tool": (1, 2)})
TASK = SOURCE.task("math.tool", Split.TRAIN, 1, 5)
FACTS = [Outgoing(topic="group.ready", key=f"r/g{n}", value=b"\x00fact", headers={"a": "b"}) for n in range(3)]
STORED = ObjectRef(uri="trajectories/x", sha256="00", num_bytes=3)


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def ledger_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'ledger.db'}"
    return str(request.getfixturevalue("postgres_url"))


@pytest.fixture
async def ledger(ledger_url: str) -> AsyncIterator[SqlLedger]:
    opened = SqlLedger(await open_engine(ledger_url))
    yield opened
    await opened.close()


def run(run_id: str = "r", number: int = 1) -> Run:
    spec = RunSpec(
        run_id=run_id,
        kind=RunKind.TRAIN,
        domains=(DomainShare(domain="math.tool", levels=(1, 2), num_groups=0),),
        split=Split.TRAIN,
        policy=LatestPolicy(run_id=run_id),
        group_size=3,
        admission_slots=2,
        min_graded=2,
        retry_budget=1,
        lease_s=10.0,
        seed=-5,
        max_off_policy_steps=1,
        temperature=0.7,
    )
    return Run(spec=spec, state=RunState.ACTIVE, number=number, domains=())


def group(number: int, run_id: str = "r") -> Group:
    return group_state.admit(run_id=run_id, number=number, task=TASK, group_size=3, now_s=1.5)


def new(*groups: Group, runs: tuple[Run, ...] = ()) -> Batch:
    return Batch(runs=runs, groups=groups, new_group_ids=frozenset(item.group_id for item in groups))


async def test_runs_and_unfinished_groups_come_back_as_they_were(ledger: SqlLedger) -> None:
    assert await ledger.load() == await ledger.load()
    leased = group_state.lease(group(0), [0, 2], "w", 99.5, 2.0).group
    await ledger.store(new(leased, group(1), runs=(run(),)), [], {})
    played = replace(
        leased.rollouts[0], is_recorded=True, object=STORED, attribution=None, score=0.25, reward=0.1, num_turns=2
    )
    changed = replace(
        leased,
        state=GroupState.TAKEN,
        rollouts=(played, *leased.rollouts[1:]),
        ready_members=(0, 2),
        trained_into=PolicyVersion(incarnation=2, step=7),
        changed_at_s=3.25,
    )
    counted = replace(run(), num_admitted=2, totals=GroupTotals(in_flight=1, taken=1), drops=((DropReason.INFRA, 3),))
    await ledger.store(Batch(runs=(counted,), groups=(changed,)), [], {})
    stored = await ledger.load()
    assert stored.runs == (counted,)
    assert stored.groups == (changed, group(1))


async def test_finished_groups_are_listed_and_not_loaded(ledger: SqlLedger) -> None:
    dropped = replace(group(1), state=GroupState.DROPPED, drop_reason=DropReason.POISONED, detail="why")
    await ledger.store(new(group(0), dropped, group(2), group(0, "other"), runs=(run(), run("other", 2))), [], {})
    assert [item.group_id for item in (await ledger.load()).groups] == ["other/g000000", "r/g000000", "r/g000002"]
    newest = await ledger.groups("r", below=None, limit=2, state="")
    assert list(newest) == [group(2), dropped]
    assert list(await ledger.groups("r", below=1, limit=9, state="")) == [group(0)]
    assert list(await ledger.groups("r", below=None, limit=9, state="DROPPED")) == [dropped]


async def test_tasks_leave_the_queue_and_their_ids_stay_known(ledger: SqlLedger) -> None:
    second = replace(TASK, task_id="second")
    await ledger.store(Batch(submitted=(("r", TASK), ("r", second), ("other", TASK))), [], {})
    await ledger.store(Batch(admitted=(TaskName(run_id="r", task_id=TASK.task_id),)), [], {})
    stored = await ledger.load()
    assert stored.queued == (("r", second), ("other", TASK))
    assert set(stored.task_ids) == {
        TaskName(run_id="r", task_id=TASK.task_id),
        TaskName(run_id="r", task_id="second"),
        TaskName(run_id="other", task_id=TASK.task_id),
    }


async def test_quarantine_and_slot_seconds_add_up(ledger: SqlLedger) -> None:
    name = TaskName(run_id="", task_id="bad")
    await ledger.store(Batch(quarantined=(name, name)), [], {"decode": 1.5})
    await ledger.store(Batch(quarantined=(name,)), [], {"decode": 0.5, "tool": 1.0})
    assert (await ledger.load()).quarantined == (name,)
    assert await ledger.slot_seconds() == {"decode": 2.0, "tool": 1.0}


async def test_facts_wait_in_order_until_they_are_forgotten(ledger: SqlLedger) -> None:
    await ledger.store(Batch(), FACTS[:2], {})
    await ledger.store(Batch(), FACTS[2:], {})
    waiting = await ledger.unpublished(10)
    assert [fact for _, fact in waiting] == FACTS
    assert [fact for _, fact in await ledger.unpublished(2)] == FACTS[:2]
    await ledger.forget([number for number, _ in waiting[:2]])
    assert [fact for _, fact in await ledger.unpublished(10)] == FACTS[2:]


async def test_a_store_that_fails_stores_nothing(ledger: SqlLedger) -> None:
    await ledger.store(new(group(0), runs=(run(),)), [], {})
    clash = replace(new(group(1), group(0)), quarantined=(TaskName(run_id="", task_id="x"),))
    with pytest.raises(Exception, match=r"(?i)unique"):
        await ledger.store(clash, FACTS, {"decode": 1.0})
    stored = await ledger.load()
    assert (stored.groups, stored.quarantined) == ((group(0),), ())
    assert await ledger.unpublished(10) == []
    assert await ledger.slot_seconds() == {}


async def test_the_audit_reads_rows_that_nothing_else_could(ledger: SqlLedger, ledger_url: str) -> None:
    await ledger.store(new(group(0), group(1), runs=(run(),)), [], {})
    engine = await open_engine(ledger_url)
    with engine.execution_options(**WRITES).begin() as connection:
        connection.execute(text("UPDATE scheduler_groups SET rollouts_json = '{', state = 'NOWHERE' WHERE number = 1"))
    engine.dispose()
    rows = {row.group_id: row for row in await ledger.audit_rows("r")}
    assert rows["r/g000000"].rollouts == group(0).rollouts
    assert (rows["r/g000001"].rollouts, rows["r/g000001"].state) == (None, "NOWHERE")
    assert await ledger.audit_rows("absent") == []


async def test_everything_survives_reopening(ledger: SqlLedger, ledger_url: str) -> None:
    await ledger.store(new(group(0), runs=(run(),)), FACTS, {"decode": 1.0})
    again = SqlLedger(await open_engine(ledger_url))
    try:
        assert await again.load() == await ledger.load()
        assert len(await again.unpublished(10)) == 3
    finally:
        await again.close()


async def test_the_migrations_make_the_tables_that_the_code_declares(ledger_url: str) -> None:
    engine = await open_engine(ledger_url)
    made = inspect(engine)
    for name, table in METADATA.tables.items():
        assert {column["name"] for column in made.get_columns(name)} == set(table.columns.keys())
        assert {index["name"] for index in made.get_indexes(name) if not index.get("duplicates_constraint")} == {
            index.name for index in table.indexes
        }
    engine.dispose()


async def test_an_unusable_ledger_is_named_without_its_password(tmp_path: Path) -> None:
    for url in ("not a url", f"sqlite:///{tmp_path}/absent/ledger.db", "postgresql+psycopg://u:secret@127.0.0.1:1/x"):
        with pytest.raises(JourneymanError) as caught:
            await open_engine(url)
        assert caught.value.code is ErrorCode.INVALID_INPUT
        assert "SCHEDULER_LEDGER" in caught.value.message
        assert "secret" not in caught.value.message
