"""The working set: everything unfinished, in memory, exactly as the ledger has it; and Draft, which collects what one decision changes.

app.py opens a Draft, lets playing.py or results.py decide in it, stores the Batch in one transaction and only then applies it. Rebuilding
the working set from the ledger at any point gives the same decisions: nothing that decides lives elsewhere.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from journeyman.records import Task
from scheduler_service.core.accounting import account
from scheduler_service.core.admission import is_over
from scheduler_service.core.group import DropReason, Fact, Group, RolloutState, Step
from scheduler_service.core.group_state import Rules
from scheduler_service.core.planning import TaskSource
from scheduler_service.core.run import Run, RunKind, RunState


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskName:
    """A task across runs. Tasks of packs are the same in all runs; a client's are its run's own."""

    run_id: str
    """Empty for a task made by a pack."""
    task_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """What one decision changes, to be stored in one transaction."""

    runs: tuple[Run, ...] = ()
    groups: tuple[Group, ...] = ()
    new_group_ids: frozenset[str] = frozenset()
    """Which of the groups the ledger does not have yet."""
    facts: tuple[Fact, ...] = ()
    submitted: tuple[tuple[str, Task], ...] = ()
    """(run_id, task) new in the queue."""
    admitted: tuple[TaskName, ...] = ()
    """Tasks of clients that left the queue."""
    quarantined: tuple[TaskName, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to store."""
        return not (self.runs or self.groups or self.facts or self.submitted or self.quarantined)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """What the ledger holds of everything unfinished."""

    runs: tuple[Run, ...]
    """All of them, finished ones too: their ids stay taken."""
    groups: tuple[Group, ...]
    """In no terminal state."""
    queued: tuple[tuple[str, Task], ...]
    """(run_id, task) of clients, in order of submission."""
    task_ids: tuple[TaskName, ...]
    """Every task that a client ever submitted."""
    quarantined: tuple[TaskName, ...]


@dataclass(slots=True, kw_only=True)
class WorkingSet:
    """Runs, groups in no terminal state, tasks in the queue and tasks never to be played again."""

    source: TaskSource
    runs: dict[str, Run] = field(default_factory=dict)
    groups: dict[str, Group] = field(default_factory=dict)
    queues: dict[str, dict[str, Task]] = field(default_factory=dict)
    """By run, then by task id in the order of submission."""
    task_ids: dict[str, set[str]] = field(default_factory=dict)
    """By run, every task id ever submitted."""
    quarantine: set[TaskName] = field(default_factory=set)
    waiting: dict[str, None] = field(default_factory=dict)
    """Groups with waiting members, in the order in which they came to have them."""

    @classmethod
    def of(cls, stored: Stored, source: TaskSource) -> "WorkingSet":
        """The working set that the ledger describes."""
        working = cls(source=source, quarantine=set(stored.quarantined))
        working.apply(Batch(runs=stored.runs, groups=stored.groups, submitted=stored.queued))
        for name in stored.task_ids:
            working.task_ids.setdefault(name.run_id, set()).add(name.task_id)
        return working

    def apply(self, batch: Batch) -> None:
        """Follows the ledger."""
        for run in batch.runs:
            self.runs[run.spec.run_id] = run
        for group in batch.groups:
            self.put_group(group)
        for run_id, task in batch.submitted:
            self.queues.setdefault(run_id, {})[task.task_id] = task
            self.task_ids.setdefault(run_id, set()).add(task.task_id)
        for name in batch.admitted:
            self.queues.get(name.run_id, {}).pop(name.task_id, None)
        self.quarantine.update(batch.quarantined)

    def put_group(self, group: Group) -> None:
        """Keeps a group while it is unfinished."""
        if group.state.is_terminal:
            self.groups.pop(group.group_id, None)
        else:
            self.groups[group.group_id] = group
        if not group.state.is_terminal and any(r.state is RolloutState.WAITING for r in group.rollouts):
            self.waiting.setdefault(group.group_id)
        else:
            self.waiting.pop(group.group_id, None)

    def runs_in_order(self) -> list[Run]:
        """Unfinished runs; evaluations first, since somebody waits for them, then by age."""
        unfinished = [run for run in self.runs.values() if run.state is not RunState.FINISHED]
        return sorted(unfinished, key=lambda run: (run.spec.kind is not RunKind.EVAL, run.number))

    def groups_of(self, run_id: str) -> Iterator[Group]:
        """Unfinished groups of a run."""
        return (group for group in self.groups.values() if group.run_id == run_id)


