"""One program to run, as the service asks for it. Made by init.serve, carried out by runner.Runner."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sandbox_service.adapters.box.frames import Frame
from sandbox_service.core.shape import BoxShape


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One program with its limits."""

    source: str | None
    """Python; None where argv is a command."""
    argv: Sequence[str]
    environment: Mapping[str, str]
    """Beside the box's own."""
    folder: str
    """Where it starts, relative to the working folder; empty means there."""
    stdin: bytes
    timeout_s: float
    cpu_s: float
    hold_bytes: int
    """Output of one stream up to which it is held until the end; longer output is sent while the program runs."""
    max_bytes: int
    """Output of one stream beyond which the program is killed."""
    file_bytes: int
    """Of the longest file it may write; 0 means as much as the box holds."""

    @classmethod
    def from_frame(cls, frame: Frame, shape: BoxShape) -> "Job":
        """From the wire."""
        return cls(
            source=frame.blobs[0].decode(errors="surrogateescape") if frame.flag("python") else None,
            argv=frame.texts("argv"),
            environment=dict(entry.split("=", 1) for entry in frame.texts("env") if "=" in entry),
            folder=frame.text("folder"),
            stdin=frame.blobs[1],
            timeout_s=frame.number("timeout_s"),
            cpu_s=frame.number("cpu_s"),
            hold_bytes=int(frame.number("hold_bytes")),
            max_bytes=int(frame.number("max_bytes")),
            file_bytes=shape.file_bytes,
        )
