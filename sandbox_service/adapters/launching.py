"""What a launched box is to the service: a connection, a way to kill it and what the kernel counted. Used by all backends."""

import asyncio
import socket
from collections.abc import Awaitable, Callable
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


class Launcher(Protocol):
    """Starts boxes."""

    lost: asyncio.Event
    """Set when it cannot start any more and its boxes are gone."""

    async def launch(self, shape: BoxShape) -> LaunchedBox:
        """A box whose init will say ready or failed. UNAVAILABLE where it cannot even be started."""
        ...

    async def close(self) -> None:
        """Ends every box."""
        ...
