"""Records of the scheduler <-> protobuf, for its edges. The common nouns are converted by journeyman.convert."""

from typing import cast

from jm.common.v1 import common_pb2 as common
from jm.events.v1 import events_pb2 as ev
from jm.scheduler.v1 import scheduler_pb2 as pb

from journeyman.convert import (
    attribution_to_proto,
    policy_ref_from_proto,
    policy_version_to_proto,
    seconds_from_duration,
    seconds_to_duration,
    selector_from_proto,
    selector_to_proto,
    split_from_proto,
    split_to_proto,
    task_to_proto,
    timestamp_from_unix_s,
)
from journeyman.errors import ErrorCode, JourneymanError
from scheduler_service.core.audit import Findings
from scheduler_service.core.group import DropReason, Group, Rollout
from scheduler_service.core.leasing import Ask
from scheduler_service.core.planning import rollout_seed
from scheduler_service.core.playing import AttemptName, LeasedGroup
from scheduler_service.core.run import DomainRecord, DomainShare, Run, RunKind, RunSpec, RunState
from scheduler_service.views import Status

_KIND = {kind: cast("pb.RunKind", pb.RunKind.Value(f"RUN_KIND_{kind.name}")) for kind in RunKind}
_STATE = {state: cast("pb.RunState", pb.RunState.Value(f"RUN_STATE_{state.name}")) for state in RunState}
_REASON = {reason: cast("ev.DropReason", ev.DropReason.Value(f"DROP_REASON_{reason.name}")) for reason in DropReason}


def drop_reason_to_proto(reason: DropReason) -> ev.DropReason:
    """Never UNSPECIFIED."""
    return _REASON[reason]


def drop_reason_from_proto(value: int) -> DropReason:
    """INVALID_INPUT for UNSPECIFIED."""
    for reason, number in _REASON.items():
        if number == value:
            return reason
    raise JourneymanError(ErrorCode.INVALID_INPUT, f"reason={value}: is no drop reason")


def spec_from_proto(message: pb.RunSpec) -> RunSpec:
    """INVALID_INPUT names the enum or selector that is missing; run_rules checks the rest."""
    kind = next((kind for kind, number in _KIND.items() if number == message.kind), None)
    if kind is None:
        raise JourneymanError(
            ErrorCode.INVALID_INPUT, f"kind={message.kind}: choose RUN_KIND_TRAIN, RUN_KIND_EVAL or RUN_KIND_COLLECT"
        )
    return RunSpec(
        run_id=message.run_id,
        kind=kind,
        domains=tuple(
            DomainShare(domain=share.domain, levels=tuple(share.levels), num_groups=share.num_groups)
            for share in message.domains
        ),
        split=split_from_proto(message.split),
        policy=selector_from_proto(message.policy),
        group_size=message.group_size,
        admission_slots=message.admission_slots,
        min_graded=message.min_graded,
        retry_budget=message.retry_budget,
        lease_s=seconds_from_duration(message.lease),
        seed=message.seed,
        max_off_policy_steps=message.max_off_policy_steps,
        temperature=message.temperature,
    )


def spec_to_proto(spec: RunSpec) -> pb.RunSpec:
    """Field by field."""
    return pb.RunSpec(
        run_id=spec.run_id,
        kind=_KIND[spec.kind],
        domains=[
            pb.DomainShare(domain=share.domain, levels=share.levels, num_groups=share.num_groups)
            for share in spec.domains
        ],
        split=split_to_proto(spec.split),
        policy=selector_to_proto(spec.policy),
        group_size=spec.group_size,
        admission_slots=spec.admission_slots,
        min_graded=spec.min_graded,
        retry_budget=spec.retry_budget,
        lease=seconds_to_duration(spec.lease_s),
        seed=spec.seed,
        max_off_policy_steps=spec.max_off_policy_steps,
        temperature=spec.temperature,
    )


