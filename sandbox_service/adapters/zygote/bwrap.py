"""bubblewrap as a maker of boxes: the fallback, perhaps with rights that we have not. A Tool of zygote.commands.

Every box starts an interpreter, so making one takes as long as starting Python. As root it runs as a spare uid of the host's in the
zygote's template of a file system, where every user can read the interpreter wherever it lies; otherwise it sees the host's files itself.
"""

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from journeyman.boxes.program import WORK_FOLDER
from sandbox_service.adapters.zygote.commands import InitOrder
from sandbox_service.adapters.zygote.template import TEMPORARY_FOLDER, UID_IN_BOX, enter_template
from sandbox_service.core.shape import BoxShape

_NAMESPACES = (
    "--unshare-user",
    "--unshare-pid",
    "--unshare-net",
    "--unshare-ipc",
    "--unshare-uts",
    "--unshare-cgroup-try",
)
_SYSTEM_FOLDERS = ("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
_SYSTEM_FILES = ("/etc/alternatives", "/etc/ld.so.cache")
_MADE_FILES = ("/etc/passwd", "/etc/group", "/etc/nsswitch.conf", "/etc/hosts")
"""The template's, not the host's."""
_DEVICES = ("null", "zero", "full", "random", "urandom")
_LINKS = {
    "/dev/fd": "/proc/self/fd",
    "/dev/stdin": "/proc/self/fd/0",
    "/dev/stdout": "/proc/self/fd/1",
    "/dev/stderr": "/proc/self/fd/2",
    "/dev/shm": TEMPORARY_FOLDER,
    "/var/tmp": TEMPORARY_FOLDER,
}
_OWN_PROCESSES = 2
"""bwrap's watcher, and the box's init."""
_PIDS_BELOW_RLIMIT = 8
"""The cgroup's limit comes first where there is one, since it is counted and can be told afterwards."""


class BwrapTool:
    """Makes boxes by bwrap."""

    def __init__(self, path: str, *, in_template: bool) -> None:
        self._bwrap = path
        self._in_template = in_template
        self._fixed: list[str] = []

    def prepare(self, folders: Sequence[str], attempt: Callable[[list[str]], str]) -> None:
        """See Tool."""
        if self._in_template:
            self._bwrap = os.path.realpath(self._bwrap)
            enter_template([*folders, os.path.dirname(self._bwrap)])
        files = [*_SYSTEM_FILES, *(_MADE_FILES if self._in_template else ())]
        self._fixed = [*_shown(folders, files), *_devices(), "--remount-ro", "/", "--chdir", WORK_FOLDER]
        if complaint := attempt([*self._box(BoxShape()), "/usr/bin/true"]):
            raise OSError(0, complaint.removeprefix("bwrap: "))

    def argv(self, slot: int, shape: BoxShape, has_pids_limit: bool) -> list[str]:
        """See Tool."""
        spare = _PIDS_BELOW_RLIMIT if has_pids_limit else 0
        order = InitOrder(max_processes=shape.max_processes + _OWN_PROCESSES + spare, kernel="linux", shape=shape)
        return [*self._box(shape), *order.argv]

    def group_limits(self, shape: BoxShape) -> BoxShape:
        """See Tool."""
        return replace(shape, max_processes=shape.max_processes + _OWN_PROCESSES - 1)

    def bury(self, slot: int) -> None:
        """Nothing is left."""

    def _box(self, shape: BoxShape) -> list[str]:
        """bwrap with all its arguments, up to the command."""
        user = ["--uid", str(UID_IN_BOX), "--gid", str(UID_IN_BOX), "--cap-drop", "ALL", "--hostname", "box"]
        size = ["--size", str(shape.disk_bytes), "--tmpfs"]
        own = [*size, TEMPORARY_FOLDER, *size, WORK_FOLDER]
        return [self._bwrap, *_NAMESPACES, "--die-with-parent", "--as-pid-1", *user, *own, *self._fixed, "--"]


def _shown(folders: Iterable[str], files: Iterable[str]) -> list[str]:
    """System folders and others, read-only. After the box's own folders, because they may lie in these."""
    arguments = [part for folder in ("/usr", *folders) for part in ("--ro-bind", folder, folder)]
    for folder in _SYSTEM_FOLDERS:
        if os.path.islink(folder):
            arguments += ["--symlink", os.readlink(folder), folder]
        elif os.path.isdir(folder):
            arguments += ["--ro-bind", folder, folder]
    return [*arguments, *(part for path in files for part in ("--ro-bind-try", path, path)), "--proc", "/proc"]


def _devices() -> list[str]:
    arguments = [part for name in _DEVICES for part in ("--dev-bind", f"/dev/{name}", f"/dev/{name}")]
    return [*arguments, *(part for link, target in _LINKS.items() for part in ("--symlink", target, link))]
