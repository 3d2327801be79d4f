"""Boxes that are hardly boxes: a child with resource limits, a folder of its own and, where the kernel has it, a seccomp filter.

The program sees the host's files, processes and network. Only used where the operator allowed it. Used by zygote.main.
"""

import contextlib
import os
import shutil
import signal
import socket
from collections.abc import Iterator, Sequence
from pathlib import Path

from sandbox_service.adapters.box import init
from sandbox_service.adapters.box.limits import apply_rlimits
from sandbox_service.adapters.linux import calls
from sandbox_service.adapters.linux.seccomp import build_filter
from sandbox_service.adapters.zygote.confinement import Started, enter_quietly, keep_only
from sandbox_service.core.shape import BoxShape

_ROOM_FOR_OTHERS = 4096
"""The kernel counts all processes of a user against this limit, not only the box's."""


class WeakConfinement:
    """Makes boxes in this process's children."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._num_made = 0
        self._living: dict[int, Started] = {}

    def prepare(self) -> None:
        """Nothing to prepare."""

    def start(self, shape: BoxShape, connection: socket.socket, layers: Sequence[int]) -> Started:
        """A new box that serves on connection. There are no layers here."""
        self._num_made += 1
        folder = self._folder_of(self._num_made)
        folder.mkdir(mode=0o700)
        pid = os.fork()
        if pid == 0:
            self._live(shape, connection, str(folder))
        started = self._living[pid] = Started(pid=pid, slot=self._num_made)
        return started

    @property
    def num_spares(self) -> int:
        """None."""
        return 0

    def refill(self) -> bool:
        """Nothing is made ahead."""
        return False

    def shrink(self) -> bool:
        """Nothing is made ahead."""
        return False

    def keep(self, started: Started, layer: int) -> None:
        """Never: files here are copied."""
        raise OSError(0, "there are no mounts")

    def drop(self, layer: int) -> None:
        """There are none."""

    def bury(self, pid: int) -> Started | None:
        """Removes the box's folder."""
        if (started := self._living.pop(pid, None)) is not None:
            shutil.rmtree(self._folder_of(started.slot), ignore_errors=True)
        return started

    def _folder_of(self, slot: int) -> Path:
        return Path(self._folder, f"box{slot}")

    def _live(self, shape: BoxShape, connection: socket.socket, folder: str) -> None:
        with enter_quietly(connection):
            keep_only(connection.fileno())
            os.setsid()
            os.chdir(folder)
            os.environ |= {"HOME": folder, "TMPDIR": folder}
            calls.prctl(calls.PR_SET_PDEATHSIG, signal.SIGKILL)
            calls.prctl(calls.PR_SET_CHILD_SUBREAPER, 1)
            apply_rlimits(shape.memory_bytes, shape.max_processes + _ROOM_FOR_OTHERS, shape.disk_bytes)
            calls.prctl(calls.PR_SET_NO_NEW_PRIVS, 1)
            with contextlib.suppress(OSError, KeyError):
                calls.load_seccomp(build_filter(calls.MACHINE))
            init.serve(connection, folder, shape, kill_descendants, _descendants_s)


def kill_descendants() -> None:
    """Kills until no living descendant is left: they cannot leave us, since orphans become our children."""
    while living := [pid for pid, state in _descendants() if state != b"Z"]:
        for pid in living:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if not any(state != b"Z" for _, state in _descendants()):
            return


def _descendants() -> Iterator[tuple[int, bytes]]:
    """Pid and state of every process below this one."""
    parents: dict[int, list[tuple[int, bytes]]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit() and (fields := _stat(name)):
            parents.setdefault(int(fields[1]), []).append((int(name), fields[0]))
    waiting = list(parents.get(os.getpid(), ()))
    while waiting:
        process = waiting.pop()
        yield process
        waiting += parents.get(process[0], ())


def _descendants_s() -> float:
    """CPU seconds of living descendants, with those of their reaped children."""
    ticks = sum(sum(map(int, _stat(str(pid))[11:15])) for pid, _ in _descendants())
    return ticks / os.sysconf("SC_CLK_TCK")


def _stat(name: str) -> list[bytes]:
    """Fields of /proc/NAME/stat from the state on; empty where the process is gone."""
    try:
        with open(f"/proc/{name}/stat", "rb", buffering=0) as file:
            return file.read(1024).rpartition(b")")[2].split()
    except OSError:
        return []
