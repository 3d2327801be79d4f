"""The state machine of a group and its rollouts (lifecycle.md), as pure functions from one Group to the next.

Called by playing.py and results.py. Every function accepts any state: an event that does not apply (a repeat, a stale attempt, a late
arrival) gives the group back unchanged, `step.group is group`, with no facts. Terminal states never change.

Invariants: only the current attempt of a LEASED or RECORDED rollout can change it; a member that infrastructure ended is retried, then
EXCLUDED, and never GRADED; TAKEN never goes back to READY.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from journeyman.packs.port import RewardRule
from journeyman.records import Attribution, ObjectRef, PolicyVersion, Task, Verdict, VerdictStatus
from scheduler_service.core.group import DropReason, FactKind, Group, GroupState, Rollout, RolloutState, Step
from scheduler_service.core.judging import dropped, settled

IN_PLAY = (GroupState.ADMITTED, GroupState.OPEN)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What the run and the domain say about judging a group."""

    trains: bool
    """False for evaluation and collect runs, whose groups are CLOSED."""
    retry_budget: int
    min_graded: int
    reward: RewardRule


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberRecord:
    """One member of a trajectory.recorded fact."""

    index: int
    attempt: int
    completed: bool
    attribution: Attribution | None
    num_sampled_tokens: int = 0
    num_turns: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedMember:
    """One verdict of a trajectory.verified fact and the object it speaks of."""

    verdict: Verdict
    object: ObjectRef | None


def admit(*, run_id: str, number: int, task: Task, group_size: int, now_s: float) -> Group:
    """A new group, all members WAITING."""
    return Group(
        group_id=f"{run_id}/g{number:06d}",
        run_id=run_id,
        number=number,
        task=task,
        state=GroupState.ADMITTED,
        rollouts=tuple(Rollout(index=index) for index in range(group_size)),
        admitted_at_s=now_s,
        changed_at_s=now_s,
    )


def lease(group: Group, indexes: Iterable[int], worker_id: str, until_s: float, now_s: float) -> Step:
    """WAITING members become LEASED under a higher attempt; the first lease opens the group."""
    chosen = set(indexes)
    rollouts = tuple(
        _leased(rollout, worker_id, until_s)
        if rollout.index in chosen and rollout.state is RolloutState.WAITING
        else rollout
        for rollout in group.rollouts
    )
    if group.state is GroupState.ADMITTED:
        return Step(group=replace(group, rollouts=rollouts, state=GroupState.OPEN, changed_at_s=now_s))
    return Step(group=replace(group, rollouts=rollouts) if group.state is GroupState.OPEN else group)


def _leased(rollout: Rollout, worker_id: str, until_s: float) -> Rollout:
    return replace(
        rollout,
        state=RolloutState.LEASED,
        attempt=rollout.attempt + 1,
        worker_id=worker_id,
        until_s=until_s,
        num_requeued=rollout.num_requeued + rollout.is_requeue_due,
        is_requeue_due=False,
    )


def holds(group: Group, index: int, attempt: int, worker_id: str) -> bool:
    """Whether this worker holds this attempt now."""
    rollout = group.rollouts[index] if 0 <= index < len(group.rollouts) else None
    return rollout is not None and _is_current(rollout, attempt) and rollout.worker_id == worker_id


def _is_current(rollout: Rollout, attempt: int) -> bool:
    return rollout.state is RolloutState.LEASED and rollout.attempt == attempt


def renew(group: Group, indexes: Iterable[int], until_s: float) -> Group:
    """Extends the leases of members that the caller checked with `holds`."""
    chosen = set(indexes)
    return replace(
        group,
        rollouts=tuple(replace(r, until_s=until_s) if r.index in chosen else r for r in group.rollouts),
    )


def give_back(group: Group, index: int, attempt: int, cause: Attribution | None, rules: Rules, now_s: float) -> Step:
    """The holder returns a lease: None unplayed, at no cost; else an infrastructure failure."""
    rollout = group.rollouts[index]
    if not _is_current(rollout, attempt):
        return Step(group=group)
    unplayed = replace(rollout, state=RolloutState.WAITING, worker_id="")
    return _with(group, {index: unplayed if cause is None else _failed(rollout, cause, rules)}, rules, now_s)


def expire(group: Group, rules: Rules, now_s: float) -> Step:
    """Leases whose time is over are lost."""
    return _lose(group, [rollout for rollout in group.rollouts if rollout.until_s <= now_s], rules, now_s)


def lose_worker(group: Group, worker_id: str, rules: Rules, now_s: float) -> Step:
    """All leases of a worker that is known to be gone are lost."""
    return _lose(group, [rollout for rollout in group.rollouts if rollout.worker_id == worker_id], rules, now_s)


def _lose(group: Group, rollouts: Iterable[Rollout], rules: Rules, now_s: float) -> Step:
    """A lost lease is an infrastructure failure of class scheduler."""
    leased = [rollout for rollout in rollouts if rollout.state is RolloutState.LEASED]
    changed = {rollout.index: _failed(rollout, Attribution.SCHEDULER, rules) for rollout in leased}
    return _with(group, changed, rules, now_s) if changed else Step(group=group)


def _failed(rollout: Rollout, cause: Attribution, rules: Rules) -> Rollout:
    """WAITING for another attempt inside the retry budget, then EXCLUDED. A cause that blames the model is a reporting error."""
    num_failures = rollout.num_failures + 1
    is_spent = num_failures > rules.retry_budget
    return replace(
        rollout,
        state=RolloutState.EXCLUDED if is_spent else RolloutState.WAITING,
        worker_id="",
        num_failures=num_failures,
        is_requeue_due=not is_spent,
        attribution=Attribution.SCHEDULER if cause.is_evidence else cause,
    )


