"""Boxes made ahead, as many as were asked for lately. Used by NamespaceConfinement; the clock is the caller's so that tests own it."""

import contextlib
import time
from collections import deque
from collections.abc import Callable

from sandbox_service.adapters.zygote.confinement import Started

_DEMAND_S = 10.0
"""How far back demand is looked at."""
_MIN_SPARES = 2


class Spares:
    """A pool that follows demand: it holds as many boxes as were taken in the last seconds, within bounds."""

    def __init__(self, max_spares: int, clock_s: Callable[[], float] = time.monotonic) -> None:
        self._max_spares = max_spares
        self._clock_s = clock_s
        self._ready: deque[Started] = deque()
        self._taken_s: deque[float] = deque(maxlen=max(1, max_spares))

    def take(self) -> Started | None:
        """The spare that has waited longest; None where there is none. Counts as demand either way."""
        self._taken_s.append(self._clock_s())
        return self._ready.popleft() if self._ready else None

    def add(self, spare: Started) -> None:
        """Puts a box in."""
        self._ready.append(spare)

    def discard(self, spare: Started) -> None:
        """Takes a box out that is dead; nothing where it is not in."""
        with contextlib.suppress(ValueError):
            self._ready.remove(spare)

    def wants_more(self) -> bool:
        """Whether another is likely to be asked for soon."""
        return len(self._ready) < self._target()

    def surplus(self) -> Started | None:
        """Takes out a spare for which there has been no demand for long; None where all are wanted."""
        return self._ready.popleft() if len(self._ready) > self._target() else None

    def __len__(self) -> int:
        return len(self._ready)

    def _target(self) -> int:
        since_s = self._clock_s() - _DEMAND_S
        lately = sum(taken_s >= since_s for taken_s in self._taken_s)
        return min(self._max_spares, max(_MIN_SPARES, lately))
