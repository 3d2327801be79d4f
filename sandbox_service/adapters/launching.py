"""What a launched box is to the service: a connection, a way to kill it and what the kernel counted. Used by all backends."""

import asyncio
import socket
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from sandbox_service.core.shape import BoxShape


@dataclass(frozen=True, slots=True, kw_only=True)
class BoxCounters:
    """How often the kernel refused a box something; zeros where it does not count."""

    num_oom_kills: int = 0
    num_fork_refusals: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchedBox:
    """A box as its launcher gives it."""

    connection: socket.socket
    """Non-blocking; frames (adapters.box.frames) to its init and back."""
    ended: "asyncio.Future[BoxCounters]"
    """Done when its init is dead and reaped."""
    kill: Callable[[], None]
    """Kills its init and so all its processes."""
    counters: Callable[[], Awaitable[BoxCounters]]
    """As they stand."""
    keep: Callable[[int], Awaitable[None]] | None = None
    """Makes the files that it has written a layer, with a number that the caller chooses; after that it must be ended. None where files can
    only be copied."""


class Launcher(Protocol):
    """Starts boxes."""

    lost: asyncio.Event
    """Set when it cannot start any more and its boxes are gone."""

    num_ready: int
    """Boxes made ahead of demand."""

    async def launch(self, shape: BoxShape, layers: Sequence[int] = ()) -> LaunchedBox:
        """A box whose init will say ready or failed. UNAVAILABLE where it cannot even be started.

        layers: what it starts with, the newest first; none where the launcher's boxes have no keep.
        """
        ...

    def drop(self, layer: int) -> None:
        """Forgets a layer; boxes that stand on it live on."""
        ...

    async def close(self) -> None:
        """Ends every box."""
        ...
