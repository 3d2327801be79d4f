"""Saved files of boxes that clients may come back to, each with a lease. Used by Sandboxes."""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass

from journeyman.errors import ErrorCode, JourneymanError
from sandbox_service.core.leases import Leases
from sandbox_service.core.shape import BoxPlan
from sandbox_service.ports import Backend, SavedFiles


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """A box at one moment, without its processes."""

    saved: SavedFiles
    plan: BoxPlan


class Snapshots:
    """Snapshots by id."""

    def __init__(self, backend: Backend, max_snapshots: int) -> None:
        self._backend = backend
        self._max_snapshots = max_snapshots
        self._snapshots: dict[str, Snapshot] = {}
        self._leases = Leases()

    def refuse_more(self) -> None:
        """EXHAUSTED where there are as many as there may be."""
        if len(self._snapshots) >= self._max_snapshots:
            message = f"{self._max_snapshots} snapshots are kept, as many as SANDBOX_MAX_BOXES allows; delete some"
            raise JourneymanError(ErrorCode.EXHAUSTED, message)

    def add(self, snapshot: Snapshot, until_s: float) -> str:
        """Keeps a snapshot; its id."""
        snapshot_id = f"snapshot-{secrets.token_hex(8)}"
        self._snapshots[snapshot_id] = snapshot
        self._leases.grant(snapshot_id, until_s)
        return snapshot_id

    def get(self, snapshot_id: str) -> Snapshot:
        """NOT_FOUND where it is gone."""
        if (snapshot := self._snapshots.get(snapshot_id)) is None:
            message = f"there is no snapshot {snapshot_id!r}: its lease ended or it was deleted"
            raise JourneymanError(ErrorCode.NOT_FOUND, message)
        return snapshot

    def renew(self, snapshot_id: str, until_s: float) -> bool:
        """False where it is gone."""
        if snapshot_id not in self._snapshots:
            return False
        self._leases.grant(snapshot_id, until_s)
        return True

    def delete(self, snapshot_ids: Sequence[str]) -> None:
        """Lets snapshots go; unknown ids are ignored."""
        for snapshot_id in snapshot_ids:
            self._leases.drop(snapshot_id)
            if (snapshot := self._snapshots.pop(snapshot_id, None)) is not None:
                self._backend.discard(snapshot.saved)

    def delete_expired(self, now_s: float) -> None:
        """Lets those go whose lease has ended."""
        self.delete(self._leases.expired(now_s))
