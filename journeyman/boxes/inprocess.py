"""InProcessBox: programs run inside this very process, in a folder. For trusted code only: it guards nothing and limits nothing.

Used for scripted demonstrations and tests. Its methods never wait, so they may be driven without an event loop. For well-behaved programs
its results equal the sandbox's byte for byte: the folder's own path is shown as the boxes' working folder.
"""

import contextlib
import importlib
import io
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock

from journeyman.boxes.paths import checked_path
from journeyman.boxes.port import Ending, OutputCut, RunResult, Usage
from journeyman.boxes.program import OUTPUT_BYTES, WORK_FOLDER, compile_program, run_program

_one_at_a_time = Lock()
"""The working folder and sys.stdout belong to the whole process."""
_compiled = lru_cache(maxsize=64)(compile_program)


class _Output(io.BytesIO):
    """What a program wrote, even where it closed its stdout."""

    def close(self) -> None:
        """Does nothing."""


class InProcessBox:
    """A Box over an existing folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder.resolve()

    async def run_python(
        self, source: str, argv: Sequence[str] = (), *, timeout_s: float = 5.0, cpu_s: float = 2.0
    ) -> RunResult:
        """See Box. timeout_s and cpu_s are ignored."""
        stdout, stderr = _Output(), _Output()
        started_s, started_cpu_s = time.perf_counter(), time.process_time()
        with _one_at_a_time, _inside(self._folder, stdout, stderr):
            exit_code = _run(source, argv)
        wall_s, used_s = time.perf_counter() - started_s, time.process_time() - started_cpu_s
        return self._result(exit_code, stdout.getvalue(), stderr.getvalue(), wall_s, used_s)

    async def run_command(self, argv: Sequence[str], *, timeout_s: float = 5.0, cpu_s: float = 2.0) -> RunResult:
        """See Box. cpu_s is ignored."""
        started_s = time.perf_counter()
        try:
            done = subprocess.run(  # noqa: ASYNC221  # waiting here is the point: nothing else may run meanwhile
                argv, cwd=self._folder, stdin=subprocess.DEVNULL, capture_output=True, timeout=timeout_s, check=False
            )
        except FileNotFoundError:
            return self._result(127, b"", f"{argv[0]}: command not found\n".encode(), 0.0, 0.0)
        return self._result(done.returncode, done.stdout, done.stderr, time.perf_counter() - started_s, 0.0)

    async def write_files(self, files: Mapping[str, bytes]) -> None:
        """See Box."""
        for path, content in files.items():
            target = self._folder / checked_path(path)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)

    async def read_files(self, paths: Sequence[str]) -> dict[str, bytes]:
        """See Box."""
        targets = {path: self._folder / checked_path(path) for path in paths}
        return {path: target.read_bytes() for path, target in targets.items() if self._is_readable(target)}

    def _is_readable(self, target: Path) -> bool:
        return target.is_file() and target.resolve().is_relative_to(self._folder)

    def _result(self, code: int, stdout: bytes, stderr: bytes, wall_s: float, cpu_s: float) -> RunResult:
        kept = [self._named(stream)[:OUTPUT_BYTES] for stream in (stdout, stderr)]
        truncated = max(len(stdout), len(stderr)) > OUTPUT_BYTES
        ending = Ending.OUTPUT_LIMIT if truncated else Ending.EXITED if code >= 0 else Ending.SIGNALLED
        return RunResult(
            ending=ending,
            exit_code=code if ending is Ending.EXITED else None,
            stdout=kept[0],
            stderr=kept[1],
            wall_s=wall_s,
            cpu_s=cpu_s,
            truncated=truncated,
            used=Usage(output_bytes=len(stdout) + len(stderr)),
            stdout_cut=_cut(stdout),
            stderr_cut=_cut(stderr),
        )

    def _named(self, stream: bytes) -> bytes:
        return stream.replace(os.fsencode(self._folder), WORK_FOLDER.encode())


def _cut(stream: bytes) -> OutputCut | None:
    """As in a box that ends a program where it has written as much as is kept."""
    if len(stream) <= OUTPUT_BYTES:
        return None
    return OutputCut(head_bytes=OUTPUT_BYTES, total_bytes=OUTPUT_BYTES)


@contextlib.contextmanager
def inprocess_box(files: Mapping[str, bytes] | None = None) -> Iterator[InProcessBox]:
    """A box in a temporary folder that goes with it."""
    with TemporaryDirectory(prefix="box-") as folder:
        for path, content in (files or {}).items():
            target = Path(folder) / checked_path(path)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
        yield InProcessBox(Path(folder))


def _run(source: str, argv: Sequence[str]) -> int:
    try:
        code = _compiled(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        code = None  # run_program compiles again and reports it as python would
    exit_code, _ = run_program(source, argv, code)
    return exit_code


@contextlib.contextmanager
def _inside(folder: Path, stdout: _Output, stderr: _Output) -> Iterator[None]:
    """The process as a program in the folder expects it; afterwards as it was, without the modules that lie in the folder."""
    before = (sys.stdin, sys.stdout, sys.stderr, sys.argv, list(sys.path), sys.modules["__main__"], set(sys.modules))
    no_bytecode, home = sys.dont_write_bytecode, os.getcwd()
    sys.stdin = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    sys.stdout = io.TextIOWrapper(stdout, encoding="utf-8", errors="surrogateescape", write_through=True)
    sys.stderr = io.TextIOWrapper(stderr, encoding="utf-8", errors="backslashreplace", write_through=True)
    sys.path.insert(0, str(folder))
    sys.dont_write_bytecode = True
    importlib.invalidate_caches()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(home)
        sys.dont_write_bytecode = no_bytecode
        sys.stdin, sys.stdout, sys.stderr, sys.argv, sys.path[:], sys.modules["__main__"], known = before
        for name in set(sys.modules) - known:
            if (getattr(sys.modules[name], "__file__", None) or "").startswith(str(folder)):
                del sys.modules[name]
