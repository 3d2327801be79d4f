"""Starting and ending runs: what a RunSpec must be, the run it becomes, draining and cancelling. Called by app.py inside a Draft.

Every refusal names the field, its value and what is right.
"""

import math
import re
from dataclasses import replace

from journeyman.errors import ErrorCode, JourneymanError
from journeyman.records import Split, Task
from scheduler_service.core import group_state
from scheduler_service.core.planning import TaskSource
from scheduler_service.core.run import DomainRecord, DomainShare, LevelRecord, Run, RunKind, RunSpec, RunState
from scheduler_service.core.working_set import Draft

RUN_ID = re.compile(r"^[A-Za-z0-9_-][A-Za-z0-9._-]{0,127}$")
MAX_GROUP_SIZE = 1024
LEASE_RANGE_S = (1.0, 3600.0)


def _refuse(field: str, value: object, right: str) -> JourneymanError:
    return JourneymanError(ErrorCode.INVALID_INPUT, f"{field}={value!r}: {right}")


def check_spec(spec: RunSpec, source: TaskSource) -> None:
    """INVALID_INPUT for the first field that is wrong."""
    if not RUN_ID.match(spec.run_id):
        raise _refuse("run_id", spec.run_id, 'use 1 to 128 letters, digits, "-", "_" and ".", not starting with "."')
    least = 2 if spec.kind is RunKind.TRAIN else 1
    if not least <= spec.group_size <= MAX_GROUP_SIZE:
        raise _refuse("group_size", spec.group_size, f"{spec.kind} runs need {least} to {MAX_GROUP_SIZE}")
    if spec.admission_slots < 1:
        raise _refuse("admission_slots", spec.admission_slots, "must be at least 1")
    if spec.retry_budget < 0:
        raise _refuse("retry_budget", spec.retry_budget, "must be at least 0")
    if not LEASE_RANGE_S[0] <= spec.lease_s <= LEASE_RANGE_S[1]:
        raise _refuse("lease", f"{spec.lease_s:g}s", "must be 1 s to 1 h")
    if not (math.isfinite(spec.temperature) and spec.temperature >= 0):
        raise _refuse("temperature", spec.temperature, "must be greater than 0, or 0 for greedy sampling")
    if spec.kind is RunKind.TRAIN:
        _check_training(spec)
    _check_domains(spec, source)


def _check_training(spec: RunSpec) -> None:
    if spec.split is Split.HELDOUT:
        raise _refuse("split", spec.split.value, "held-out tasks are never trained on; use train")
    if not 2 <= spec.min_graded <= spec.group_size:
        raise _refuse("min_graded", spec.min_graded, f"must be 2 to group_size ({spec.group_size})")
    if spec.max_off_policy_steps < 0:
        raise _refuse("max_off_policy_steps", spec.max_off_policy_steps, "must be at least 0")


def _check_domains(spec: RunSpec, source: TaskSource) -> None:
    names = [share.domain for share in spec.domains]
    for place, share in enumerate(spec.domains):
        field = f"domains[{place}]"
        if names.count(share.domain) > 1:
            raise _refuse(f"{field}.domain", share.domain, "is named twice; name each domain once")
        known = _known_levels(field, share, source)
        unknown = [level for level in share.levels if level not in known]
        if unknown:
            raise _refuse(f"{field}.levels", unknown, f"{share.domain} has levels {list(known)}")
        if len(set(share.levels)) < len(share.levels):
            raise _refuse(f"{field}.levels", list(share.levels), "name each level once")
        if spec.kind is RunKind.TRAIN and share.num_groups != 0:
            raise _refuse(f"{field}.num_groups", share.num_groups, "must be 0: in training the curriculum decides")
        if spec.kind is not RunKind.TRAIN and share.num_groups < 1:
            raise _refuse(f"{field}.num_groups", share.num_groups, f"{spec.kind} runs need at least 1")


def _known_levels(field: str, share: DomainShare, source: TaskSource) -> tuple[int, ...]:
    try:
        return source.levels(share.domain)
    except JourneymanError as error:
        raise _refuse(f"{field}.domain", share.domain, error.message) from error


def create(draft: Draft, spec: RunSpec) -> Run:
    """Starts a run, or finds it started under the same spec. CONFLICT when the id has another spec."""
    existing = draft.run(spec.run_id)
    if existing is not None:
        if existing.spec != spec:
            raise JourneymanError(
                ErrorCode.CONFLICT, f"run_id={spec.run_id!r} exists with another spec; choose another id"
            )
        return existing
    check_spec(spec, draft.base.source)
    run = Run(
        spec=spec,
        state=RunState.ACTIVE,
        number=1 + max((run.number for run in draft.base.runs.values()), default=0),
        domains=tuple(_record(share, draft.base.source) for share in spec.domains),
    )
    draft.put_run(run)
    return run


def _record(share: DomainShare, source: TaskSource) -> DomainRecord:
    levels = share.levels or source.levels(share.domain)
    return DomainRecord(
        domain=share.domain,
        levels=tuple(LevelRecord(level=level) for level in sorted(levels)),
        num_groups=share.num_groups,
    )


def found(draft: Draft, run_id: str) -> Run:
    """NOT_FOUND names the id."""
    run = draft.run(run_id)
    if run is None:
        raise JourneymanError(ErrorCode.NOT_FOUND, f"run_id={run_id!r}: no such run")
    return run


def close(draft: Draft, run_id: str, *, cancels: bool) -> None:
    """Stops admission; cancelling also drops what the trainer has not taken."""
    run = found(draft, run_id)
    if run.state is RunState.FINISHED:
        return
    draft.put_run(replace(run, state=RunState.DRAINING))
    if cancels:
        for group in draft.base.groups_of(run_id):
            draft.put(group_state.cancel(group, draft.now_s), group)


def submit(draft: Draft, run_id: str, task: Task) -> bool:
    """Queues a client's task; False when the run has had its id."""
    run = found(draft, run_id)
    if run.state is not RunState.ACTIVE:
        raise JourneymanError(ErrorCode.PRECONDITION, f"run_id={run_id!r}: is {run.state} and takes no more tasks")
    if run.spec.domains:
        raise JourneymanError(
            ErrorCode.PRECONDITION,
            f"run_id={run_id!r}: draws its own tasks; create a run without domains to submit tasks",
        )
    _check_task(run, task, draft.base.source)
    return draft.submit(run_id, task)


def _check_task(run: Run, task: Task, source: TaskSource) -> None:
    if not task.task_id or len(task.task_id) > 400:
        raise _refuse("task_id", task.task_id[:40], "needs 1 to 400 characters")
    if not task.messages:
        raise _refuse(f"task {task.task_id}: messages", [], "a task needs at least one message")
    if task.level < 1:
        raise _refuse(f"task {task.task_id}: level", task.level, "must be at least 1")
    if run.spec.kind is RunKind.TRAIN and task.split is Split.HELDOUT:
        raise _refuse(f"task {task.task_id}: split", task.split.value, "held-out tasks are never trained on")
    try:
        ref = source.ref(task.domain)
    except JourneymanError as error:
        raise _refuse(f"task {task.task_id}: domain", task.domain, error.message) from error
    if task.domain_ref != ref:
        raise _refuse(f"task {task.task_id}: domain_ref", task.domain_ref, f"this deployment judges by {ref}")
