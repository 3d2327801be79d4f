"""What the sandbox service needs: something that makes boxes."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import NewType, Protocol

from sandbox_service.core.programs import BoxRun, Program
from sandbox_service.core.shape import BoxShape

PackedFiles = NewType("PackedFiles", bytes)
"""The files of a box, in a form that only boxes read: to the service they are opaque."""


class LiveBox(Protocol):
    """One box. Calls may overlap; they are carried out one after another."""

    async def run(self, program: Program) -> BoxRun:
        """Whatever the program does is a result; so is the failure of the box, as INFRA_ERROR."""
        ...

    async def write(self, files: Mapping[str, bytes]) -> None:
        """Writes below the working folder. Where programs have left the box unfit for it, the next run says so."""
        ...

    async def read(self, paths: Sequence[str]) -> dict[str, bytes]:
        """Regular files below the working folder; the rest is left out."""
        ...

    async def pack(self) -> PackedFiles:
        """All its files. PRECONDITION where programs have left the box unfit for it."""
        ...

    async def unpack(self, packed: PackedFiles) -> None:
        """Fills an empty box."""
        ...

    async def destroy(self, reason: str) -> None:
        """Kills it and its processes. A running program ends KILLED_BY_CALLER; empty reason; else INFRA_ERROR with the reason."""
        ...


class Backend(Protocol):
    """A way of isolating boxes that works on this machine."""

    isolation: str
    """ns-root | ns-rootless | bwrap | runsc | weak."""
    enforced: tuple[str, ...]
    not_enforced: tuple[str, ...]
    """Each with its reason after a colon."""
    lost: asyncio.Event
    """Set when no more boxes can be made and all are gone."""

    async def create(self, shape: BoxShape) -> LiveBox:
        """An empty box. UNAVAILABLE where it cannot be made."""
        ...

    async def close(self) -> None:
        """Ends every box."""
        ...
