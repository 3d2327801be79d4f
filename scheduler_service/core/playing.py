"""Decisions about leases: who plays what next, and what becomes of leases that end without a result. Called by app.py inside a Draft.

Admission happens here, at the last moment: a group is admitted when a worker has room for it and its run has a slot.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from journeyman.records import Attribution
from scheduler_service.core import group_state, planning
from scheduler_service.core.admission import free_slots
from scheduler_service.core.group import DropReason, FactKind, Group, Step
from scheduler_service.core.judging import dropped
from scheduler_service.core.leasing import Ask, Basket, Candidate, Share, fill
from scheduler_service.core.run import Run, RunKind
from scheduler_service.core.working_set import Draft, WorkingSet

MAX_REDRAWS = 20
"""Quarantined tasks skipped in one admission before it is left for the next call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptName:
    """One attempt at one member."""

    group_id: str
    index: int
    attempt: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LeasedGroup:
    """What a worker was given of one group."""

    group: Group
    run: Run
    indexes: tuple[int, ...]
    until_s: float


def lease(draft: Draft, ask: Ask) -> list[LeasedGroup]:
    """Leases members to a worker: waiting ones first, then of groups admitted for it."""
    if ask.is_idle and ask.loaded is None:
        _lose_former_process(draft, ask.worker_id)
    basket = Basket(ask)
    fill(basket, _waiting(draft), ask)
    leased = [_give(draft, share, ask.worker_id) for share in basket.shares]
    for run in draft.base.runs_in_order():
        while (
            basket.accepts(run.spec.policy)
            and basket.admits(run.spec.group_size)
            and (group := admit_next(draft, run.spec.run_id)) is not None
        ):
            share = basket.add(Candidate(group=group, policy=run.spec.policy))
            leased.append(_give(draft, share, ask.worker_id))
    return leased


def _lose_former_process(draft: Draft, worker_id: str) -> None:
    """A worker that holds no policy has never played: what is leased under its name was lost with the process before it. Waiting for
    those leases to run out would only cost time."""
    for group in list(draft.base.groups.values()):
        if group.state in group_state.IN_PLAY:
            draft.put(group_state.lose_worker(group, worker_id, draft.rules(group), draft.now_s), group)


def _waiting(draft: Draft) -> Iterator[Candidate]:
    order = {run.spec.run_id: (place, run) for place, run in enumerate(draft.base.runs_in_order())}
    groups = [group for group in draft.waiting_groups() if group.run_id in order]
    for group in sorted(groups, key=lambda group: order[group.run_id][0]):
        yield Candidate(group=group, policy=order[group.run_id][1].spec.policy)


def _give(draft: Draft, share: Share, worker_id: str) -> LeasedGroup:
    before = draft.group(share.group_id)
    assert before is not None
    run = draft.run_of(before)
    until_s = draft.now_s + run.spec.lease_s
    step = group_state.lease(before, share.indexes, worker_id, until_s, draft.now_s)
    draft.put(step, before)
    return LeasedGroup(group=step.group, run=run, indexes=share.indexes, until_s=until_s)


def admit_next(draft: Draft, run_id: str) -> Group | None:
    """Admits the run's next group; None when it has no slot or no task. Quarantined tasks are not played again.

    A train run draws another task instead. An evaluation keeps its list of tasks: the group is admitted and dropped at once, so that
    two evaluations under one seed still speak of the same tasks.
    """
    for _ in range(MAX_REDRAWS):
        run = draft.run(run_id)
        if run is None or free_slots(run) == 0 or not _draw_group(draft, run):
            return None
        number = run.num_admitted
        group = draft.group(f"{run_id}/g{number:06d}")
        if group is not None and not group.state.is_terminal:
            return group
    return None


def _draw_group(draft: Draft, run: Run) -> bool:
    """Draws a task and admits its group, or drops it where it is quarantined. False when there is none."""
    run_id = run.spec.run_id
    if planning.has_next(run):
        drawn, task = planning.draw(run, draft.base.source)
    elif not run.spec.domains and (queued := draft.queued(run_id)) is not None:
        drawn, task = planning.submitted(run, queued), queued
        draft.dequeue(run_id, task.task_id)
    else:
        return False
    draft.put_run(drawn)
    is_quarantined = draft.is_quarantined(run, task.task_id)
    if is_quarantined and run.spec.kind is RunKind.TRAIN:
        return True
    group = group_state.admit(
        run_id=run_id, number=run.num_admitted, task=task, group_size=run.spec.group_size, now_s=draft.now_s
    )
    draft.put(Step(group=group), None)
    if is_quarantined:
        poisoned = dropped(group, DropReason.POISONED, "the task is quarantined", draft.now_s)
        draft.put(Step(group=poisoned, facts=(FactKind.DROPPED,)), group)
    return True


def extended(
    working: WorkingSet, worker_id: str, attempts: Sequence[AttemptName], now_s: float
) -> tuple[float, list[AttemptName]]:
    """Extends leases in the working set alone; returns the earliest new end and those that are lost. Not stored: a restarted scheduler
    extends every lease anyway, since workers could not reach it."""
    lost: list[AttemptName] = []
    held: dict[str, list[int]] = {}
    for name in attempts:
        group = working.groups.get(name.group_id)
        if group is not None and group_state.holds(group, name.index, name.attempt, worker_id):
            held.setdefault(name.group_id, []).append(name.index)
        else:
            lost.append(name)
    ends_s = [now_s + working.runs[working.groups[group_id].run_id].spec.lease_s for group_id in held]
    for (group_id, indexes), until_s in zip(held.items(), ends_s, strict=True):
        working.groups[group_id] = group_state.renew(working.groups[group_id], indexes, until_s)
    return min(ends_s, default=now_s), lost


def extend_all(working: WorkingSet, now_s: float) -> None:
    """At start: no lease ends because the scheduler was away."""
    for group_id, group in list(working.groups.items()):
        until_s = now_s + working.runs[group.run_id].spec.lease_s
        working.groups[group_id] = group_state.renew(group, range(len(group.rollouts)), until_s)


def give_back(draft: Draft, worker_id: str, attempts: Sequence[AttemptName], cause: Attribution | None) -> None:
    """The worker returns leases; those that are not its own any more are ignored."""
    for name in attempts:
        group = draft.group(name.group_id)
        if group is not None and group_state.holds(group, name.index, name.attempt, worker_id):
            step = group_state.give_back(group, name.index, name.attempt, cause, draft.rules(group), draft.now_s)
            draft.put(step, group)


def expire(draft: Draft) -> int:
    """Ends leases whose time is over; returns in how many groups."""
    num_changed = 0
    for group in list(draft.base.groups.values()):
        if group.state in group_state.IN_PLAY:
            num_changed += draft.put(group_state.expire(group, draft.rules(group), draft.now_s), group)
    return num_changed
