"""What the service says to a box's init and what it understands of the answers. Used by LinkedBox.

What a box says is not to be trusted: whatever does not fit raises FrameError or is taken as nothing.
"""

import os
from collections.abc import Iterator, Mapping, Sequence

from journeyman.boxes.port import DirectoryEntry, EntryKind, Usage
from sandbox_service.adapters.box.frames import Frame, Header
from sandbox_service.core.endings import RunFacts
from sandbox_service.core.programs import Program
from sandbox_service.core.shape import BoxShape

WRITE_BYTES = 1024 * 1024
"""Of files in one message: a box's init has little memory."""
_MAX_COUNT = (1 << 31) - 1
_KINDS = {"f": EntryKind.FILE, "d": EntryKind.FOLDER, "l": EntryKind.LINK}

Message = tuple[Header, Sequence[bytes]]


def run_request(program: Program, shape: BoxShape, env: Sequence[str], folder: str, *, is_heard: bool) -> Message:
    """Runs a program, with the environment and folder of its box. Where it is heard, its output is sent as it comes."""
    header: Header = {
        "op": "run",
        "python": program.source is not None,
        "argv": program.argv,
        "env": (*env, *program.env),
        "folder": program.folder or folder,
        "timeout_s": program.timeout_s,
        "cpu_s": program.cpu_s,
        "hold_bytes": 0 if is_heard else shape.output_bytes,
        "max_bytes": shape.output_bytes + shape.log_bytes,
    }
    return header, ((program.source or "").encode(errors="surrogateescape"), program.stdin)


def writes_of(files: Mapping[str, bytes]) -> Iterator[Message]:
    """Messages that write files: small ones together, a large one in several."""
    paths: list[str] = []
    contents: list[bytes] = []
    for path, content in files.items():
        if paths and sum(map(len, contents)) + len(content) > WRITE_BYTES:
            yield {"op": "write", "paths": paths}, contents
            paths, contents = [], []
        paths.append(path)
        contents.append(content[:WRITE_BYTES])
        if len(content) > WRITE_BYTES:
            yield {"op": "write", "paths": paths}, contents
            paths, contents = [], []
            for start in range(WRITE_BYTES, len(content), WRITE_BYTES):
                yield {"op": "append", "path": path}, (content[start : start + WRITE_BYTES],)
    if paths or not files:
        yield {"op": "write", "paths": paths}, contents


def run_facts(frame: Frame) -> RunFacts:
    """How a program ended."""
    status = int(frame.number("status"))
    return RunFacts(
        exit_code=os.WEXITSTATUS(status) if os.WIFEXITED(status) else 0,
        signal=os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0,
        killed_for=frame.text("killed_for"),
        note=int(frame.number("note")),
        is_full=frame.flag("is_full"),
        truncated=frame.flag("stdout_is_over") or frame.flag("stderr_is_over"),
    )


def usage_of(frame: Frame, output_bytes: int) -> Usage:
    """What a program used."""
    return Usage(
        memory_peak_bytes=int(frame.number("memory_peak_bytes")),
        processes_peak=min(int(frame.number("processes_peak")), _MAX_COUNT),
        disk_bytes=int(frame.number("disk_bytes")),
        num_files=min(int(frame.number("num_files")), _MAX_COUNT),
        output_bytes=output_bytes,
    )


def entries_of(frame: Frame) -> list[DirectoryEntry]:
    """Entries of a folder. Bytes of names that are no UTF-8 are shown as U+FFFD."""
    lengths = _numbers(frame.text("lengths"))
    modes = _numbers(frame.text("modes"))
    return [
        DirectoryEntry(
            name=name.encode(errors="surrogateescape").decode(errors="replace"),
            kind=_KINDS.get(kind, EntryKind.OTHER),
            size_bytes=length if kind == "f" else 0,
            mode=mode,
        )
        for name, kind, length, mode in zip(frame.texts("names"), frame.text("kinds"), lengths, modes, strict=False)
    ]


def _numbers(text: str) -> list[int]:
    return [int(word) for word in text.split(",") if word.isdigit()]
