"""Box: where a tool's or a ladder's program runs. Domain packs see only this.

Implementations: journeyman.boxes.inprocess (trusted code only: scripted demonstrations, tests), and the sandbox service's boxes
(journeyman.boxes.client over gRPC; sandbox_service in process). One contract suite runs against all.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol


class Ending(StrEnum):
    """How a program ended, as in jm.sandbox.v1.Ending."""

    EXITED = "exited"
    SIGNALLED = "signalled"
    WALL_TIMEOUT = "wall_timeout"
    CPU_TIMEOUT = "cpu_timeout"
    OUT_OF_MEMORY = "out_of_memory"
    TOO_MANY_PROCESSES = "too_many_processes"
    DISK_FULL = "disk_full"
    OUTPUT_LIMIT = "output_limit"
    KILLED_BY_CALLER = "killed_by_caller"
    INFRA_ERROR = "infra_error"


class Stream(StrEnum):
    """Where a program writes."""

    STDOUT = "stdout"
    STDERR = "stderr"


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputPiece:
    """Bytes that a running program wrote."""

    stream: Stream
    content: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputCut:
    """The gap in a kept output."""

    head_bytes: int
    """Kept before the gap; the rest of what is kept are the last bytes."""
    total_bytes: int
    """Written by the program, as far as it was let."""
    log: str = ""
    """Name of the log that holds all of them, for read_log; empty where there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What a program used; 0 where that is not known."""

    memory_peak_bytes: int = 0
    """Highest memory of the whole box since it was made, files included."""
    processes_peak: int = 0
    """Most processes of the box at once since it was made."""
    disk_bytes: int = 0
    """Of the box's own files after the program."""
    num_files: int = 0
    """Of those files."""
    output_bytes: int = 0
    """Written to stdout and stderr."""


class EntryKind(StrEnum):
    """What an entry of a folder is."""

    FILE = "file"
    FOLDER = "folder"
    LINK = "link"
    OTHER = "other"


@dataclass(frozen=True, slots=True, kw_only=True)
class DirectoryEntry:
    """An entry of a folder in a box."""

    name: str
    kind: EntryKind
    size_bytes: int
    """Length of a file."""
    mode: int
    """Permission bits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResult:
    """What one program did in a box."""

    ending: Ending
    exit_code: int | None
    """Where EXITED."""
    stdout: bytes
    stderr: bytes
    wall_s: float
    cpu_s: float
    infra_reason: str = ""
    """Where INFRA_ERROR."""
    control_passed: bool = False
    """Where WALL_TIMEOUT: whether a control program ran normally afterwards."""
    truncated: bool = False
    """Whether stdout or stderr was cut."""
    used: Usage = Usage()
    stdout_cut: OutputCut | None = None
    """Where stdout was cut; None where it was not."""
    stderr_cut: OutputCut | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BoxLimits:
    """Limits of a box; 0 means the service's default."""

    memory_bytes: int = 0
    """Of the whole box."""
    max_processes: int = 0
    disk_bytes: int = 0
    max_files: int = 0
    output_bytes: int = 0
    """Kept of each of stdout and stderr: the first half and the last."""
    log_bytes: int = 0
    """Of each of them beyond that, which go to a log; with none a program is killed at output_bytes."""
    file_bytes: int = 0
    """Of the longest file that a program may write."""
    max_open_files: int = 0
    """Of each process."""


class BoxFailure(Exception):
    """The sandbox failed: no evidence about the program. Ends the rollout with Attribution.SANDBOX; never shown to the model."""


class Box(Protocol):
    """One box with a working folder. INFRA_ERROR results and a lost box raise BoxFailure, so a pack only sees evidence."""

    async def run_python(
        self, source: str, argv: Sequence[str] = (), *, timeout_s: float = 5.0, cpu_s: float = 2.0
    ) -> RunResult:
        """Runs source as __main__ in the working folder, in a fresh fork of a warm interpreter. sys.argv[1:] is argv."""
        ...

    async def run_command(self, argv: Sequence[str], *, timeout_s: float = 5.0, cpu_s: float = 2.0) -> RunResult:
        """Runs a program by its argv in the working folder."""
        ...

    async def write_files(self, files: Mapping[str, bytes]) -> None:
        """Writes files below the working folder, replacing existing ones."""
        ...

    async def read_files(self, paths: Sequence[str]) -> dict[str, bytes]:
        """Reads regular files below the working folder; absent ones are left out."""
        ...