def record(group: Group, members: Sequence[MemberRecord], stored: ObjectRef | None, rules: Rules, now_s: float) -> Step:
    """trajectory.recorded: completed members are RECORDED, the others are retried or EXCLUDED. Stale attempts change nothing."""
    changed: dict[int, Rollout] = {}
    for member in members:
        if not 0 <= member.index < len(group.rollouts):
            continue
        rollout = group.rollouts[member.index]
        if _is_current(rollout, member.attempt):
            changed[member.index] = _recorded(rollout, member, stored, rules)
    return _with(group, changed, rules, now_s) if changed else Step(group=group)


def _recorded(rollout: Rollout, member: MemberRecord, stored: ObjectRef | None, rules: Rules) -> Rollout:
    if not member.completed:
        return _failed(rollout, member.attribution or Attribution.SCHEDULER, rules)
    if stored is None:
        return _failed(rollout, Attribution.STORAGE, rules)
    return replace(
        rollout,
        state=RolloutState.RECORDED,
        is_recorded=True,
        object=stored,
        attribution=member.attribution,
        num_turns=member.num_turns,
        num_sampled_tokens=member.num_sampled_tokens,
    )


def judge(group: Group, members: Sequence[JudgedMember], rules: Rules, now_s: float) -> Step:
    """trajectory.verified. It may overtake trajectory.recorded: the verdict on the current attempt proves that there is a record."""
    changed: dict[int, Rollout] = {}
    for member in members:
        verdict = member.verdict
        rollout = group.rollouts[verdict.index] if 0 <= verdict.index < len(group.rollouts) else None
        if (
            rollout is not None
            and rollout.attempt == verdict.attempt
            and rollout.state in (RolloutState.LEASED, RolloutState.RECORDED)
        ):
            changed[rollout.index] = _judged(rollout, member)
    return _with(group, changed, rules, now_s) if changed else Step(group=group)


def _judged(rollout: Rollout, member: JudgedMember) -> Rollout:
    verdict = member.verdict
    known = replace(
        rollout,
        is_recorded=True,
        object=member.object or rollout.object,
        num_turns=verdict.num_turns,
        num_sampled_tokens=verdict.num_sampled_tokens or rollout.num_sampled_tokens,
    )
    if verdict.status is VerdictStatus.BAD_TASK:
        return replace(known, state=RolloutState.EXCLUDED, attribution=Attribution.BAD_TASK)
    if known.object is None or not _is_score(verdict):
        return replace(known, state=RolloutState.EXCLUDED, attribution=Attribution.VERIFIER)
    return replace(
        known,
        state=RolloutState.GRADED,
        attribution=verdict.attribution,
        score=verdict.score,
        passed=verdict.passed,
        partial=verdict.partial,
    )


def _is_score(verdict: Verdict) -> bool:
    """Whether the verdict may train. A grade that blames infrastructure, or is no number, is the verifier's failure."""
    return (
        verdict.status is VerdictStatus.GRADED
        and verdict.attribution.is_evidence
        and math.isfinite(verdict.score)
        and math.isfinite(verdict.partial)
    )


def _with(group: Group, changed: dict[int, Rollout], rules: Rules, now_s: float) -> Step:
    """The group with some members changed, and judged if that settled it. Groups out of play do not change."""
    if group.state not in IN_PLAY:
        return Step(group=group)
    rollouts = tuple(changed.get(rollout.index, rollout) for rollout in group.rollouts)
    return settled(
        replace(group, rollouts=rollouts), rules.reward, trains=rules.trains, min_graded=rules.min_graded, now_s=now_s
    )


def take(group: Group, into: PolicyVersion, now_s: float) -> Step:
    """group.taken. A trainer that crashed takes the same group again, into a version of its new incarnation; the old one is gone."""
    match group.state:
        case GroupState.READY:
            return Step(group=replace(group, state=GroupState.TAKEN, trained_into=into, changed_at_s=now_s))
        case GroupState.TAKEN if group.trained_into is None or into > group.trained_into:
            return Step(group=replace(group, trained_into=into))
        case _:
            return Step(group=group)


def commit(group: Group, version: PolicyVersion, now_s: float) -> Step:
    """group.committed. It may overtake group.taken, being on another topic: a committed group was taken."""
    if group.state not in (GroupState.READY, GroupState.TAKEN):
        return Step(group=group)
    into = group.trained_into or version
    return Step(group=replace(group, state=GroupState.COMMITTED, trained_into=into, changed_at_s=now_s))


def drop_by_trainer(group: Group, reason: DropReason, detail: str, now_s: float) -> Step:
    """group.dropped by the trainer. No fact: the trainer has published it.

    From TAKEN too: a trainer that took the group, crashed before a checkpoint held the step and trains again from an older one may find
    the group's tokens too old by then. The step that had trained on it does not exist any more, so the group did not train.
    """
    if group.state not in (GroupState.READY, GroupState.TAKEN):
        return Step(group=group)
    return Step(group=replace(dropped(group, reason, detail, now_s), trained_into=None))


def cancel(group: Group, now_s: float) -> Step:
    """The run was cancelled; what the trainer has taken is left to it."""
    if group.state.is_terminal or group.state is GroupState.TAKEN:
        return Step(group=group)
    return Step(group=dropped(group, DropReason.CANCELLED, "", now_s), facts=(FactKind.DROPPED,))
