"""What bwrap starts in a box: shuts itself in as far as bubblewrap did not, then serves. See adapters.bwrap."""

import contextlib
import os
import socket
import sys

from journeyman.boxes.program import WORK_FOLDER
from sandbox_service.adapters.box import init
from sandbox_service.adapters.box.interpreter import forget_origin
from sandbox_service.adapters.box.runner import apply_rlimits, processes_of_box_s
from sandbox_service.adapters.linux import calls
from sandbox_service.adapters.linux.seccomp import build_filter
from sandbox_service.adapters.zygote.confinement import enter_quietly
from sandbox_service.core.shape import BoxShape

_SOURCES = "/opt/journeyman"
"""Where bwrap shows our own modules."""


def main(arguments: list[str]) -> None:
    """Never comes back. Bubblewrap's own first process is pid 1 here; it reaps nothing of ours, so orphans come to us."""
    fd, *limits = map(int, arguments)
    names = BoxShape().to_json()
    shape = BoxShape.from_json(dict(zip(names, limits, strict=True)))
    connection = socket.socket(fileno=fd)
    with enter_quietly(connection):
        os.set_inheritable(fd, False)
        sys.path.remove(_SOURCES)
        forget_origin()
        calls.prctl(calls.PR_SET_CHILD_SUBREAPER, 1)
        calls.prctl(calls.PR_SET_NO_NEW_PRIVS, 1)
        calls.prctl(calls.PR_SET_DUMPABLE, 0)
        apply_rlimits(shape.memory_bytes, shape.max_processes + 2, shape.disk_bytes)
        with contextlib.suppress(KeyError):
            calls.load_seccomp(build_filter(calls.MACHINE))
        init.serve(connection, WORK_FOLDER, shape, kill_everything_else, processes_of_box_s)


def kill_everything_else() -> None:
    """Every process of this pid namespace but its first and ourselves."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(-1, 9)
