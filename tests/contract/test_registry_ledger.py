"""The contract of the registry's ledger, on SQLite and on PostgreSQL."""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import inspect

from journeyman.bus.port import Outgoing
from journeyman.errors import ErrorCode, JourneymanError
from journeyman.records import PolicyRef, PolicyVersion
from registry_service.adapters.sql_engine import open_engine
from registry_service.adapters.sql_ledger import SqlLedger
from registry_service.adapters.tables import METADATA
from registry_service.core.records import Decision, DomainDecision, EvaluationSpec, Standing, TaskResult

FACT = Outgoing(topic="policy.promoted", key="rl", value=b"\x00fact", headers={"traceparent": "00-1-2-01"})


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


def policy(step: int, run_id: str = "rl") -> PolicyRef:
    return PolicyRef(
        run_id=run_id,
        version=PolicyVersion(incarnation=1, step=step),
        uri=f"policies/{run_id}/1.{step}",
        manifest_sha256="ab" * 32,
    )


def evaluation(evaluation_id: str = "before") -> EvaluationSpec:
    return EvaluationSpec(
        evaluation_id=evaluation_id,
        policy=policy(0),
        domains=("code.repair", "math.tool"),
        tasks_per_domain=2,
        seed=7,
        temperature=1.0,
    )


def result(number: int, *, passed: bool = True) -> TaskResult:
    return TaskResult(
        group_id=f"g{number}",
        task_id=f"math.tool/heldout/1/{number}",
        domain="math.tool",
        graded=True,
        passed=passed,
        score=0.5,
    )


def decision(decision_id: str, candidate: PolicyRef, *, promoted: bool) -> Decision:
    word = DomainDecision(domain="math.tool", difference=0.25, p_value=0.01, is_non_inferior=True, num_pairs=4)
    return Decision(
        decision_id=decision_id,
        candidate_evaluation_id="after",
        champion_evaluation_id="before",
        candidate=candidate,
        promoted=promoted,
        reason="because",
        domains=(word,),
    )


async def test_policies_are_listed_newest_first_and_repeats_change_nothing(ledger: SqlLedger) -> None:
    await ledger.add_policy(policy(0), None, "init")
    await ledger.add_policy(policy(1), policy(0), "rl")
    await ledger.add_policy(policy(1), policy(0), "rl")
    await ledger.add_policy(policy(0, "other"), None, "sft")
    assert [entry.ref for entry in await ledger.policies("rl")] == [policy(1), policy(0)]
    newest, first = await ledger.policies("rl")
    assert (newest.parent, newest.made_by, newest.standing) == (policy(0), "rl", Standing.PUBLISHED)
    assert first.parent is None
    assert len(await ledger.policies("")) == 3


async def test_an_evaluation_is_immutable_under_its_id(ledger: SqlLedger) -> None:
    await ledger.add_evaluation(evaluation())
    await ledger.add_evaluation(evaluation())
    assert await ledger.evaluation("before") == evaluation()
    assert await ledger.evaluation("unknown") is None
    with pytest.raises(JourneymanError) as caught:
        await ledger.add_evaluation(replace(evaluation(), seed=8))
    assert caught.value.code is ErrorCode.CONFLICT


async def test_the_first_result_of_a_group_counts_and_those_of_unknown_runs_are_ignored(ledger: SqlLedger) -> None:
    await ledger.add_evaluation(evaluation())
    await ledger.add_results("before", [result(1), result(2)])
    await ledger.add_results("before", [result(1, passed=False)])
    await ledger.add_results("collect-1", [result(3)])
    assert await ledger.results("before") == [result(1), result(2)]
    assert await ledger.results("collect-1") == []


async def test_a_decision_changes_standings_and_leaves_its_fact_in_one_step(ledger: SqlLedger) -> None:
    assert await ledger.champion() is None
    await ledger.add_decision(decision("first", policy(0), promoted=True), FACT)
    await ledger.add_decision(decision("second", policy(1), promoted=True), FACT)
    await ledger.add_decision(decision("third", policy(2), promoted=False), FACT)
    champion = await ledger.champion()
    assert champion is not None
    assert champion.ref == policy(1)
    standings = [entry.standing for entry in await ledger.policies("rl")]
    assert standings == [Standing.REJECTED, Standing.CHAMPION, Standing.FORMER_CHAMPION]
    assert await ledger.decision("second") == decision("second", policy(1), promoted=True)
    assert [fact for _, fact in await ledger.unpublished(10)] == [FACT, FACT, FACT]


async def test_a_repeated_decision_changes_nothing(ledger: SqlLedger) -> None:
    await ledger.add_decision(decision("first", policy(0), promoted=True), FACT)
    await ledger.add_decision(decision("first", policy(1), promoted=True), FACT)
    champion = await ledger.champion()
    assert champion is not None
    assert champion.ref == policy(0)
    assert len(await ledger.unpublished(10)) == 1


async def test_the_champion_judged_again_and_refused_stays_champion(ledger: SqlLedger) -> None:
    await ledger.add_decision(decision("first", policy(0), promoted=True), FACT)
    await ledger.add_decision(decision("again", policy(0), promoted=False), FACT)
    champion = await ledger.champion()
    assert champion is not None
    assert champion.ref == policy(0)


async def test_lineage_that_arrives_after_the_decision_is_filled_in_and_the_standing_kept(ledger: SqlLedger) -> None:
    await ledger.add_decision(decision("first", policy(1), promoted=True), FACT)
    await ledger.add_policy(policy(1), policy(0), "rl")
    champion = await ledger.champion()
    assert champion is not None
    assert (champion.made_by, champion.parent) == ("rl", policy(0))


async def test_published_facts_leave_the_outbox(ledger: SqlLedger) -> None:
    await ledger.add_decision(decision("first", policy(0), promoted=True), FACT)
    await ledger.add_decision(decision("second", policy(1), promoted=True), FACT)
    (first, _), (second, _) = await ledger.unpublished(10)
    assert first < second
    await ledger.mark_published([first])
    assert [number for number, _ in await ledger.unpublished(10)] == [second]


async def test_everything_survives_reopening(ledger: SqlLedger, ledger_url: str) -> None:
    await ledger.add_evaluation(evaluation())
    await ledger.add_results("before", [result(1)])
    again = SqlLedger(await open_engine(ledger_url))
    try:
        assert await again.results("before") == [result(1)]
    finally:
        await again.close()


async def test_the_migrations_make_the_tables_that_the_code_declares(ledger_url: str) -> None:
    engine = await open_engine(ledger_url)
    made = inspect(engine)
    for name, table in METADATA.tables.items():
        assert {column["name"] for column in made.get_columns(name)} == set(table.columns.keys())
    engine.dispose()


async def test_an_unusable_ledger_is_named_without_its_password(tmp_path: Path) -> None:
    for url in ("not a url", f"sqlite:///{tmp_path}/absent/ledger.db", "postgresql+psycopg://u:secret@127.0.0.1:1/x"):
        with pytest.raises(JourneymanError) as caught:
            await open_engine(url)
        assert caught.value.code is ErrorCode.INVALID_INPUT
        assert "REGISTRY_LEDGER" in caught.value.message
        assert "secret" not in caught.value.message
