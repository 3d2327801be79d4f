"""What the scheduler needs from outside, named by need. Implementations are in adapters/."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from journeyman.bus.port import Outgoing
from scheduler_service.core.audit import AuditRow
from scheduler_service.core.group import Group
from scheduler_service.core.planning import TaskSource
from scheduler_service.core.working_set import Batch, Stored

__all__ = ["Ledger", "TaskSource"]


class Ledger(Protocol):
    """Durable state. UNAVAILABLE where it cannot be reached or written; then nothing of the call was stored."""

    async def load(self) -> Stored: ...

    async def store(self, batch: Batch, facts: Sequence[Outgoing], slot_seconds: Mapping[str, float]) -> None:
        """Stores changes, adds facts to the outbox and adds to the sums of slot-seconds, all in one transaction."""
        ...

    async def groups(self, run_id: str, *, below: int | None, limit: int, state: str) -> Sequence[Group]:
        """Groups of a run by falling number, those with a number less than `below`; `state` empty means any."""
        ...

    async def audit_rows(self, run_id: str) -> Sequence[AuditRow]: ...

    async def slot_seconds(self) -> Mapping[str, float]:
        """Sums by cause since the ledger began."""
        ...

    async def unpublished(self, limit: int) -> Sequence[tuple[int, Outgoing]]:
        """Facts in the outbox, oldest first, with their numbers."""
        ...

    async def forget(self, numbers: Sequence[int]) -> None:
        """Removes published facts from the outbox."""
        ...

    async def close(self) -> None: ...