class Draft:
    """Changes to a working set that have not been stored."""

    def __init__(self, base: WorkingSet, now_s: float) -> None:
        self.base = base
        self.now_s = now_s
        """Unix seconds at which everything in this draft happens."""
        self._runs: dict[str, Run] = {}
        self._groups: dict[str, Group] = {}
        self._new_group_ids: set[str] = set()
        self._facts: list[Fact] = []
        self._submitted: dict[TaskName, Task] = {}
        self._admitted: dict[TaskName, None] = {}
        self._quarantined: list[TaskName] = []

    def run(self, run_id: str) -> Run | None:
        """A run as changed so far."""
        return self._runs.get(run_id) or self.base.runs.get(run_id)

    def run_of(self, group: Group) -> Run:
        """The run of a group; the ledger never holds a group without one."""
        run = self.run(group.run_id)
        assert run is not None
        return run

    def group(self, group_id: str) -> Group | None:
        """A group as changed so far; None when unknown or finished, which for late events is the same."""
        return self._groups.get(group_id) or self.base.groups.get(group_id)

    def waiting_groups(self) -> list[Group]:
        """Groups with waiting members as changed so far, in the order in which they came to have them."""
        changed = {group_id: None for group_id, group in self._groups.items() if group_id not in self.base.waiting}
        groups = [self.group(group_id) for group_id in {**self.base.waiting, **changed}]
        return [group for group in groups if group is not None and not group.state.is_terminal and group.waiting]

    def rules(self, group: Group) -> Rules:
        """What judges this group."""
        spec = self.run_of(group).spec
        return Rules(
            trains=spec.kind is RunKind.TRAIN,
            retry_budget=spec.retry_budget,
            min_graded=spec.min_graded,
            reward=self.base.source.reward_rule(group.task.domain),
        )

    def put_run(self, run: Run) -> None:
        """Changes a run."""
        self._runs[run.spec.run_id] = run

    def put(self, step: Step, before: Group | None) -> bool:
        """Takes over a transition with its facts and counters; before is None for a new group. False when nothing changed."""
        if step.group is before:
            return False
        run = self.run_of(step.group)
        self._groups[step.group.group_id] = step.group
        if before is None:
            self._new_group_ids.add(step.group.group_id)
        self._runs[run.spec.run_id] = account(run, before, step.group)
        bound = run.spec.max_off_policy_steps
        self._facts.extend(Fact(kind=kind, group=step.group, max_off_policy_steps=bound) for kind in step.facts)
        if step.facts and step.group.drop_reason is DropReason.POISONED:
            self._quarantined.append(self.task_name(run, step.group.task.task_id))
        return True

    def task_name(self, run: Run, task_id: str) -> TaskName:
        """The name under which a task of this run is quarantined."""
        return TaskName(run_id="" if run.spec.domains else run.spec.run_id, task_id=task_id)

    def is_quarantined(self, run: Run, task_id: str) -> bool:
        """Whether the task must not be played."""
        name = self.task_name(run, task_id)
        return name in self.base.quarantine or name in self._quarantined

    def submit(self, run_id: str, task: Task) -> bool:
        """Adds a task to a run's queue; False for an id the run has had."""
        name = TaskName(run_id=run_id, task_id=task.task_id)
        if task.task_id in self.base.task_ids.get(run_id, ()) or name in self._submitted:
            return False
        self._submitted[name] = task
        return True

    def queued(self, run_id: str) -> Task | None:
        """The client's task that is next."""
        for task_id, task in self.base.queues.get(run_id, {}).items():
            if TaskName(run_id=run_id, task_id=task_id) not in self._admitted:
                return task
        return None

    def dequeue(self, run_id: str, task_id: str) -> None:
        """Takes a task out of the queue."""
        self._admitted[TaskName(run_id=run_id, task_id=task_id)] = None

    def batch(self) -> Batch:
        """Everything to be stored; runs that are over become FINISHED."""
        runs = [
            replace(run, state=RunState.FINISHED) if run.state is not RunState.FINISHED and is_over(run) else run
            for run in self._runs.values()
        ]
        return Batch(
            runs=tuple(runs),
            groups=tuple(self._groups.values()),
            new_group_ids=frozenset(self._new_group_ids),
            facts=tuple(self._facts),
            submitted=tuple((name.run_id, task) for name, task in self._submitted.items()),
            admitted=tuple(self._admitted),
            quarantined=tuple(self._quarantined),
        )
