"""Holding: one group lease in this worker: which of its members are still ours, and where they are."""

import asyncio
import time
from collections.abc import Mapping, Sequence

from rollout_service.core.records import Attempt, GroupLease, Member, Outcome, Played
from rollout_service.play import SlotHold


class Holding:
    """Mutable, owned by the worker; compared by identity."""

    def __init__(self, lease: GroupLease, holds: Mapping[Attempt, SlotHold]) -> None:
        self.lease = lease
        self.holds = holds
        self.lost: set[Attempt] = set()
        self.renew_at_s = time.monotonic() + lease.life_s / 3
        self._tasks: dict[Attempt, asyncio.Task[Outcome]] = {}

    @property
    def is_playing(self) -> bool:
        """Whether members were handed to the engine."""
        return bool(self._tasks)

    @property
    def attempts(self) -> list[Attempt]:
        """Members still ours, ended or not."""
        return [attempt for attempt in self.lease.attempts if attempt not in self.lost]

    def begin(self, tasks: Mapping[Attempt, asyncio.Task[Outcome]]) -> None:
        """Members are being played by these tasks."""
        self._tasks.update(tasks)

    def lose(self, lost: set[Attempt]) -> None:
        """Others may have these members now: stop playing them, forget what they did."""
        mine = lost.intersection(self.lease.attempts)
        self.lost |= mine
        for attempt in mine:
            if attempt in self._tasks:
                self._tasks[attempt].cancel()

    def cancel_all(self) -> None:
        """Stops playing; members that have ended keep their outcome."""
        for task in self._tasks.values():
            task.cancel()

    def still_held(self, outcomes: Sequence[Outcome]) -> list[Outcome]:
        """Without those of lost members."""
        return [outcome for outcome in outcomes if self.lease.attempt(self.member(outcome)) not in self.lost]

    def unfinished(self, outcomes: Sequence[Outcome]) -> list[Attempt]:
        """Members still ours that have no outcome."""
        ended = {self.lease.attempt(self.member(outcome)) for outcome in outcomes}
        return [attempt for attempt in self.attempts if attempt not in ended]

    def member(self, outcome: Outcome) -> Member:
        """Whose outcome it is."""
        if isinstance(outcome, Played):
            return next(member for member in self.lease.members if member.index == outcome.trajectory.index)
        return outcome.member

    def free_slots(self) -> None:
        """Whatever is not free yet."""
        for hold in self.holds.values():
            hold.free()
