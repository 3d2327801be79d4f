"""Use cases of the registry on a real ledger (SQLite) and a scripted scheduler."""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from journeyman.bus.port import Outgoing
from journeyman.errors import ErrorCode, JourneymanError
from journeyman.records import PolicyRef, PolicyVersion
from registry_service.adapters.sql_engine import open_engine
from registry_service.adapters.sql_ledger import SqlLedger
from registry_service.app import GateRequest, Registry
from registry_service.core.records import Decision, EvaluationSpec, TaskResult
from registry_service.ports import RunOutcome


class ScriptedRuns:
    """Remembers which evaluations were started; their outcome is set by the test."""

    def __init__(self) -> None:
        self.started: list[str] = []
        self.now = RunOutcome(is_over=False, num_closed=0)

    async def start(self, spec: EvaluationSpec) -> None:
        self.started.append(spec.evaluation_id)

    async def outcome(self, evaluation_id: str) -> RunOutcome:
        return self.now


def fact_of(decision: Decision) -> Outgoing:
    topic = "policy.promoted" if decision.promoted else "policy.rejected"
    return Outgoing(topic=topic, key=decision.candidate.run_id, value=decision.decision_id.encode(), headers={})


@pytest.fixture
def runs() -> ScriptedRuns:
    return ScriptedRuns()


@pytest.fixture
async def ledger(tmp_path: Path) -> AsyncIterator[SqlLedger]:
    opened = SqlLedger(await open_engine(f"sqlite:///{tmp_path / 'ledger.db'}"))
    yield opened
    await opened.close()


@pytest.fixture
def app(ledger: SqlLedger, runs: ScriptedRuns) -> Registry:
    return Registry(ledger, runs, fact_of)


def policy(step: int) -> PolicyRef:
    version = PolicyVersion(incarnation=1, step=step)
    return PolicyRef(run_id="rl", version=version, uri=f"policies/rl/1.{step}", manifest_sha256="cd" * 32)


def evaluation(evaluation_id: str, step: int, num_tasks: int = 40) -> EvaluationSpec:
    return EvaluationSpec(
        evaluation_id=evaluation_id,
        policy=policy(step),
        domains=("math.tool",),
        tasks_per_domain=num_tasks,
        seed=1,
        temperature=1.0,
    )


def results(num_passed: int, num_tasks: int = 40, num_excluded: int = 0) -> list[TaskResult]:
    return [
        TaskResult(
            group_id=f"g{n}",
            task_id=f"t{n}",
            domain="math.tool",
            graded=n < num_tasks - num_excluded,
            passed=n < num_passed,
            score=float(n < num_passed),
        )
        for n in range(num_tasks)
    ]


def gate(decision_id: str, candidate: str, champion: str = "") -> GateRequest:
    return GateRequest(
        decision_id=decision_id,
        candidate_evaluation_id=candidate,
        champion_evaluation_id=champion,
        margin=0.05,
        alpha=0.05,
    )


async def evaluated(app: Registry, spec: EvaluationSpec, num_passed: int) -> None:
    await app.start_evaluation(spec)
    await app.record_results(spec.evaluation_id, results(num_passed, spec.tasks_per_domain))


async def test_an_evaluation_is_complete_when_every_task_is_graded_or_excluded(
    app: Registry, runs: ScriptedRuns
) -> None:
    await app.start_evaluation(evaluation("before", 0))
    await app.record_results("before", results(10)[:39])
    assert not (await app.get_evaluation("before")).is_complete
    await app.record_results("before", results(10, num_excluded=1))
    standing = await app.get_evaluation("before")
    assert standing.is_complete
    (domain,) = standing.domains
    assert (domain.num_graded, domain.num_passed, domain.num_excluded) == (39, 10, 1)


async def test_tasks_whose_groups_were_dropped_count_as_excluded_once_all_facts_arrived(
    app: Registry, runs: ScriptedRuns
) -> None:
    await app.start_evaluation(evaluation("before", 0))
    await app.record_results("before", results(10)[:30])
    runs.now = RunOutcome(is_over=True, num_closed=35)
    assert not (await app.get_evaluation("before")).is_complete
    await app.record_results("before", results(10)[:35])
    standing = await app.get_evaluation("before")
    assert standing.is_complete
    assert standing.domains[0].num_excluded == 5


async def test_repeating_a_start_runs_again_only_what_is_incomplete(app: Registry, runs: ScriptedRuns) -> None:
    await app.start_evaluation(evaluation("before", 0))
    await app.start_evaluation(evaluation("before", 0))
    await app.record_results("before", results(10))
    assert (await app.start_evaluation(evaluation("before", 0))).is_complete
    assert runs.started == ["before", "before"]


async def test_the_first_candidate_becomes_champion_and_a_better_one_follows(app: Registry, ledger: SqlLedger) -> None:
    with pytest.raises(JourneymanError) as caught:
        await app.champion()
    assert caught.value.code is ErrorCode.NOT_FOUND
    await evaluated(app, evaluation("before", 0), 10)
    await evaluated(app, evaluation("after", 60), 36)
    assert (await app.run_gate(gate("gate-1", "before"))).promoted
    decision = await app.run_gate(gate("gate-2", "after", "before"))
    assert decision.promoted
    assert decision.domains[0].num_pairs == 40
    assert (await app.champion()).ref == policy(60)
    assert [fact.topic for _, fact in await ledger.unpublished(9)] == ["policy.promoted", "policy.promoted"]


async def test_a_worse_candidate_is_rejected_with_the_reason(app: Registry, ledger: SqlLedger) -> None:
    await evaluated(app, evaluation("before", 0), 30)
    await evaluated(app, evaluation("after", 60), 10)
    await app.run_gate(gate("gate-1", "before"))
    decision = await app.run_gate(gate("gate-2", "after", "before"))
    assert not decision.promoted
    assert "math.tool" in decision.reason
    assert (await app.champion()).ref == policy(0)
    assert [fact.topic for _, fact in await ledger.unpublished(9)] == ["policy.promoted", "policy.rejected"]


async def test_repeating_a_decision_returns_it_even_when_the_champion_changed_since(app: Registry) -> None:
    await evaluated(app, evaluation("before", 0), 10)
    await evaluated(app, evaluation("after", 60), 36)
    first = await app.run_gate(gate("gate-1", "before"))
    second = await app.run_gate(gate("gate-2", "after", "before"))
    assert await app.run_gate(gate("gate-1", "before")) == first
    assert await app.run_gate(gate("gate-2", "after", "before")) == second


async def test_the_gate_refuses_what_it_cannot_compare(app: Registry) -> None:
    await evaluated(app, evaluation("before", 0), 10)
    await app.start_evaluation(evaluation("unfinished", 60))
    await evaluated(app, evaluation("after", 60), 36)
    await evaluated(app, replace(evaluation("other-seed", 60), seed=2), 36)
    await app.run_gate(gate("gate-1", "before"))
    refusals = {
        gate("a", "unfinished", "before"): ErrorCode.PRECONDITION,
        gate("b", "after"): ErrorCode.PRECONDITION,
        gate("c", "after", "after"): ErrorCode.PRECONDITION,
        gate("d", "other-seed", "before"): ErrorCode.INVALID_INPUT,
        gate("e", "absent", "before"): ErrorCode.NOT_FOUND,
    }
    for request, code in refusals.items():
        with pytest.raises(JourneymanError) as caught:
            await app.run_gate(request)
        assert caught.value.code is code
