"""Registry records to protobuf and back. Total: what cannot be said in records is INVALID_INPUT."""

from jm.events.v1 import events_pb2 as events
from jm.registry.v1 import registry_pb2 as registry

from journeyman.bus.envelope import event_id, outgoing, wrap
from journeyman.bus.port import Outgoing
from journeyman.convert import policy_ref_from_proto, policy_ref_to_proto
from journeyman.errors import ErrorCode, JourneymanError
from registry_service.app import GateRequest
from registry_service.core.records import Decision, EvaluationSpec, PolicyEntry, TaskResult
from registry_service.core.tally import Tally


def spec_from_proto(request: registry.StartEvaluationRequest) -> EvaluationSpec:
    """INVALID_INPUT names the field that is wrong."""
    _require(bool(request.evaluation_id), "evaluation_id is empty: choose one")
    _require(request.HasField("policy"), "policy is absent: name the policy to evaluate")
    _require(len(request.domains) > 0, "domains is empty: name at least one")
    _require(request.tasks_per_domain >= 1, f"tasks_per_domain={request.tasks_per_domain}: must be at least 1")
    _require(request.temperature >= 0, f"temperature={request.temperature}: must be at least 0")
    return EvaluationSpec(
        evaluation_id=request.evaluation_id,
        policy=policy_ref_from_proto(request.policy),
        domains=tuple(sorted(set(request.domains))),
        tasks_per_domain=request.tasks_per_domain,
        seed=request.seed,
        temperature=request.temperature,
    )


def gate_request_from_proto(request: registry.RunGateRequest) -> GateRequest:
    """INVALID_INPUT names the field that is wrong."""
    _require(bool(request.decision_id), "decision_id is empty: choose one")
    _require(bool(request.candidate_evaluation_id), "candidate_evaluation_id is empty: name a complete evaluation")
    _require(0 <= request.margin <= 1, f"margin={request.margin}: must be in 0..1")
    _require(0 < request.alpha < 1, f"alpha={request.alpha}: must be between 0 and 1")
    return GateRequest(
        decision_id=request.decision_id,
        candidate_evaluation_id=request.candidate_evaluation_id,
        champion_evaluation_id=request.champion_evaluation_id,
        margin=request.margin,
        alpha=request.alpha,
    )


def results_from_proto(closed: events.GroupClosed) -> list[TaskResult]:
    """An evaluation group has one member; of others every member counts as a result of the task."""
    return [
        TaskResult(
            group_id=closed.group_id if member.index == 0 else f"{closed.group_id}#{member.index}",
            task_id=closed.task_id,
            domain=closed.domain,
            graded=member.graded,
            passed=member.passed,
            score=member.score,
        )
        for member in closed.members
    ]


def tally_to_proto(tally: Tally) -> registry.Evaluation:
    """An evaluation as it stands."""
    return registry.Evaluation(
        evaluation_id=tally.spec.evaluation_id,
        policy=policy_ref_to_proto(tally.spec.policy),
        domains=[
            registry.DomainScore(
                domain=domain.domain,
                num_graded=domain.num_graded,
                num_passed=domain.num_passed,
                num_excluded=domain.num_excluded,
            )
            for domain in tally.domains
        ],
        is_complete=tally.is_complete,
        num_tasks=tally.spec.num_tasks,
    )


def policy_to_proto(entry: PolicyEntry) -> registry.Policy:
    """A policy with its standing."""
    return registry.Policy(
        ref=policy_ref_to_proto(entry.ref),
        parent=None if entry.parent is None else policy_ref_to_proto(entry.parent),
        made_by=entry.made_by,
        standing=entry.standing,
    )


def decision_to_proto(decision: Decision) -> registry.RunGateResponse:
    """A decision with its word on every domain."""
    return registry.RunGateResponse(
        decision_id=decision.decision_id,
        promoted=decision.promoted,
        reason=decision.reason,
        domains=[
            registry.DomainDecision(
                domain=domain.domain,
                difference=domain.difference,
                p_value=domain.p_value,
                is_non_inferior=domain.is_non_inferior,
                num_pairs=domain.num_pairs,
            )
            for domain in decision.domains
        ],
    )


def fact_of(decision: Decision) -> Outgoing:
    """policy.promoted or policy.rejected, with an id that follows from the decision's."""
    ref = policy_ref_to_proto(decision.candidate)
    payload: events.PolicyPromoted | events.PolicyRejected
    if decision.promoted:
        payload = events.PolicyPromoted(policy=ref, decision_id=decision.decision_id)
    else:
        payload = events.PolicyRejected(policy=ref, decision_id=decision.decision_id, reason=decision.reason)
    fact_id = event_id("gate", decision.decision_id)
    return outgoing(wrap(payload, event_id=fact_id, run_id=decision.candidate.run_id), decision.candidate.run_id)


def _require(holds: bool, message: str) -> None:
    if not holds:
        raise JourneymanError(ErrorCode.INVALID_INPUT, message)
