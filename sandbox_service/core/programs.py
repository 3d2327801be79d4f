"""What is run in a box and what came of it, as the service's own records."""

from collections.abc import Iterable
from dataclasses import dataclass

from journeyman.boxes.port import RunResult
from journeyman.errors import ErrorCode, JourneymanError


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """One program with its limits: Python where source is set, else a command."""

    source: str | None = None
    argv: tuple[str, ...] = ()
    """Arguments of the source, or program and arguments of the command."""
    env: tuple[str, ...] = ()
    """NAME=VALUE, added to the box's environment."""
    folder: str = ""
    """Where it starts, relative to the working folder; empty means the box's own."""
    stdin: bytes = b""
    timeout_s: float = 5.0
    cpu_s: float = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class BoxRun:
    """A result and the signal, which the library's record does not tell."""

    result: RunResult
    signal: int = 0
    """Where SIGNALLED."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FilePart:
    """A part of a file or of a log."""

    content: bytes
    start: int
    """Where it begins in the whole."""
    total_bytes: int
    """Length of the whole."""


def checked_env(entries: Iterable[str]) -> tuple[str, ...]:
    """The entries themselves. INVALID_INPUT unless all are NAME=VALUE."""
    checked = tuple(entries)
    for entry in checked:
        name, equals, _ = entry.partition("=")
        if not name or not equals or "\0" in entry:
            message = f"environment entry {entry[:80]!r}: must be NAME=VALUE, without NUL"
            raise JourneymanError(ErrorCode.INVALID_INPUT, message)
    return checked
