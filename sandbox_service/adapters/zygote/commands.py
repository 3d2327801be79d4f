"""Boxes made by a program of others (bubblewrap, gVisor) that the zygote starts for each. Used by zygote.main.

Inside, adapters.box.command_init serves on its standard input. Where the zygote is root, the program is the first process of a pid
namespace, so that its death is the death of all that it started, and it sees only the zygote's template of a file system.
"""

import json
import os
import signal
import socket
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from sandbox_service.adapters.linux import calls
from sandbox_service.adapters.zygote.cgroups import Cgroups
from sandbox_service.adapters.zygote.confinement import Started, enter_quietly, keep_only
from sandbox_service.adapters.zygote.template import interpreter_folders, mount_proc
from sandbox_service.core.shape import BoxShape

_PACKAGES = Path(__file__).resolve().parents[3]
_SOURCES = tuple(str(_PACKAGES / name) for name in ("journeyman", "sandbox_service"))
_BOOT = "import sys; sys.path.insert(0, sys.argv[1]); from sandbox_service.adapters.box.command_init import main; main(sys.argv[1:])"
_PYTHON_FLAGS = ("-s", "-P", "-B")
_GO = b"g"
_NUM_UIDS = 65_000
_CANNOT_START = 127
_MAX_COMPLAINT_CHARS = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class InitOrder:
    """What a tool starts in a box."""

    max_processes: int
    """For the kernel's limit of the box's user."""
    kernel: str
    """linux or gvisor."""
    shape: BoxShape

    @property
    def argv(self) -> list[str]:
        """The command."""
        limits = [str(self.max_processes), self.kernel, json.dumps(self.shape.to_json())]
        return [sys.executable, *_PYTHON_FLAGS, "-c", _BOOT, str(_PACKAGES), *limits]


class Tool(Protocol):
    """A program that makes boxes."""

    def prepare(self, folders: Sequence[str], attempt: Callable[[list[str]], str]) -> None:
        """Once, in the process that will make boxes. OSError says what is missing.

        folders: what a box has to see beside the system's. attempt: runs a command as the program will be run, and gives its complaint.
        """
        ...

    def argv(self, slot: int, shape: BoxShape, has_pids_limit: bool) -> list[str]:
        """The command that makes a box."""
        ...

    def group_limits(self, shape: BoxShape) -> BoxShape:
        """Limits of the control group that holds the box and what the program itself needs."""
        ...

    def bury(self, slot: int) -> None:
        """Clears away after a box."""
        ...


class CommandConfinement:
    """Makes boxes by a Tool."""

    def __init__(self, tool: Tool, cgroups: Cgroups, *, uid_first: int | None, in_namespaces: bool) -> None:
        self._tool = tool
        self._cgroups = cgroups
        self._uid_first = uid_first
        """None: the program runs as this process's user."""
        self._in_namespaces = in_namespaces
        self._num_made = 0
        self._living: dict[int, Started] = {}

    def prepare(self) -> None:
        """Once, in the process that will make boxes."""
        self._tool.prepare([*interpreter_folders(), *_SOURCES], self._attempt)

    def start(self, shape: BoxShape, connection: socket.socket, layers: Sequence[int]) -> Started:
        """A new box that serves on connection. There are no layers here."""
        self._num_made += 1
        slot = self._num_made
        argv = self._tool.argv(slot, shape, "pids" in self._cgroups.controllers)
        gate_read, gate_write = os.pipe2(os.O_CLOEXEC)
        pid = calls.clone(calls.CLONE_NEWPID | calls.CLONE_NEWNS) if self._in_namespaces else os.fork()
        if pid == 0:
            os.close(gate_write)
            self._become(slot, argv, connection, gate_read)
        os.close(gate_read)
        started = self._living[pid] = Started(pid=pid, slot=slot)
        try:
            self._cgroups.add(slot, pid)
            self._cgroups.limit(slot, self._tool.group_limits(shape))
            os.write(gate_write, _GO)
        finally:
            os.close(gate_write)
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
        raise OSError(0, "its mounts are not ours")

    def drop(self, layer: int) -> None:
        """There are none."""

    def bury(self, pid: int) -> Started | None:
        """Clears away after a box whose first process has been reaped; None where pid was none."""
        if (started := self._living.pop(pid, None)) is not None:
            self._tool.bury(started.slot)
        return started

    def _attempt(self, argv: list[str]) -> str:
        """Last line of what a command that fails says; empty for one that works."""
        said_read, said_write = os.pipe2(os.O_CLOEXEC)
        pid = os.fork()
        if pid == 0:
            try:
                os.dup2(said_write, 2)
                if self._uid_first is not None:
                    _become_user(self._uid_first)
                os.execv(argv[0], argv)
            except OSError as error:
                os.write(2, str(error).encode())
            finally:
                os._exit(_CANNOT_START)
        os.close(said_write)
        with open(said_read, encoding="utf-8", errors="replace") as file:
            lines = file.read().strip().splitlines()
        _, status = os.waitpid(pid, 0)
        return "" if status == 0 else lines[-1][:_MAX_COMPLAINT_CHARS] if lines else f"status {status}"

    def _become(self, slot: int, argv: list[str], connection: socket.socket, gate_fd: int) -> None:
        """Becomes the program; never comes back."""
        with enter_quietly(connection):
            if os.read(gate_fd, 1) != _GO:
                return
            self._cgroups.enter(slot)
            keep_only(connection.fileno())
            os.setsid()
            if self._in_namespaces:
                mount_proc()
            if self._uid_first is not None:
                _become_user(self._uid_first + slot % _NUM_UIDS)
            calls.prctl(calls.PR_SET_PDEATHSIG, signal.SIGKILL)
            os.set_inheritable(connection.fileno(), False)
            os.dup2(
                connection.fileno(), 0
            )  # and nowhere else: gVisor would end the connection with the first of its ends that is closed
            os.execv(argv[0], argv)


def _become_user(uid: int) -> None:
    try:
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)
    except OSError as error:
        raise OSError(error.errno, f"root cannot become uid {uid} here: {error.strerror}") from error
    calls.prctl(calls.PR_SET_DUMPABLE, 1)
