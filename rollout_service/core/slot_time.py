"""SlotTime: what every episode slot's time was spent on. Pure: the clock is passed in.

Called by the worker at each change of an episode. Invariant: the seconds of all causes together are the slots times the time passed.
"""

from collections.abc import Mapping
from enum import StrEnum


class Cause(StrEnum):
    """What a slot's time goes to."""

    DECODE = "decode"
    """The engine generates for it."""
    TOOL = "tool"
    """Its episode waits for a tool, or ends."""
    WEIGHTS = "weights"
    """It waits for weights to be verified and taken."""
    NO_POLICY = "no_policy"
    """It is under lease for a run that has published no policy yet."""
    NO_LEASE = "no_lease"
    """It is free and there was nothing to lease."""
    STARTING = "starting"
    """The worker has not asked for work yet."""
    DRAINING = "draining"
    """It is free because the worker is about to stop."""


class SlotTime:
    """Counts slots by cause; free slots are charged to one cause at a time."""

    def __init__(self, num_slots: int, now_s: float) -> None:
        self._free = num_slots
        self._free_cause = Cause.STARTING
        self._busy = dict.fromkeys(Cause, 0)
        self._seconds = dict.fromkeys(Cause, 0.0)
        self._taken = dict.fromkeys(Cause, 0.0)
        self._at_s = now_s

    @property
    def num_free(self) -> int:
        """Slots without an episode."""
        return self._free

    @property
    def num_busy(self) -> int:
        """Slots with one."""
        return sum(self._busy.values())

    def occupy(self, cause: Cause, count: int, now_s: float) -> None:
        """Free slots get episodes."""
        self._pass(now_s)
        self._free -= count
        self._busy[cause] += count

    def move(self, source: Cause, target: Cause, count: int, now_s: float) -> None:
        """Episodes go on to something else."""
        self._pass(now_s)
        self._busy[source] -= count
        self._busy[target] += count

    def release(self, cause: Cause, count: int, now_s: float) -> None:
        """Episodes end."""
        self._pass(now_s)
        self._busy[cause] -= count
        self._free += count

    def free_slots_are(self, cause: Cause, now_s: float) -> None:
        """What free slots are charged to from now on."""
        self._pass(now_s)
        self._free_cause = cause

    def charge_swap(self, pause_s: float, now_s: float) -> None:
        """The engine stood still for so long to take weights: decoding slots' time goes to them instead."""
        self._pass(now_s)
        lost_s = min(pause_s * self._busy[Cause.DECODE], self._seconds[Cause.DECODE])
        self._seconds[Cause.DECODE] -= lost_s
        self._seconds[Cause.WEIGHTS] += lost_s

    def totals(self, now_s: float) -> Mapping[str, float]:
        """Slot-seconds by cause since the start."""
        self._pass(now_s)
        return {cause.value: seconds for cause, seconds in self._seconds.items() if seconds > 0}

    def unreported(self, now_s: float) -> Mapping[str, float]:
        """Slot-seconds by cause that mark_reported has not seen."""
        self._pass(now_s)
        fresh = {cause.value: self._seconds[cause] - self._taken[cause] for cause in Cause}
        return {cause: seconds for cause, seconds in fresh.items() if seconds > 0}

    def mark_reported(self, reported: Mapping[str, float]) -> None:
        """These seconds have arrived; a report that did not is simply never marked."""
        for cause, seconds in reported.items():
            self._taken[Cause(cause)] += seconds

    def _pass(self, now_s: float) -> None:
        passed_s = max(0.0, now_s - self._at_s)
        self._at_s += passed_s
        self._seconds[self._free_cause] += self._free * passed_s
        for cause, count in self._busy.items():
            self._seconds[cause] += count * passed_s
