"""Becomes the program: what happens in the forked child between fork and the program's end. Called by runner.Runner; never returns.

threading is left to the programs that want it: once loaded it adds a third to the price of every fork.
The child holds nothing but its three standard streams, and has permission to say one thing about its end (a Note) that no signal says.
"""

import atexit
import contextlib
import errno
import gc
import io
import mmap
import os
import resource
import signal
import sys
from collections.abc import Sequence
from enum import IntEnum
from typing import NoReturn

from journeyman.boxes.program import run_program

_CANNOT_START = 126
_NOT_FOUND = 127
_FIRST_SPARE_FD = 3
_MAX_FD = 1 << 20


class Note(IntEnum):
    """Which limit the exception that ended a Python program speaks of."""

    NONE = 0
    MEMORY = 1
    DISK = 2
    PROCESSES = 3


def become_python(source: str, argv: Sequence[str], notes: mmap.mmap) -> NoReturn:
    """Runs source as __main__ in this warm interpreter."""
    gc.enable()
    exit_code, error = run_program(source, argv)
    notes[0] = note_of(error)
    with contextlib.suppress(BaseException):  # the program's own exit handlers and streams; their errors change nothing
        if (threading := sys.modules.get("threading")) is not None:
            threading._shutdown()
        atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(BaseException):
            stream.flush()
    os._exit(exit_code)


def make_streams() -> None:
    """Makes sys.stdin, stdout and stderr for programs to come, on descriptors 0 to 2 whatever those will be. Done once, not in each child.

    They are made over a pipe, because they remember that it cannot seek.
    """
    read, write = os.pipe()
    nothing = os.open(os.devnull, os.O_RDWR)
    for number, fd in enumerate((read, write, write)):
        os.dup2(fd, number)
    sys.stdin = io.TextIOWrapper(io.BufferedReader(io.FileIO(0, "r", closefd=False)), "utf-8", "surrogateescape")
    sys.stdout = io.TextIOWrapper(io.BufferedWriter(io.FileIO(1, "w", closefd=False)), "utf-8", "surrogateescape")
    errors = io.BufferedWriter(io.FileIO(2, "w", closefd=False))
    sys.stderr = io.TextIOWrapper(errors, "utf-8", "backslashreplace", line_buffering=True)
    sys.__stdin__, sys.__stdout__, sys.__stderr__ = sys.stdin, sys.stdout, sys.stderr  # type: ignore[misc]  # final only for others
    for number in range(3):
        os.dup2(nothing, number)
    for fd in (read, write, nothing):
        os.close(fd)


def become_command(argv: Sequence[str], environment: dict[str, str]) -> NoReturn:
    """Executes a program found on the environment's PATH."""
    for number in (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGINT):
        signal.signal(number, signal.SIG_DFL)
    try:
        os.execvpe(argv[0], list(argv), environment)
    except FileNotFoundError:
        os.write(2, f"{argv[0]}: command not found\n".encode(errors="replace"))
        os._exit(_NOT_FOUND)
    except (OSError, ValueError) as error:
        os.write(2, f"{argv[0]}: {error}\n".encode(errors="replace"))
        os._exit(_CANNOT_START)


def take_streams(stdin_fd: int, stdout_fd: int, stderr_fd: int) -> None:
    """Makes the three descriptors the standard ones and closes every other."""
    for number, fd in enumerate((stdin_fd, stdout_fd, stderr_fd)):
        os.dup2(fd, number, inheritable=True)
    os.closerange(_FIRST_SPARE_FD, _MAX_FD)


def limit_itself(cpu_s: float, file_bytes: int) -> None:
    """The kernel's own limits for each process. Of CPU in whole seconds: SIGXCPU, then SIGKILL a second later. file_bytes: 0 means the box's."""
    soft_s = max(1, int(cpu_s) + (cpu_s > int(cpu_s)))
    with contextlib.suppress(ValueError):  # where less is allowed to ourselves, that holds
        resource.setrlimit(resource.RLIMIT_CPU, (soft_s, soft_s + 1))
    if file_bytes:
        with contextlib.suppress(ValueError):
            resource.setrlimit(resource.RLIMIT_FSIZE, (file_bytes, file_bytes))


def enter_folder(folder: str, below: str) -> None:
    """Starts in the working folder, or where the program is to start below it; it could go anywhere in its box by itself."""
    os.chdir(folder)
    if not below:
        return
    try:
        os.chdir(below)
    except OSError as error:
        os.write(2, f"{below}: {error.strerror}\n".encode(errors="replace"))
        os._exit(_CANNOT_START)


def note_of(error: BaseException | None) -> Note:
    """The limit that an exception speaks of."""
    if isinstance(error, MemoryError):
        return Note.MEMORY
    if isinstance(error, BlockingIOError) or (isinstance(error, RuntimeError) and "start new thread" in str(error)):
        return Note.PROCESSES
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return Note.DISK
    return Note.NONE
