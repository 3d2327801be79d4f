"""What bwrap and runsc start in a box: shuts itself in as far as they did not, then serves on its standard input. See adapters.zygote.commands.

It is process 1 of its box, so orphans come to it.
"""

import contextlib
import json
import os
import socket
import sys

from journeyman.boxes.program import WORK_FOLDER
from sandbox_service.adapters.box import init
from sandbox_service.adapters.box.interpreter import forget_origin
from sandbox_service.adapters.box.limits import apply_rlimits
from sandbox_service.adapters.box.runner import processes_of_box_s
from sandbox_service.adapters.linux import calls
from sandbox_service.adapters.linux.seccomp import build_filter
from sandbox_service.adapters.zygote.confinement import enter_quietly
from sandbox_service.core.shape import BoxShape


def main(arguments: list[str]) -> None:
    """Never comes back. Arguments: where our modules lie, processes allowed, whose kernel it is (linux or gvisor), the shape."""
    sources, max_processes, kernel, shape_json = arguments
    connection = socket.socket(fileno=os.dup(0))
    with enter_quietly(connection):
        shape = BoxShape.from_json(json.loads(shape_json))
        sys.path.remove(sources)
        forget_origin()
        calls.prctl(calls.PR_SET_NO_NEW_PRIVS, 1)
        calls.prctl(calls.PR_SET_DUMPABLE, 0)
        apply_rlimits(shape.memory_bytes, int(max_processes), shape.disk_bytes)
        with contextlib.suppress(KeyError):
            calls.load_seccomp(build_filter(calls.MACHINE, for_gvisor=kernel == "gvisor"))
        init.serve(connection, WORK_FOLDER, shape, _kill_everything_else, processes_of_box_s)


def _kill_everything_else() -> None:
    """Every process of this pid namespace but its first, which is the caller."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(-1, 9)
