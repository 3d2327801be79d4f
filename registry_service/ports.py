"""What the registry's app needs of the outside world, named by need."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from journeyman.bus.port import Outgoing
from journeyman.records import PolicyRef
from registry_service.core.records import Decision, EvaluationSpec, PolicyEntry, TaskResult


class Ledger(Protocol):
    """Everything the registry remembers. Each method is one transaction; all are idempotent under the ids they are given."""

    async def add_policy(self, ref: PolicyRef, parent: PolicyRef | None, made_by: str) -> None:
        """Puts a policy on record; a known one keeps its standing."""
        ...

    async def policies(self, run_id: str) -> Sequence[PolicyEntry]:
        """Newest first; of all runs where run_id is empty."""
        ...

    async def champion(self) -> PolicyEntry | None: ...

    async def add_evaluation(self, spec: EvaluationSpec) -> None:
        """CONFLICT when the id exists with another spec."""
        ...

    async def evaluation(self, evaluation_id: str) -> EvaluationSpec | None: ...

    async def add_results(self, evaluation_id: str, results: Sequence[TaskResult]) -> None:
        """Keeps the first result of each group; results of an unknown evaluation are ignored (runs that nobody evaluates)."""
        ...

    async def results(self, evaluation_id: str) -> Sequence[TaskResult]: ...

    async def decision(self, decision_id: str) -> Decision | None: ...

    async def add_decision(self, decision: Decision, fact: Outgoing) -> None:
        """Stores the decision, changes the standings and puts the fact into the outbox, all or nothing.

        A second call with the id changes nothing."""
        ...

    async def unpublished(self, limit: int) -> Sequence[tuple[int, Outgoing]]:
        """Oldest facts of the outbox with their numbers."""
        ...

    async def mark_published(self, numbers: Sequence[int]) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOutcome:
    """How far an evaluation's run is."""

    is_over: bool
    """Nothing in flight and nothing to come."""
    num_closed: int
    """Groups whose group.closed has been or will be published."""


class EvaluationRuns(Protocol):
    """Evaluations as runs at the scheduler."""

    async def start(self, spec: EvaluationSpec) -> None:
        """Idempotent."""
        ...

    async def outcome(self, evaluation_id: str) -> RunOutcome: ...
