"""Boxes by bubblewrap: the fallback where it is installed (perhaps with rights that we have not). A Launcher.

Bubblewrap makes the namespaces and the mounts; inside, the same init as everywhere shuts itself in further and serves. Every box starts
an interpreter, so making one takes as long as starting Python.
"""

import asyncio
import contextlib
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from journeyman.boxes.program import WORK_FOLDER
from journeyman.errors import ErrorCode, JourneymanError
from sandbox_service.adapters.launching import BoxCounters, LaunchedBox
from sandbox_service.adapters.zygote.template import UID_IN_BOX, interpreter_folders
from sandbox_service.adapters.zygote_process import PYTHON_FLAGS, box_environment
from sandbox_service.core.shape import BoxShape

_SOURCES = Path(__file__).resolve().parents[2]
_SOURCES_IN_BOX = "/opt/journeyman"
_BOOT = "import sys; sys.path.insert(0, sys.argv.pop(1)); from sandbox_service.adapters.box.bwrap_init import main; main(sys.argv[1:])"
_NAMESPACES = (
    "--unshare-user",
    "--unshare-pid",
    "--unshare-net",
    "--unshare-ipc",
    "--unshare-uts",
    "--unshare-cgroup-try",
)


class BwrapLauncher:
    """Starts a bwrap for each box."""

    def __init__(self, uid_first: int, python: str = sys.executable) -> None:
        self._uid = uid_first if os.geteuid() == 0 else None
        """Whom bwrap runs as: root's own uid must not be inside a box."""
        self._bwrap = shutil.which("bwrap")
        self._python = python
        self._interpreter = interpreter_folders() if python == sys.executable else []
        self._living: set[subprocess.Popen[bytes]] = set()
        self.lost = asyncio.Event()

    async def launch(self, shape: BoxShape) -> LaunchedBox:
        """See Launcher."""
        if self._bwrap is None:
            raise JourneymanError(ErrorCode.PRECONDITION, "not on PATH")
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        ours.setblocking(False)
        with theirs:
            process = subprocess.Popen(  # noqa: ASYNC220  # it only starts it
                [self._bwrap, *self._arguments(shape), "--", *self._command(shape, theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=(theirs.fileno(),),
                env=box_environment(),
                start_new_session=True,
                user=self._uid,
                group=self._uid,
                extra_groups=None if self._uid is None else [],
            )
        self._living.add(process)
        ended = asyncio.ensure_future(self._bury(process))
        return LaunchedBox(connection=ours, ended=ended, kill=process.kill, counters=_no_counters)

    async def close(self) -> None:
        """See Launcher."""
        for process in list(self._living):
            process.kill()
            await asyncio.get_running_loop().run_in_executor(None, process.wait)
        self.lost.set()

    async def _bury(self, process: "subprocess.Popen[bytes]") -> BoxCounters:
        await asyncio.get_running_loop().run_in_executor(None, process.wait)
        self._living.discard(process)
        return BoxCounters()

    def _arguments(self, shape: BoxShape) -> Sequence[str]:
        links = []
        for folder in ("/bin", "/sbin", "/lib", "/lib32", "/lib64"):
            if os.path.islink(folder):
                links += ["--symlink", os.readlink(folder), folder]
            elif os.path.isdir(folder):
                links += ["--ro-bind", folder, folder]
        binds = [part for folder in ("/usr", *self._interpreter) for part in ("--ro-bind", folder, folder)]
        sources = [
            part
            for package in ("journeyman", "sandbox_service")
            for part in ("--ro-bind", str(_SOURCES / package), f"{_SOURCES_IN_BOX}/{package}")
        ]
        sized = ["--size", str(shape.disk_bytes)] if self._knows_size() else []
        folders = [*sized, "--tmpfs", "/tmp", *sized, "--tmpfs", WORK_FOLDER]
        user = ["--uid", str(UID_IN_BOX), "--gid", str(UID_IN_BOX), "--cap-drop", "ALL", "--hostname", "box"]
        rest = ["--ro-bind-try", "/etc/alternatives", "/etc/alternatives", "--proc", "/proc", "--dev", "/dev"]
        return [
            *_NAMESPACES,
            "--die-with-parent",
            *user,
            *folders,
            *binds,
            *links,
            *sources,
            *rest,
            "--chdir",
            WORK_FOLDER,
        ]

    def _command(self, shape: BoxShape, fd: int) -> Sequence[str]:
        numbers = [str(value) for value in (fd, *shape.to_json().values())]
        return [self._python, *PYTHON_FLAGS, "-c", _BOOT, _SOURCES_IN_BOX, *numbers]

    def _knows_size(self) -> bool:
        """--size came with bubblewrap 0.5."""
        with contextlib.suppress(OSError):
            told = subprocess.run([self._bwrap or "bwrap", "--help"], capture_output=True, check=False).stdout
            return b"--size" in told
        return False


async def _no_counters() -> BoxCounters:
    return BoxCounters()
