"""Which task a run plays next. Called by playing.py when an admission slot is free.

Train runs ask the curriculum. Evaluation and collect runs play exactly num_groups of each domain, evenly over its levels, with seeds that
follow from (seed, domain, level, i) alone: two evaluations under one seed play the same tasks, whatever else differs.
"""

import hashlib
import random
from dataclasses import replace
from typing import Protocol

from journeyman.packs.port import RewardRule
from journeyman.records import Split, Task
from scheduler_service.core import curriculum
from scheduler_service.core.run import DomainRecord, LevelRecord, Run, RunKind

SEED_BITS = 40
"""Task seeds stay readable in ids and are still unlikely to meet."""


class TaskSource(Protocol):
    """What the domain packs say; pure functions of their arguments. JourneymanError NOT_FOUND names the nearest domain."""

    def levels(self, domain: str) -> tuple[int, ...]: ...

    def ref(self, domain: str) -> str:
        """name@version+digest."""
        ...

    def reward_rule(self, domain: str) -> RewardRule: ...

    def task(self, domain: str, split: Split, level: int, seed: int) -> Task: ...


def digest(*parts: object, bits: int = SEED_BITS) -> int:
    """A number that follows from the parts alone, on every machine."""
    hashed = hashlib.sha256("\x1f".join(str(part) for part in parts).encode()).digest()
    return int.from_bytes(hashed[:8], "big") >> (64 - bits)


def rollout_seed(run_seed: int, task_id: str, index: int) -> int:
    """Seed of a member's sampling; the same for every attempt, so that a retry is no second chance."""
    return digest("rollout", run_seed, task_id, index, bits=63)


def has_next(run: Run) -> bool:
    """Whether a procedural run has tasks left to admit. Runs whose client submits the tasks have none of their own."""
    if not run.spec.domains:
        return False
    return run.spec.kind is RunKind.TRAIN or any(record.num_admitted < record.num_groups for record in run.domains)


def draw(run: Run, source: TaskSource) -> tuple[Run, Task]:
    """The next task, and the run that remembers having drawn it. Call only where has_next."""
    if run.spec.kind is RunKind.TRAIN:
        rng = random.Random(f"{run.spec.seed}/{run.num_admitted}")
        record = curriculum.next_domain(run.domains, rng)
        entry = _level(record, curriculum.next_level(record, rng))
        admitted = curriculum.admitted(record, entry.level)
    else:
        record = min(
            (record for record in run.domains if record.num_admitted < record.num_groups),
            key=lambda record: record.num_admitted / record.num_groups,
        )
        entry = record.levels[record.num_admitted % len(record.levels)]
        admitted = curriculum.admitted(record, entry.level)
    task = source.task(record.domain, run.spec.split, entry.level, _task_seed(run.spec.seed, record, entry))
    return _replaced(run, admitted), task


def submitted(run: Run, task: Task) -> Run:
    """The run that remembers having admitted a task of the client's; its domain and level may be new to it."""
    record = run.domain(task.domain) or DomainRecord(domain=task.domain, levels=())
    if all(entry.level != task.level for entry in record.levels):
        record = replace(record, levels=(*record.levels, LevelRecord(level=task.level)))
    return _replaced(run, curriculum.admitted(record, task.level))


def _task_seed(run_seed: int, record: DomainRecord, entry: LevelRecord) -> int:
    return digest("task", run_seed, record.domain, entry.level, entry.num_drawn)


def _level(record: DomainRecord, level: int) -> LevelRecord:
    return next(entry for entry in record.levels if entry.level == level)


def _replaced(run: Run, record: DomainRecord) -> Run:
    if run.domain(record.domain) is None:
        return replace(run, domains=(*run.domains, record))
    return replace(run, domains=tuple(record if old.domain == record.domain else old for old in run.domains))
