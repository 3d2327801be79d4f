"""The scheduler's ledger in SQLite or PostgreSQL, by SQLAlchemy Core. State changes and outgoing facts are one transaction (outbox).

SQLAlchemy is used synchronously in one thread of its own: one connection stays warm, and calls are stored in the order they were made.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from sqlalchemy import Connection, Engine, Table, bindparam, delete, insert, select, update
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import InterfaceError, OperationalError

from journeyman.bus.port import Outgoing
from journeyman.errors import ErrorCode, JourneymanError
from scheduler_service.adapters.encoding import RUN, from_text, task_from_bytes, task_to_bytes, to_text
from scheduler_service.adapters.rows import (
    audit_row_of,
    changed_group_columns,
    group_of,
    new_group_columns,
    outbox_columns,
    outgoing_of,
)
from scheduler_service.adapters.sql_engine import WRITES
from scheduler_service.adapters.tables import GROUPS, OUTBOX, QUARANTINE, RUNS, SLOT_SECONDS, TASKS
from scheduler_service.core.audit import AuditRow
from scheduler_service.core.group import Group, GroupState
from scheduler_service.core.working_set import Batch, Stored, TaskName

T = TypeVar("T")

UNFINISHED = [state.value for state in GroupState if not state.is_terminal]
_CHANGE_GROUP = update(GROUPS).where(GROUPS.c.group_id == bindparam("key"))
_ADMIT_TASK = (
    update(TASKS)
    .where(TASKS.c.run_id == bindparam("key_run"), TASKS.c.task_id == bindparam("key_task"))
    .values(is_queued=False)
)


class SqlLedger:
    """Implements ports.Ledger."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._writing = engine.execution_options(**WRITES)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="ledger")

    async def load(self) -> Stored:
        return await self._do(self._engine, _load)

    async def store(self, batch: Batch, facts: Sequence[Outgoing], slot_seconds: Mapping[str, float]) -> None:
        def work(connection: Connection) -> None:
            _store_groups(connection, batch)
            _store_runs(connection, batch)
            _store_tasks(connection, batch)
            for cause, seconds in slot_seconds.items():
                _add_slot_seconds(connection, cause, seconds)
            if facts:
                connection.execute(insert(OUTBOX), [outbox_columns(fact) for fact in facts])

        await self._do(self._writing, work)

    async def groups(self, run_id: str, *, below: int | None, limit: int, state: str) -> Sequence[Group]:
        query = select(GROUPS).where(GROUPS.c.run_id == run_id).order_by(GROUPS.c.number.desc()).limit(limit)
        if below is not None:
            query = query.where(GROUPS.c.number < below)
        if state:
            query = query.where(GROUPS.c.state == state)
        return await self._do(self._engine, lambda connection: [group_of(row) for row in connection.execute(query)])

    async def audit_rows(self, run_id: str) -> Sequence[AuditRow]:
        columns = (
            GROUPS.c.group_id,
            GROUPS.c.state,
            GROUPS.c.rollouts_json,
            GROUPS.c.ready_members_json,
            GROUPS.c.drop_reason,
        )
        query = select(*columns).where(GROUPS.c.run_id == run_id)
        return await self._do(self._engine, lambda connection: [audit_row_of(row) for row in connection.execute(query)])

    async def slot_seconds(self) -> Mapping[str, float]:
        query = select(SLOT_SECONDS).order_by(SLOT_SECONDS.c.cause)
        return await self._do(
            self._engine, lambda connection: {row.cause: row.seconds for row in connection.execute(query)}
        )

    async def unpublished(self, limit: int) -> Sequence[tuple[int, Outgoing]]:
        query = select(OUTBOX).order_by(OUTBOX.c.number).limit(limit)
        return await self._do(
            self._engine, lambda connection: [(row.number, outgoing_of(row)) for row in connection.execute(query)]
        )

    async def forget(self, numbers: Sequence[int]) -> None:
        statement = delete(OUTBOX).where(OUTBOX.c.number.in_(numbers))
        await self._do(self._writing, lambda connection: connection.execute(statement))

    async def close(self) -> None:
        await asyncio.get_running_loop().run_in_executor(self._thread, self._engine.dispose)
        self._thread.shutdown()

    async def _do(self, engine: Engine, work: Callable[[Connection], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, _transact, engine, work)


def _transact(engine: Engine, work: Callable[[Connection], T]) -> T:
    try:
        with engine.begin() as connection:
            return work(connection)
    except (OperationalError, InterfaceError) as error:
        reason = str(error.orig or error).splitlines()[0]
        raise JourneymanError(ErrorCode.UNAVAILABLE, f"the scheduler's ledger: {reason}") from error


def _load(connection: Connection) -> Stored:
    tasks = select(TASKS).where(TASKS.c.is_queued).order_by(TASKS.c.number)
    unfinished = select(GROUPS).where(GROUPS.c.state.in_(UNFINISHED)).order_by(GROUPS.c.run_id, GROUPS.c.number)
    return Stored(
        runs=tuple(from_text(RUN, row.run_json) for row in connection.execute(select(RUNS))),
        groups=tuple(group_of(row) for row in connection.execute(unfinished)),
        queued=tuple((row.run_id, task_from_bytes(row.task)) for row in connection.execute(tasks)),
        task_ids=_names(connection, TASKS),
        quarantined=_names(connection, QUARANTINE),
    )


def _names(connection: Connection, table: Table) -> tuple[TaskName, ...]:
    rows = connection.execute(select(table.c.run_id, table.c.task_id))
    return tuple(TaskName(run_id=row.run_id, task_id=row.task_id) for row in rows)


def _store_groups(connection: Connection, batch: Batch) -> None:
    new = [group for group in batch.groups if group.group_id in batch.new_group_ids]
    changed = [group for group in batch.groups if group.group_id not in batch.new_group_ids]
    if new:
        connection.execute(insert(GROUPS), [new_group_columns(group) for group in new])
    if changed:
        rows = [{"key": group.group_id, **changed_group_columns(group)} for group in changed]
        connection.execute(_CHANGE_GROUP, rows)


def _store_runs(connection: Connection, batch: Batch) -> None:
    for run in batch.runs:
        text = to_text(RUN, run)
        values = _insert(connection, RUNS).values(run_id=run.spec.run_id, run_json=text)
        connection.execute(values.on_conflict_do_update(index_elements=["run_id"], set_={"run_json": text}))


def _store_tasks(connection: Connection, batch: Batch) -> None:
    for run_id, task in batch.submitted:
        row = {"run_id": run_id, "task_id": task.task_id, "is_queued": True, "task": task_to_bytes(task)}
        connection.execute(insert(TASKS).values(row))
    if batch.admitted:
        names = [{"key_run": name.run_id, "key_task": name.task_id} for name in batch.admitted]
        connection.execute(_ADMIT_TASK, names)
    for name in batch.quarantined:
        values = _insert(connection, QUARANTINE).values(run_id=name.run_id, task_id=name.task_id)
        connection.execute(values.on_conflict_do_nothing())


def _add_slot_seconds(connection: Connection, cause: str, seconds: float) -> None:
    values = _insert(connection, SLOT_SECONDS).values(cause=cause, seconds=seconds)
    added = {"seconds": SLOT_SECONDS.c.seconds + seconds}
    connection.execute(values.on_conflict_do_update(index_elements=["cause"], set_=added))


def _insert(connection: Connection, table: Table) -> sqlite.Insert | postgresql.Insert:
    if connection.dialect.name == "postgresql":
        return postgresql.insert(table)
    return sqlite.insert(table)
