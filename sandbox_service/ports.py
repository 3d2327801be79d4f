"""What the sandbox service needs: something that makes boxes."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from journeyman.boxes.port import DirectoryEntry, OutputPiece
from sandbox_service.core.programs import BoxRun, FilePart, Program
from sandbox_service.core.shape import BoxShape


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedFiles:
    """The files of a box at one moment, opaque to the application. Given back to Backend.discard when they are not wanted any more."""

    packed: bytes | None = None
    """A copy; None where they are shared."""
    layers: tuple[int, ...] = ()
    """Where they are shared: what to stand on, the newest first."""


class Listener(Protocol):
    """Hears what a program writes while it runs."""

    def put(self, piece: OutputPiece) -> None:
        """Takes a piece."""
        ...

    async def wait_for_room(self) -> None:
        """Until it wants more; meanwhile the program is held back."""
        ...

    def release(self) -> None:
        """From now on nobody waits for it: the program is past its time, or its box is destroyed."""
        ...


class LiveBox(Protocol):
    """One box. Calls may overlap; they are carried out one after another."""

    async def run(self, program: Program, listener: Listener | None = None) -> BoxRun:
        """Whatever the program does is a result; so is the failure of the box, as INFRA_ERROR. Cancelling kills the program only."""
        ...

    async def settle(self, env: Sequence[str], folder: str) -> None:
        """Environment of all its programs from now on, and the folder, made where it is not there, in which they start."""
        ...

    async def write(self, files: Mapping[str, bytes]) -> None:
        """Writes below the working folder. Where programs have left the box unfit for it, the next run says so."""
        ...

    async def read_part(self, path: str, offset: int, length: int) -> FilePart:
        """A part of a regular file below the working folder. NOT_FOUND says why there is none. A negative offset counts from the end."""
        ...

    async def read_log(self, log: str, offset: int, length: int) -> FilePart:
        """A part of a log named by a result of this box. NOT_FOUND where there is none."""
        ...

    async def list_folder(self, path: str, max_entries: int) -> tuple[Sequence[DirectoryEntry], bool]:
        """The first entries of a folder by name, and whether there are more. NOT_FOUND says why there are none."""
        ...

    async def read(self, paths: Sequence[str]) -> dict[str, bytes]:
        """Regular files below the working folder; the rest is left out."""
        ...

    async def save(self) -> SavedFiles:
        """All its files as they are. PRECONDITION while a program runs, and where programs have left the box unfit for it."""
        ...

    async def restore(self, saved: SavedFiles) -> None:
        """Gives it other files in place of its own; processes, and what its programs broke, are gone. PRECONDITION while a program runs."""
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

    @property
    def num_ready(self) -> int:
        """Boxes made ahead of demand."""
        ...

    forking: str
    """overlay: shared in constant time; or copy, with the reason after a colon."""

    async def create(self, shape: BoxShape, saved: SavedFiles | None = None) -> LiveBox:
        """A box, empty but for saved files. UNAVAILABLE where it cannot be made."""
        ...

    def discard(self, saved: SavedFiles) -> None:
        """Lets saved files go. Boxes made of them live on."""
        ...

    async def close(self) -> None:
        """Ends every box."""
        ...