def run_to_proto(view: tuple[Run, Findings]) -> pb.Run:
    """A run and what was found of its promises."""
    run, findings = view
    totals = run.totals
    return pb.Run(
        spec=spec_to_proto(run.spec),
        state=_STATE[run.state],
        groups=pb.GroupCounts(
            admitted=run.num_admitted,
            in_flight=totals.in_flight,
            ready=totals.ready,
            taken=totals.taken,
            committed=totals.committed,
            closed=totals.closed,
            dropped=totals.dropped,
        ),
        drops=[pb.DropCount(reason=_REASON[reason], count=count) for reason, count in run.drops],
        domains=[_domain_to_proto(record) for record in run.domains],
        requeued_rollouts=run.num_requeued,
        infra_failures_in_advantages=findings.num_infra_in_advantages,
        lost_groups=findings.num_lost_groups,
        trajectories=run.num_trajectories,
        sampled_tokens=run.num_sampled_tokens,
    )


def _domain_to_proto(record: DomainRecord) -> pb.DomainProgress:
    return pb.DomainProgress(
        domain=record.domain,
        num_graded=record.num_graded,
        num_passed=record.num_passed,
        recent_pass_rate=record.recent_pass_rate or 0.0,
        num_excluded=record.num_excluded,
        standing=record.standing.value,
    )


def group_to_proto(group: Group) -> pb.GroupRow:
    """A row of ListGroups."""
    return pb.GroupRow(
        group_id=group.group_id,
        state=group.state.value,
        drop_reason=_REASON[group.drop_reason] if group.drop_reason else ev.DROP_REASON_UNSPECIFIED,
        task_id=group.task.task_id,
        domain=group.task.domain,
        level=group.task.level,
        rollouts=[_rollout_to_proto(rollout) for rollout in group.rollouts],
        admitted_at=timestamp_from_unix_s(group.admitted_at_s),
        changed_at=timestamp_from_unix_s(group.changed_at_s),
        trained_into=policy_version_to_proto(group.trained_into) if group.trained_into else None,
    )


def _rollout_to_proto(rollout: Rollout) -> pb.RolloutRow:
    return pb.RolloutRow(
        index=rollout.index,
        state=rollout.state.value,
        attempt=rollout.attempt,
        worker_id=rollout.worker_id,
        attribution=attribution_to_proto(rollout.attribution)
        if rollout.attribution
        else common.ATTRIBUTION_UNSPECIFIED,
        passed=rollout.passed,
        reward=rollout.reward or 0.0,
    )


def ask_from_proto(message: pb.LeaseRequest) -> Ask:
    """What a worker asks for."""
    return Ask(
        worker_id=message.worker_id,
        max_rollouts=message.max_rollouts,
        loaded=policy_ref_from_proto(message.loaded) if message.HasField("loaded") else None,
        is_idle=message.is_idle,
    )


def lease_to_proto(leased: LeasedGroup) -> pb.GroupLease:
    """What a worker gets of one group."""
    group, spec = leased.group, leased.run.spec
    task_id = group.task.task_id
    return pb.GroupLease(
        group_id=group.group_id,
        run_id=group.run_id,
        task=task_to_proto(group.task),
        policy=selector_to_proto(spec.policy),
        rollouts=[
            pb.LeasedRollout(
                index=index, attempt=group.rollouts[index].attempt, seed=rollout_seed(spec.seed, task_id, index)
            )
            for index in leased.indexes
        ],
        until=timestamp_from_unix_s(leased.until_s),
        temperature=spec.temperature,
    )


def attempt_from_proto(message: pb.RolloutAttempt) -> AttemptName:
    """Field by field."""
    return AttemptName(group_id=message.group_id, index=message.index, attempt=message.attempt)


def attempt_to_proto(name: AttemptName) -> pb.RolloutAttempt:
    """Field by field."""
    return pb.RolloutAttempt(group_id=name.group_id, index=name.index, attempt=name.attempt)


def status_to_proto(status: Status) -> pb.GetStatusResponse:
    """The scheduler as a whole."""
    return pb.GetStatusResponse(
        runs=[run_to_proto(view) for view in status.runs],
        slot_seconds=[pb.IdleTotal(cause=cause, seconds=seconds) for cause, seconds in status.slot_seconds.items()],
        num_workers=status.num_workers,
        num_leased=status.num_leased,
    )
