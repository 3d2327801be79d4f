"""The zygote process: started by the service with a clean environment (zygote_process.py), it makes boxes by cloning itself.

It has two halves. The outer one stays in the host's namespaces, waits for the service's end or the inner one's, and then clears away.
The inner one is the first process of a pid namespace (but for weak boxes), so that its death, however caused, is the death of every
box. It is single-threaded and never loads a box's code.
"""

import ast  # noqa: F401  # these imports make the interpreter warm: boxes inherit them
import bisect  # noqa: F401
import collections  # noqa: F401
import contextlib
import copy  # noqa: F401
import dataclasses  # noqa: F401
import datetime  # noqa: F401
import decimal  # noqa: F401
import errno
import fractions  # noqa: F401
import functools  # noqa: F401
import heapq  # noqa: F401
import io  # noqa: F401
import itertools  # noqa: F401
import json
import math  # noqa: F401
import operator  # noqa: F401
import os
import random  # noqa: F401
import re  # noqa: F401
import select
import shutil
import signal
import socket
import statistics  # noqa: F401
import string  # noqa: F401
import tempfile
import textwrap  # noqa: F401
import traceback
import typing  # noqa: F401
from dataclasses import dataclass

from sandbox_service.adapters.linux import calls
from sandbox_service.adapters.zygote.cgroups import Cgroups, open_cgroups, remove_stale
from sandbox_service.adapters.zygote.confinement import Confinement
from sandbox_service.adapters.zygote.inner import Zygote, say
from sandbox_service.adapters.zygote.namespaces import NamespaceConfinement
from sandbox_service.adapters.zygote.template import interpreter_folders
from sandbox_service.adapters.zygote.tools import TOOLS, confine_by_tool
from sandbox_service.adapters.zygote.weak import WeakConfinement

_FAILED = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Orders:
    """What the service starts the zygote with."""

    isolation: str
    """ns-root, ns-rootless, bwrap, runsc or weak."""
    uid_first: int
    """First of the host's uids that boxes of ns-root have."""
    control_fd: int
    """Socket to the service."""
    max_spares: int
    """Boxes made ahead at most."""
    life_fd: int
    """Pipe that closes when the service dies."""
    tool: str
    """Path of the program that makes boxes, where one does. Empty where it is not there."""


def main(arguments: list[str]) -> None:
    """The outer half."""
    orders = Orders(**json.loads(arguments[0]))
    control = socket.socket(fileno=orders.control_fd)
    try:
        if orders.isolation == "ns-rootless" and _is_root_of_host():
            _become_ordinary(orders.uid_first)
        _live(orders, control)
    except OSError as error:
        say(control, {"op": "failed", "error": f"{error.strerror or error}"})


def _live(orders: Orders, control: socket.socket) -> None:
    """From the inner half's birth until everything is cleared away."""
    remove_stale()
    cgroups, no_cgroups = open_cgroups(f"{os.getpid()}-{os.urandom(4).hex()}")
    folder = tempfile.mkdtemp(prefix="journeyman-boxes-") if orders.isolation == "weak" else ""
    inner = 0
    try:
        confinement = _confine(orders, cgroups, folder)
        inner = os.fork()
        if inner == 0:
            os.close(orders.life_fd)
            _inner(Zygote(control, confinement, cgroups), no_cgroups)
        control.close()
        _wait_for_end(inner, orders.life_fd)
    finally:
        if inner:
            _end(inner)
        cgroups.close()
        if folder:
            shutil.rmtree(folder, ignore_errors=True)


def _confine(orders: Orders, cgroups: Cgroups, folder: str) -> Confinement:
    """Enters the namespaces that the inner half and its boxes lie in."""
    if orders.isolation == "weak":
        return WeakConfinement(folder)
    if orders.isolation in TOOLS:
        uid_first = orders.uid_first if _is_root_of_host() else None
        return confine_by_tool(orders.isolation, orders.tool, cgroups, uid_first)
    if not calls.is_supported():
        raise OSError(0, f"system call numbers of {calls.MACHINE} are not known")
    if orders.isolation == "ns-root":
        calls.unshare(calls.CLONE_NEWPID)
        return NamespaceConfinement(cgroups, orders.uid_first, orders.max_spares)
    for prefix in interpreter_folders():
        if not os.access(prefix, os.R_OK | os.X_OK):
            raise OSError(errno.EACCES, f"the interpreter in {prefix} is not readable for uid {os.geteuid()}")
    uid, gid = os.geteuid(), os.getegid()
    calls.unshare(calls.CLONE_NEWUSER | calls.CLONE_NEWPID)
    for file, text in (("setgroups", "deny"), ("uid_map", f"0 {uid} 1"), ("gid_map", f"0 {gid} 1")):
        with open(f"/proc/self/{file}", "w", encoding="ascii") as target:
            target.write(text)
    return NamespaceConfinement(cgroups, None, orders.max_spares)


def _is_root_of_host() -> bool:
    """Whether uid 0 here may be uid 0 of the host: not in a user namespace that maps it to another."""
    with open("/proc/self/uid_map", encoding="ascii") as file:
        inside, outside, _ = file.readline().split()
    return os.geteuid() == 0 and (inside, outside) == ("0", "0")


def _become_ordinary(uid: int) -> None:
    """Rootless boxes have their maker's uid, and root's own must not be inside one: it owns files of the kernel even without capabilities."""
    try:
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)
    except OSError as error:
        raise OSError(error.errno, f"root cannot become uid {uid} here: {error.strerror}") from error
    calls.prctl(calls.PR_SET_DUMPABLE, 1)


def _wait_for_end(inner: int, life_fd: int) -> None:
    """Until the service or the inner half is gone."""
    poll = select.poll()
    poll.register(os.pidfd_open(inner), select.POLLIN)
    poll.register(life_fd, select.POLLIN)
    poll.poll()


def _end(inner: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(inner, signal.SIGKILL)
    with contextlib.suppress(ChildProcessError):
        os.waitpid(inner, 0)


def _inner(zygote: Zygote, no_cgroups: str) -> None:
    """The inner half; never returns."""
    code = _FAILED
    try:
        calls.prctl(calls.PR_SET_PDEATHSIG, signal.SIGKILL)
        if zygote.prepare(no_cgroups):
            zygote.serve()
        code = 0
    except BaseException:  # the outer half must not run on in this process
        traceback.print_exc()
    finally:
        os._exit(code)
