"""Boxes made of namespaces: a clone of the zygote in a user, pid, mount, net, ipc, uts and cgroup namespace of its own. Used by zygote.main.

ns-root and ns-rootless run the same code; as root every box has a spare uid of the host's, otherwise all have the service's own uid.
"""

import fcntl
import os
import socket
import struct

from journeyman.boxes.program import WORK_FOLDER
from sandbox_service.adapters.box import init
from sandbox_service.adapters.box.runner import apply_rlimits, processes_of_box_s
from sandbox_service.adapters.linux import calls
from sandbox_service.adapters.linux.seccomp import build_filter
from sandbox_service.adapters.zygote.cgroups import Cgroups
from sandbox_service.adapters.zygote.confinement import enter_quietly, keep_only
from sandbox_service.adapters.zygote.template import (
    UID_IN_BOX,
    enter_template,
    interpreter_folders,
    is_covered,
    mount_box,
)
from sandbox_service.core.shape import BoxShape

_ALL_NAMESPACES = (
    calls.CLONE_NEWUSER
    | calls.CLONE_NEWPID
    | calls.CLONE_NEWNS
    | calls.CLONE_NEWNET
    | calls.CLONE_NEWIPC
    | calls.CLONE_NEWUTS
    | calls.CLONE_NEWCGROUP
)
_SIOCSIFFLAGS, _IFF_UP = 0x8914, 1
_GO = b"g"
_NUM_UIDS = 65_000
_PIDS_BELOW_RLIMIT = 8
"""The cgroup's limit comes first where there is one, since it is counted and can be told afterwards."""


class NamespaceConfinement:
    """Makes boxes in this process's children."""

    def __init__(self, cgroups: Cgroups, uid_first: int | None) -> None:
        self._cgroups = cgroups
        self._uid_first = uid_first
        self._filter = build_filter(calls.MACHINE)
        self._folders = interpreter_folders()
        self._covered = [folder for folder in self._folders if is_covered(folder)]

    def prepare(self) -> None:
        """Once, in the process that will make boxes."""
        if self._uid_first is not None:
            _drop_groups()
        enter_template(self._folders)

    def start(self, number: int, shape: BoxShape, connection: socket.socket) -> int:
        """A new box that serves on connection; its init's pid as this process sees it."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        pid = calls.clone(_ALL_NAMESPACES)
        if pid == 0:
            ours.close()
            self._live(number, shape, connection, theirs)
        theirs.close()
        with ours:
            uid = 0 if self._uid_first is None else self._uid_first + number % _NUM_UIDS
            _write(f"/proc/{pid}/setgroups", "deny")
            _write(f"/proc/{pid}/uid_map", f"{UID_IN_BOX} {uid} 1")
            _write(f"/proc/{pid}/gid_map", f"{UID_IN_BOX} {uid} 1")
            self._cgroups.add(number, shape, pid)
            ours.send(_GO)
        return pid

    def _live(self, number: int, shape: BoxShape, connection: socket.socket, gate: socket.socket) -> None:
        """The box's init, from its birth on; never comes back."""
        with enter_quietly(connection):
            if gate.recv(1) != _GO:
                os._exit(1)
            self._cgroups.enter(number)
            keep_only(connection.fileno())
            os.setresgid(UID_IN_BOX, UID_IN_BOX, UID_IN_BOX)
            os.setresuid(UID_IN_BOX, UID_IN_BOX, UID_IN_BOX)
            mount_box(shape.disk_bytes, shape.max_files, self._covered)
            _raise_loopback()
            socket.sethostname("box")
            os.chdir(WORK_FOLDER)
            os.setsid()
            spare = _PIDS_BELOW_RLIMIT if "pids" in self._cgroups.controllers else 0
            apply_rlimits(shape.memory_bytes, shape.max_processes + 1 + spare, shape.disk_bytes)
            calls.prctl(calls.PR_SET_NO_NEW_PRIVS, 1)
            calls.drop_capabilities()
            calls.prctl(calls.PR_SET_DUMPABLE, 0)
            calls.load_seccomp(self._filter)
            init.serve(connection, WORK_FOLDER, shape, _kill_everything_else, processes_of_box_s)


def _drop_groups() -> None:
    try:
        os.setgroups([])
    except OSError as error:
        raise OSError(error.errno, f"root may not drop its groups here: {error.strerror}") from error


def _kill_everything_else() -> None:
    """Every process of this pid namespace but its first, which is the caller."""
    try:
        os.kill(-1, 9)
    except ProcessLookupError:
        return


def _raise_loopback() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, _SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", _IFF_UP))


def _write(path: str, text: str) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(fd, text.encode())
    finally:
        os.close(fd)
