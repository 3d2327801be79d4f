"""Use cases of the registry: keep policies, evaluate them over domains, let the gate decide who is champion."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from journeyman.bus.port import Outgoing
from journeyman.errors import ErrorCode, JourneymanError
from journeyman.records import PolicyRef
from registry_service.core.gate import compare_domains, verdict
from registry_service.core.records import Decision, EvaluationSpec, PolicyEntry, TaskResult
from registry_service.core.tally import Tally, tally
from registry_service.ports import EvaluationRuns, Ledger


@dataclass(frozen=True, slots=True, kw_only=True)
class GateRequest:
    """What to decide."""

    decision_id: str
    candidate_evaluation_id: str
    champion_evaluation_id: str
    """Empty when there is no champion."""
    margin: float
    alpha: float


class Registry:
    """The application. Every use case may be repeated with the same id."""

    def __init__(self, ledger: Ledger, runs: EvaluationRuns, fact_of: Callable[[Decision], Outgoing]) -> None:
        self._ledger = ledger
        self._runs = runs
        self._fact_of = fact_of

    async def record_policy(self, ref: PolicyRef, parent: PolicyRef | None, made_by: str) -> None:
        """Puts a published policy on record."""
        await self._ledger.add_policy(ref, parent, made_by)

    async def list_policies(self, run_id: str) -> Sequence[PolicyEntry]:
        """Newest first."""
        return await self._ledger.policies(run_id)

    async def champion(self) -> PolicyEntry:
        """NOT_FOUND before the first."""
        champion = await self._ledger.champion()
        if champion is None:
            raise JourneymanError(ErrorCode.NOT_FOUND, "there is no champion yet: RunGate promotes the first candidate")
        return champion

    async def start_evaluation(self, spec: EvaluationSpec) -> Tally:
        """Remembers the evaluation first, so that no result of its run can arrive unknown; then starts the run."""
        await self._ledger.add_evaluation(spec)
        standing = tally(spec, await self._ledger.results(spec.evaluation_id), run_is_over=False)
        if not standing.is_complete:
            await self._runs.start(spec)
        return standing

    async def record_results(self, evaluation_id: str, results: Sequence[TaskResult]) -> None:
        """Keeps results of an evaluation's run; those of other runs are ignored."""
        await self._ledger.add_results(evaluation_id, results)

    async def get_evaluation(self, evaluation_id: str) -> Tally:
        """As it stands. Groups that the scheduler dropped never report: their tasks count as excluded once the run is over."""
        spec = await self._spec(evaluation_id)
        results = await self._ledger.results(evaluation_id)
        standing = tally(spec, results, run_is_over=False)
        if standing.is_complete:
            return standing
        outcome = await self._runs.outcome(evaluation_id)
        all_told = outcome.is_over and len(results) >= outcome.num_closed
        return tally(spec, results, run_is_over=all_told)

    async def run_gate(self, request: GateRequest) -> Decision:
        """Decides once for each decision_id; repeating it returns the decision."""
        known = await self._ledger.decision(request.decision_id)
        if known is not None:
            return known
        candidate = await self._complete(request.candidate_evaluation_id)
        decision = await self._decide(request, candidate, await self._ledger.champion())
        await self._ledger.add_decision(decision, self._fact_of(decision))
        return decision

    async def _decide(self, request: GateRequest, candidate: EvaluationSpec, champion: PolicyEntry | None) -> Decision:
        if champion is None:
            return _first(request, candidate)
        reference = await self._reference(request, candidate, champion)
        domains = compare_domains(
            candidate.domains,
            await self._ledger.results(candidate.evaluation_id),
            await self._ledger.results(reference.evaluation_id),
            margin=request.margin,
            alpha=request.alpha,
        )
        promoted, reason = verdict(domains, margin=request.margin)
        return Decision(
            decision_id=request.decision_id,
            candidate_evaluation_id=candidate.evaluation_id,
            champion_evaluation_id=reference.evaluation_id,
            candidate=candidate.policy,
            promoted=promoted,
            reason=reason,
            domains=domains,
        )

    async def _reference(
        self, request: GateRequest, candidate: EvaluationSpec, champion: PolicyEntry
    ) -> EvaluationSpec:
        """The champion's evaluation, checked to be of the champion and on the candidate's tasks."""
        if not request.champion_evaluation_id:
            raise JourneymanError(
                ErrorCode.PRECONDITION,
                f"champion_evaluation_id is empty, but {champion.ref.name} is champion: name its evaluation",
            )
        reference = await self._complete(request.champion_evaluation_id)
        if reference.policy != champion.ref:
            raise JourneymanError(
                ErrorCode.PRECONDITION,
                f"evaluation {reference.evaluation_id} is of {reference.policy.name}, but {champion.ref.name} is champion",
            )
        if not reference.is_paired_with(candidate):
            raise JourneymanError(
                ErrorCode.INVALID_INPUT,
                f"evaluations {candidate.evaluation_id} and {reference.evaluation_id} differ in domains, tasks, seed or temperature:"
                " evaluate both alike",
            )
        return reference

    async def _complete(self, evaluation_id: str) -> EvaluationSpec:
        standing = await self.get_evaluation(evaluation_id)
        if not standing.is_complete:
            raise JourneymanError(ErrorCode.PRECONDITION, f"evaluation {evaluation_id} is not complete: wait for it")
        return standing.spec

    async def _spec(self, evaluation_id: str) -> EvaluationSpec:
        spec = await self._ledger.evaluation(evaluation_id)
        if spec is None:
            raise JourneymanError(ErrorCode.NOT_FOUND, f"no evaluation {evaluation_id}")
        return spec


def _first(request: GateRequest, candidate: EvaluationSpec) -> Decision:
    return Decision(
        decision_id=request.decision_id,
        candidate_evaluation_id=candidate.evaluation_id,
        champion_evaluation_id="",
        candidate=candidate.policy,
        promoted=True,
        reason="there was no champion",
        domains=(),
    )
