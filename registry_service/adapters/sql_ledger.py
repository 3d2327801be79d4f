"""The registry's ledger in SQLite or PostgreSQL, by SQLAlchemy Core. State changes and outgoing facts are one transaction (outbox).

SQLAlchemy is used synchronously in worker threads: each call is one short transaction.
"""

import asyncio
import json
from collections.abc import Callable, Sequence
from typing import TypeVar

from sqlalchemy import ColumnElement, Connection, Engine, Row, Select, Table, and_, insert, select, update
from sqlalchemy.dialects import postgresql, sqlite

from journeyman.bus.port import Outgoing
from journeyman.errors import ErrorCode, JourneymanError
from journeyman.records import PolicyRef
from registry_service.adapters.encoding import DECISION, EVALUATION, POLICY_REF, from_text, to_text
from registry_service.adapters.sql_engine import WRITES
from registry_service.adapters.tables import DECISIONS, EVALUATIONS, OUTBOX, POLICIES, RESULTS
from registry_service.core.records import Decision, EvaluationSpec, PolicyEntry, Standing, TaskResult

T = TypeVar("T")


class SqlLedger:
    """Implements ports.Ledger."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def add_policy(self, ref: PolicyRef, parent: PolicyRef | None, made_by: str) -> None:
        await self._write(lambda connection: _add_policy(connection, ref, parent, made_by))

    async def policies(self, run_id: str) -> Sequence[PolicyEntry]:
        query = select(POLICIES).order_by(POLICIES.c.number.desc())
        if run_id:
            query = query.where(POLICIES.c.run_id == run_id)
        return await self._read(lambda connection: [_entry(row) for row in connection.execute(query)])

    async def champion(self) -> PolicyEntry | None:
        query = select(POLICIES).where(POLICIES.c.standing == Standing.CHAMPION)
        row = await self._read(lambda connection: connection.execute(query).one_or_none())
        return None if row is None else _entry(row)

    async def add_evaluation(self, spec: EvaluationSpec) -> None:
        text = to_text(EVALUATION, spec)

        def work(connection: Connection) -> None:
            values = {"evaluation_id": spec.evaluation_id, "spec_json": text}
            connection.execute(_insert_once(connection, EVALUATIONS).values(values))
            stored = connection.execute(_spec_of(spec.evaluation_id)).scalar_one()
            if stored != text:
                raise JourneymanError(
                    ErrorCode.CONFLICT, f"evaluation {spec.evaluation_id} exists with another spec: choose another id"
                )

        await self._write(work)

    async def evaluation(self, evaluation_id: str) -> EvaluationSpec | None:
        text = await self._read(lambda connection: connection.execute(_spec_of(evaluation_id)).scalar_one_or_none())
        return None if text is None else from_text(EVALUATION, text)

    async def add_results(self, evaluation_id: str, results: Sequence[TaskResult]) -> None:
        def work(connection: Connection) -> None:
            if connection.execute(_spec_of(evaluation_id)).scalar_one_or_none() is None:
                return
            statement = _insert_once(connection, RESULTS)
            for result in results:
                connection.execute(statement.values(evaluation_id=evaluation_id, **_result_columns(result)))

        await self._write(work)

    async def results(self, evaluation_id: str) -> Sequence[TaskResult]:
        query = select(RESULTS).where(RESULTS.c.evaluation_id == evaluation_id).order_by(RESULTS.c.task_id)
        return await self._read(lambda connection: [_result(row) for row in connection.execute(query)])

    async def decision(self, decision_id: str) -> Decision | None:
        query = select(DECISIONS.c.decision_json).where(DECISIONS.c.decision_id == decision_id)
        text = await self._read(lambda connection: connection.execute(query).scalar_one_or_none())
        return None if text is None else from_text(DECISION, text)

    async def add_decision(self, decision: Decision, fact: Outgoing) -> None:
        def work(connection: Connection) -> None:
            values = {"decision_id": decision.decision_id, "decision_json": to_text(DECISION, decision)}
            insertion = _insert_once(connection, DECISIONS).values(values).returning(DECISIONS.c.decision_id)
            if connection.execute(insertion).first() is None:
                return
            _add_policy(connection, decision.candidate, None, "")
            _change_standings(connection, decision)
            connection.execute(insert(OUTBOX).values(_outbox_columns(fact)))

        await self._write(work)

    async def unpublished(self, limit: int) -> Sequence[tuple[int, Outgoing]]:
        query = select(OUTBOX).where(OUTBOX.c.is_published.is_(False)).order_by(OUTBOX.c.number).limit(limit)
        return await self._read(lambda connection: [(row.number, _outgoing(row)) for row in connection.execute(query)])

    async def mark_published(self, numbers: Sequence[int]) -> None:
        statement = update(OUTBOX).where(OUTBOX.c.number.in_(numbers)).values(is_published=True)
        await self._write(lambda connection: connection.execute(statement))

    async def close(self) -> None:
        """Closes all connections."""
        await asyncio.to_thread(self._engine.dispose)

    async def _read(self, work: Callable[[Connection], T]) -> T:
        return await asyncio.to_thread(_run, self._engine, work)

    async def _write(self, work: Callable[[Connection], T]) -> T:
        return await asyncio.to_thread(_run, self._engine.execution_options(**WRITES), work)


def _run(engine: Engine, work: Callable[[Connection], T]) -> T:
    with engine.begin() as connection:
        return work(connection)


def _insert_once(connection: Connection, table: Table) -> sqlite.Insert | postgresql.Insert:
    """An insert that leaves an existing row alone."""
    if connection.dialect.name == "postgresql":
        return postgresql.insert(table).on_conflict_do_nothing()
    return sqlite.insert(table).on_conflict_do_nothing()


def _spec_of(evaluation_id: str) -> Select[str]:
    return select(EVALUATIONS.c.spec_json).where(EVALUATIONS.c.evaluation_id == evaluation_id)


def _is_policy(ref: PolicyRef) -> ColumnElement[bool]:
    return and_(
        POLICIES.c.run_id == ref.run_id,
        POLICIES.c.incarnation == ref.version.incarnation,
        POLICIES.c.step == ref.version.step,
    )


def _add_policy(connection: Connection, ref: PolicyRef, parent: PolicyRef | None, made_by: str) -> None:
    parent_json = None if parent is None else to_text(POLICY_REF, parent)
    values = {
        "run_id": ref.run_id,
        "incarnation": ref.version.incarnation,
        "step": ref.version.step,
        "ref_json": to_text(POLICY_REF, ref),
        "parent_json": parent_json,
        "made_by": made_by,
        "standing": Standing.PUBLISHED,
    }
    connection.execute(_insert_once(connection, POLICIES).values(values))
    # A policy that was judged before its policy.published arrived has no lineage yet.
    late = update(POLICIES).where(_is_policy(ref), POLICIES.c.made_by == "")
    connection.execute(late.values(parent_json=parent_json, made_by=made_by))


def _change_standings(connection: Connection, decision: Decision) -> None:
    ref = decision.candidate
    if decision.promoted:
        former = update(POLICIES).where(POLICIES.c.standing == Standing.CHAMPION)
        connection.execute(former.values(standing=Standing.FORMER_CHAMPION))
        connection.execute(update(POLICIES).where(_is_policy(ref)).values(standing=Standing.CHAMPION))
        return
    refused = update(POLICIES).where(_is_policy(ref), POLICIES.c.standing != Standing.CHAMPION)
    connection.execute(refused.values(standing=Standing.REJECTED))


def _entry(row: Row[*tuple[object, ...]]) -> PolicyEntry:
    return PolicyEntry(
        ref=from_text(POLICY_REF, row.ref_json),
        parent=None if row.parent_json is None else from_text(POLICY_REF, row.parent_json),
        made_by=row.made_by,
        standing=Standing(row.standing),
    )


def _result_columns(result: TaskResult) -> dict[str, str | bool | float]:
    return {
        "group_id": result.group_id,
        "task_id": result.task_id,
        "domain": result.domain,
        "graded": result.graded,
        "passed": result.passed,
        "score": result.score,
    }


def _result(row: Row[*tuple[object, ...]]) -> TaskResult:
    return TaskResult(
        group_id=row.group_id,
        task_id=row.task_id,
        domain=row.domain,
        graded=row.graded,
        passed=row.passed,
        score=row.score,
    )


def _outbox_columns(fact: Outgoing) -> dict[str, str | bytes | bool]:
    return {
        "topic": fact.topic,
        "key": fact.key,
        "value": fact.value,
        "headers_json": json.dumps(dict(fact.headers)),
        "is_published": False,
    }


def _outgoing(row: Row[*tuple[object, ...]]) -> Outgoing:
    return Outgoing(topic=row.topic, key=row.key, value=row.value, headers=json.loads(row.headers_json))
