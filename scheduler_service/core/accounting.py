"""Counters of a run as a function of its groups' transitions. Called by draft.py with a group before and after a step.

Nothing counts by itself: the difference between two versions of a group says what to add, so a repeated event adds nothing.
"""

from dataclasses import replace

from scheduler_service.core import curriculum
from scheduler_service.core.group import DropReason, Group, GroupState, Rollout, RolloutState
from scheduler_service.core.run import TOTAL_OF, DomainRecord, GroupTotals, Run, RunKind


def account(run: Run, before: Group | None, after: Group) -> Run:
    """The run's counters after the step. before is None where the group was just admitted."""
    old = before.rollouts if before else tuple(Rollout(index=rollout.index) for rollout in after.rollouts)
    changes = [(was, now) for was, now in zip(old, after.rollouts, strict=True) if was is not now]
    newly = [now for was, now in changes if now.is_recorded and not was.is_recorded]
    counted = replace(
        run,
        num_admitted=run.num_admitted + (before is None),
        totals=_moved(run.totals, before.state if before else None, after.state),
        drops=_dropped(run, before, after),
        num_requeued=run.num_requeued + sum(now.num_requeued - was.num_requeued for was, now in changes),
        num_trajectories=run.num_trajectories + len(newly),
        num_sampled_tokens=run.num_sampled_tokens
        + sum(now.num_sampled_tokens - was.num_sampled_tokens for was, now in changes),
    )
    return _learnt(counted, after) if is_judged_by(before, after) else counted


def is_judged_by(before: Group | None, after: Group) -> bool:
    """Whether this step judged the group."""
    was_in_play = before is None or before.state in (GroupState.ADMITTED, GroupState.OPEN)
    by_judgement = after.state in (GroupState.READY, GroupState.CLOSED) or after.drop_reason in (
        DropReason.INFRA,
        DropReason.ZERO_VARIANCE,
        DropReason.POISONED,
    )
    return was_in_play and by_judgement


def _moved(totals: GroupTotals, old: GroupState | None, new: GroupState) -> GroupTotals:
    if old is not None and TOTAL_OF[old] == TOTAL_OF[new]:
        return totals
    changes = {TOTAL_OF[new]: getattr(totals, TOTAL_OF[new]) + 1}
    if old is not None:
        changes[TOTAL_OF[old]] = getattr(totals, TOTAL_OF[old]) - 1
    return replace(totals, **changes)


def _dropped(run: Run, before: Group | None, after: Group) -> tuple[tuple[DropReason, int], ...]:
    if after.drop_reason is None or (before is not None and before.state is GroupState.DROPPED):
        return run.drops
    counts = dict(run.drops)
    counts[after.drop_reason] = counts.get(after.drop_reason, 0) + 1
    return tuple(sorted(counts.items()))


def _learnt(run: Run, group: Group) -> Run:
    domains = tuple(
        _domain(record, group, trains=run.spec.kind is RunKind.TRAIN) if record.domain == group.task.domain else record
        for record in run.domains
    )
    return replace(run, domains=domains)


def _domain(record: DomainRecord, group: Group, *, trains: bool) -> DomainRecord:
    """Members of a poisoned group say nothing about the model, not even those that were graded before it was found out."""
    num_excluded = sum(rollout.state is RolloutState.EXCLUDED for rollout in group.rollouts)
    counted = replace(record, num_excluded=record.num_excluded + num_excluded)
    if group.drop_reason is DropReason.POISONED:
        return counted
    graded = [rollout for rollout in group.rollouts if rollout.state is RolloutState.GRADED]
    num_passed = sum(rollout.passed for rollout in graded)
    counted = replace(counted, num_graded=counted.num_graded + len(graded), num_passed=counted.num_passed + num_passed)
    is_equal = trains and group.drop_reason is DropReason.ZERO_VARIANCE
    return curriculum.learnt(counted, group.task.level, num_passed, len(graded), is_equal=is_equal)
