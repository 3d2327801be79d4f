"""Facts of the scheduler <-> the bus: core Facts as outgoing records, envelopes as what results.receive takes.

Ids follow from the group: a group becomes ready, closed or dropped once, so a fact published twice has one id.
"""

from jm.common.v1 import common_pb2 as common
from jm.events.v1 import events_pb2 as ev

from journeyman.bus.envelope import event_id, outgoing, wrap
from journeyman.bus.port import Outgoing
from journeyman.convert import (
    attribution_from_proto,
    object_ref_from_proto,
    object_ref_to_proto,
    policy_version_from_proto,
    verdict_from_proto,
)
from scheduler_service.convert import drop_reason_from_proto, drop_reason_to_proto
from scheduler_service.core.group import DropReason, Fact, FactKind, Group, Rollout, RolloutState
from scheduler_service.core.group_state import JudgedMember, MemberRecord
from scheduler_service.core.results import Committed, DroppedByTrainer, Incoming, Recorded, Taken, Verified


def to_outgoing(fact: Fact) -> Outgoing:
    """A record for the bus, keyed by the group."""
    group = fact.group
    payload = _payload(fact)
    identity = event_id(f"group.{fact.kind.value}", group.group_id)
    return outgoing(wrap(payload, event_id=identity, run_id=group.run_id), group.group_id)


def _payload(fact: Fact) -> ev.GroupReady | ev.GroupClosed | ev.GroupDropped:
    match fact.kind:
        case FactKind.READY:
            return _ready(fact.group, fact.max_off_policy_steps)
        case FactKind.CLOSED:
            return _closed(fact.group)
        case FactKind.DROPPED:
            group = fact.group
            reason = drop_reason_to_proto(group.drop_reason or DropReason.CANCELLED)
            return ev.GroupDropped(group_id=group.group_id, reason=reason, detail=group.detail)


def _ready(group: Group, max_off_policy_steps: int) -> ev.GroupReady:
    members = [group.rollouts[index] for index in group.ready_members]
    return ev.GroupReady(
        group_id=group.group_id,
        domain=group.task.domain,
        level=group.task.level,
        members=[_ready_member(rollout) for rollout in members],
        num_excluded=len(group.rollouts) - len(members),
        max_off_policy_steps=max_off_policy_steps,
    )


def _ready_member(rollout: Rollout) -> ev.ReadyMember:
    return ev.ReadyMember(
        index=rollout.index,
        attempt=rollout.attempt,
        object=object_ref_to_proto(rollout.object) if rollout.object else None,
        reward=rollout.reward or 0.0,
        passed=rollout.passed,
    )


def _closed(group: Group) -> ev.GroupClosed:
    return ev.GroupClosed(
        group_id=group.group_id,
        task_id=group.task.task_id,
        domain=group.task.domain,
        level=group.task.level,
        members=[_closed_member(rollout) for rollout in group.rollouts],
    )


def _closed_member(rollout: Rollout) -> ev.ClosedMember:
    """An excluded member carries no result, whatever was seen of it before."""
    if rollout.state is not RolloutState.GRADED:
        return ev.ClosedMember(index=rollout.index, graded=False)
    return ev.ClosedMember(
        index=rollout.index, graded=True, passed=rollout.passed, score=rollout.score, num_turns=rollout.num_turns
    )


def incoming(envelope: ev.Envelope) -> Incoming:
    """What an envelope says to the scheduler. INVALID_INPUT for unknown enum values."""
    match envelope.WhichOneof("payload"):
        case "trajectory_recorded":
            return _recorded(envelope.trajectory_recorded)
        case "trajectory_verified":
            return _verified(envelope.trajectory_verified)
        case "group_taken":
            taken = envelope.group_taken
            return Taken(group_id=taken.group_id, into=policy_version_from_proto(taken.into))
        case "group_committed":
            committed = envelope.group_committed
            return Committed(group_id=committed.group_id, version=policy_version_from_proto(committed.version))
        case _:
            gone = envelope.group_dropped
            return DroppedByTrainer(
                group_id=gone.group_id, reason=drop_reason_from_proto(gone.reason), detail=gone.detail
            )


def _recorded(fact: ev.TrajectoryRecorded) -> Recorded:
    return Recorded(
        group_id=fact.group_id,
        object=object_ref_from_proto(fact.object) if fact.HasField("object") else None,
        members=tuple(_member(member) for member in fact.members),
    )


def _member(member: ev.RecordedMember) -> MemberRecord:
    is_named = member.attribution != common.ATTRIBUTION_UNSPECIFIED
    return MemberRecord(
        index=member.index,
        attempt=member.attempt,
        completed=member.completed,
        attribution=attribution_from_proto(member.attribution) if is_named else None,
        num_sampled_tokens=member.num_sampled_tokens,
        num_turns=member.num_turns,
    )


def _verified(fact: ev.TrajectoryVerified) -> Verified:
    return Verified(
        group_id=fact.group_id,
        members=tuple(
            JudgedMember(
                verdict=verdict_from_proto(verdict),
                object=object_ref_from_proto(verdict.object) if verdict.HasField("object") else None,
            )
            for verdict in fact.verdicts
        ),
    )
