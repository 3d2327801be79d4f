"""Decisions on facts from the bus: what was played, what the verifier said, what the trainer did. Called by app.py inside a Draft.

Facts may come twice, late and in any order. Facts about groups that are unknown or finished change nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from journeyman.records import ObjectRef, PolicyVersion
from scheduler_service.core import group_state
from scheduler_service.core.group import DropReason
from scheduler_service.core.group_state import JudgedMember, MemberRecord
from scheduler_service.core.working_set import Draft


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """trajectory.recorded."""

    group_id: str
    members: tuple[MemberRecord, ...]
    object: ObjectRef | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Verified:
    """trajectory.verified."""

    group_id: str
    members: tuple[JudgedMember, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """group.taken."""

    group_id: str
    into: PolicyVersion


@dataclass(frozen=True, slots=True, kw_only=True)
class Committed:
    """group.committed."""

    group_id: str
    version: PolicyVersion


@dataclass(frozen=True, slots=True, kw_only=True)
class DroppedByTrainer:
    """group.dropped; also the scheduler's own, which come back and find the group finished."""

    group_id: str
    reason: DropReason
    detail: str


Incoming = Recorded | Verified | Taken | Committed | DroppedByTrainer


def receive(draft: Draft, facts: Sequence[Incoming]) -> int:
    """Lets facts change their groups, in order; returns how many changed something."""
    return sum(_receive(draft, fact) for fact in facts)


def _receive(draft: Draft, fact: Incoming) -> bool:
    group = draft.group(fact.group_id)
    if group is None:
        return False
    match fact:
        case Recorded(members=members, object=stored):
            step = group_state.record(group, members, stored, draft.rules(group), draft.now_s)
        case Verified(members=judged):
            step = group_state.judge(group, judged, draft.rules(group), draft.now_s)
        case Taken(into=into):
            step = group_state.take(group, into, draft.now_s)
        case Committed(version=version):
            step = group_state.commit(group, version, draft.now_s)
        case DroppedByTrainer(reason=reason, detail=detail):
            step = group_state.drop_by_trainer(group, reason, detail, draft.now_s)
    return draft.put(step, group)
