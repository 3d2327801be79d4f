"""The boxes that live, each with what it was made by and its lease. Used by Sandboxes."""

import secrets
from collections.abc import Callable
from dataclasses import dataclass, replace

from journeyman.errors import ErrorCode, JourneymanError
from sandbox_service.core.leases import Leases
from sandbox_service.core.shape import BoxPlan
from sandbox_service.ports import LiveBox

MIN_LEASE_S, DEFAULT_LEASE_S, MAX_LEASE_S = 1.0, 60.0, 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class BoxLease:
    """A living box, or a snapshot."""

    box_id: str
    left_s: float
    """Life without renewal, from now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Living:
    """One box."""

    box: LiveBox
    plan: BoxPlan
    key: str
    """The client's, for making it once; empty where there was none."""


class LivingBoxes:
    """Boxes by id."""

    def __init__(self, clock_s: Callable[[], float]) -> None:
        self._clock_s = clock_s
        self._living: dict[str, Living] = {}
        self._leases = Leases()

    def __len__(self) -> int:
        return len(self._living)

    def __contains__(self, box_id: str) -> bool:
        return box_id in self._living

    def find(self, box_id: str) -> Living | None:
        """None where it is not there."""
        return self._living.get(box_id)

    def get(self, box_id: str) -> Living:
        """NOT_FOUND where it is not there."""
        if (living := self._living.get(box_id)) is None:
            message = f"there is no box {box_id!r}: its lease ended or it was destroyed"
            raise JourneymanError(ErrorCode.NOT_FOUND, message)
        return living

    def add(self, living: Living, until_s: float) -> BoxLease:
        """Takes a box in."""
        box_id = secrets.token_hex(8)
        self._living[box_id] = living
        self._leases.grant(box_id, until_s)
        return self.lease(box_id)

    def change_plan(self, box_id: str, plan: BoxPlan) -> None:
        """Nothing where the box has gone meanwhile."""
        if (living := self._living.get(box_id)) is not None:
            self._living[box_id] = replace(living, plan=plan)

    def remove(self, box_id: str) -> Living | None:
        """Lets a box go, unended; None where it was not there."""
        self._leases.drop(box_id)
        return self._living.pop(box_id, None)

    def renew(self, box_id: str, until_s: float) -> bool:
        """False where it is gone."""
        if box_id not in self._living:
            return False
        self._leases.grant(box_id, until_s)
        return True

    def expired(self) -> list[str]:
        """Those whose lease has ended."""
        return self._leases.expired(self._clock_s())

    def lease(self, box_id: str) -> BoxLease:
        """KeyError where it is not there."""
        return BoxLease(box_id=box_id, left_s=self._leases.until_s(box_id) - self._clock_s())

    def leases(self) -> list[BoxLease]:
        """Of all."""
        return [self.lease(box_id) for box_id in self._living]


def checked_lease_s(lease_s: float) -> float:
    """INVALID_INPUT where it is out of range."""
    if not MIN_LEASE_S <= lease_s <= MAX_LEASE_S:
        message = f"lease of {lease_s:g} s: must be from {MIN_LEASE_S:g} s to {MAX_LEASE_S:g} s"
        raise JourneymanError(ErrorCode.INVALID_INPUT, message)
    return lease_s
