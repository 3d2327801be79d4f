"""Boxes made of namespaces: a clone of the zygote in a user, pid, mount, net, ipc, uts and cgroup namespace of its own. Used by zygote.main.

ns-root and ns-rootless run the same code; as root every box has a spare uid of the host's, otherwise all have the service's own uid.
"""

import contextlib
import fcntl
import json
import os
import signal
import socket
import struct
from collections.abc import Sequence

from journeyman.boxes.program import WORK_FOLDER
from sandbox_service.adapters.box import init
from sandbox_service.adapters.box.limits import apply_rlimits
from sandbox_service.adapters.box.runner import processes_of_box_s
from sandbox_service.adapters.linux import calls
from sandbox_service.adapters.linux.seccomp import build_filter
from sandbox_service.adapters.zygote.cgroups import Cgroups
from sandbox_service.adapters.zygote.confinement import Started, enter_quietly, keep_only
from sandbox_service.adapters.zygote.layers import MAX_LAYERS, Layers
from sandbox_service.adapters.zygote.spares import Spares
from sandbox_service.adapters.zygote.template import (
    UID_IN_BOX,
    enter_template,
    interpreter_folders,
    is_covered,
    mount_box,
    mount_proc,
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
_GO, _OWN_FILES = b"g", b"f"
_MAX_ORDER_BYTES = 4096
_NUM_UIDS = 65_000
_PIDS_BELOW_RLIMIT = 8
"""The cgroup's limit comes first where there is one, since it is counted and can be told afterwards."""


class NamespaceConfinement:
    """Makes boxes in this process's children.

    Most of a box's making needs neither its limits nor its files, so it is done ahead: spares wait at a gate for what they lack.
    """

    def __init__(self, cgroups: Cgroups, uid_first: int | None, max_spares: int) -> None:
        self._cgroups = cgroups
        self._uid_first = uid_first
        self._filter = build_filter(calls.MACHINE)
        self._folders = interpreter_folders()
        self._covered = [folder for folder in self._folders if is_covered(folder)]
        self._layers: Layers | None = None
        self._spares = Spares(max_spares)
        self._num_made = 0
        self._uids_in_use: set[int] = set()
        self._living: dict[int, Started] = {}
        """By the pid of its init; spares too."""

    def prepare(self) -> None:
        """Once, in the process that will make boxes."""
        if self._uid_first is not None:
            _drop_groups()
        enter_template(self._folders)
        self._layers = Layers()

    def start(self, shape: BoxShape, connection: socket.socket, layers: Sequence[int]) -> Started:
        """A box that serves on connection and starts with the files of layers, the newest first."""
        while (spare := self._spares.take()) is not None:
            with contextlib.suppress(ConnectionError, FileNotFoundError, ProcessLookupError):  # it has died since
                return self._finish(spare, shape, connection, layers)
        return self._finish(self._make(), shape, connection, layers)

    @property
    def num_spares(self) -> int:
        """Boxes made ahead of demand."""
        return len(self._spares)

    def refill(self) -> bool:
        """Makes one spare where some are wanted; whether more are."""
        if self._spares.wants_more():
            self._spares.add(self._make())
        return self._spares.wants_more()

    def shrink(self) -> bool:
        """Ends one spare that nobody is likely to ask for; whether there was one."""
        if (spare := self._spares.surplus()) is None:
            return False
        os.kill(spare.pid, signal.SIGKILL)
        return True

    def keep(self, started: Started, layer: int) -> None:
        """Makes what a box has written a layer. The box must write no more."""
        if started.gate is None or self._layers is None:
            raise OSError(0, "this box has no files of its own that could be kept")
        _, trees, _, _ = socket.recv_fds(started.gate, 1, 1)
        if not trees:
            raise OSError(0, "they have been taken already, or the box has ended")
        try:
            self._layers.keep(layer, trees[0])
        finally:
            os.close(trees[0])

    def drop(self, layer: int) -> None:
        """Forgets a layer."""
        if self._layers is not None:
            self._layers.drop(layer)

    def bury(self, pid: int) -> Started | None:
        """Clears away after a box whose init has been reaped, taken or not; None where pid was none."""
        started = self._living.pop(pid, None)
        if started is not None:
            self._spares.discard(started)
            self._uids_in_use.discard(started.slot % _NUM_UIDS)
            if started.gate is not None:
                started.gate.close()
        return started

    def _make(self) -> Started:
        """A box up to its gate."""
        slot = self._next_slot()
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        pid = calls.clone(_ALL_NAMESPACES)
        if pid == 0:
            ours.close()
            self._live(slot, theirs)
        theirs.close()
        uid = 0 if self._uid_first is None else self._uid_first + slot % _NUM_UIDS
        _write(f"/proc/{pid}/setgroups", "deny")
        _write(f"/proc/{pid}/uid_map", f"{UID_IN_BOX} {uid} 1")
        _write(f"/proc/{pid}/gid_map", f"{UID_IN_BOX} {uid} 1")
        self._cgroups.add(slot, pid)
        ours.send(_GO)
        made = self._living[pid] = Started(pid=pid, slot=slot, gate=ours)
        return made

    def _next_slot(self) -> int:
        """The uid that goes with it is no living box's."""
        self._num_made += 1
        while self._num_made % _NUM_UIDS in self._uids_in_use:
            self._num_made += 1
        self._uids_in_use.add(self._num_made % _NUM_UIDS)
        return self._num_made

    def _finish(self, made: Started, shape: BoxShape, connection: socket.socket, layers: Sequence[int]) -> Started:
        """Lets a box through its gate."""
        if made.gate is None:
            raise OSError(0, "a box without a gate")
        self._cgroups.limit(made.slot, shape)
        trees = self._layers.open(layers) if self._layers is not None else []
        try:
            if trees and self._uid_first is not None:
                _map_owners(trees, made.pid)
            order = json.dumps(shape.to_json()).encode()
            socket.send_fds(made.gate, [order], [connection.fileno(), *trees])
        finally:
            for tree in trees:
                os.close(tree)
        return made

    def _live(self, slot: int, gate: socket.socket) -> None:
        """The box's init, from its birth on; never comes back."""
        try:
            self._cross_gate(slot, gate)
        finally:
            os._exit(1)

    def _cross_gate(self, slot: int, gate: socket.socket) -> None:
        if gate.recv(1) != _GO:
            return
        self._cgroups.enter(slot)
        peak_fds = self._cgroups.open_peaks(slot)
        keep_only(gate.fileno(), *(fd for fd in peak_fds if fd >= 0))
        os.setresgid(UID_IN_BOX, UID_IN_BOX, UID_IN_BOX)
        os.setresuid(UID_IN_BOX, UID_IN_BOX, UID_IN_BOX)
        mount_proc()
        _raise_loopback()
        socket.sethostname("box")
        os.setsid()
        order, fds, _, _ = socket.recv_fds(gate, _MAX_ORDER_BYTES, 1 + MAX_LAYERS)
        if not fds:
            return
        connection = socket.socket(fileno=fds[0])
        with enter_quietly(connection):
            shape = BoxShape.from_json(json.loads(order))
            self._shut_in(shape, gate, fds[1:])
            init.serve(connection, WORK_FOLDER, shape, _kill_everything_else, processes_of_box_s, peak_fds)

    def _shut_in(self, shape: BoxShape, gate: socket.socket, trees: Sequence[int]) -> None:
        """Gives the box its files and limits and takes every right from it."""
        own = mount_box(shape.disk_bytes, shape.max_files, self._covered, trees)
        with gate:
            socket.send_fds(gate, [_OWN_FILES], [own])
        for fd in (own, *trees):
            os.close(fd)
        os.chdir(WORK_FOLDER)
        spare = _PIDS_BELOW_RLIMIT if "pids" in self._cgroups.controllers else 0
        apply_rlimits(shape.memory_bytes, shape.max_processes + 1 + spare, shape.disk_bytes)
        calls.prctl(calls.PR_SET_NO_NEW_PRIVS, 1)
        calls.drop_capabilities()
        calls.prctl(calls.PR_SET_DUMPABLE, 0)
        calls.load_seccomp(self._filter)


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


def _map_owners(trees: Sequence[int], pid: int) -> None:
    """Makes the files of trees, which belong to other boxes' users, those of the box that pid is the init of."""
    user_namespace = os.open(f"/proc/{pid}/ns/user", os.O_RDONLY | os.O_CLOEXEC)
    try:
        for tree in trees:
            calls.map_owners(tree, user_namespace)
    finally:
        os.close(user_namespace)


def _raise_loopback() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, _SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", _IFF_UP))


def _write(path: str, text: str) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(fd, text.encode())
    finally:
        os.close(fd)
