"""The throw-away namespaces that everything here happens in, so that an attack that gets through harms nothing.

Mounts are private and read-only but for one folder; processes end with the first; where control groups of version 1 can be had, memory and
processes of the whole are limited. Called by storm.py before anything hostile runs.
"""

import contextlib
import ctypes
import os
import struct
import sys
from collections.abc import Iterator
from pathlib import Path

from sandbox_service.adapters.linux import calls

COMMAND = (
    "unshare",
    *(() if os.geteuid() == 0 else ("-U", "--map-root-user")),
    "--mount",
    "--pid",
    "--fork",
    "--kill-child",
    "--mount-proc",
    "--propagation",
    "private",
)
"""Starts a program in them."""
_MOUNT_SETATTR = 442
_AT_RECURSIVE, _READ_ONLY = 0x8000, 1
_FOLDER_BYTES = 1024 << 20
_GROUP_LIMITS = {"memory": ("memory.limit_in_bytes", 4 << 30), "pids": ("pids.max", 3000)}


def enter(folder: str) -> None:
    """Makes everything read-only but folder, which becomes a sized tmpfs and where temporary files go."""
    _set_attributes("/", _READ_ONLY, 0)
    with contextlib.suppress(OSError):  # without control groups there is nothing to write to
        _set_attributes("/sys/fs/cgroup", 0, _READ_ONLY)
    calls.mount("proc", "/proc", "proc")
    calls.mount("attacks", folder, "tmpfs", options=f"size={_FOLDER_BYTES},mode=0755")
    os.environ["TMPDIR"] = folder


def loosen(folder: str) -> None:
    """Lets the folders of this interpreter and /tmp be written to, to no lasting effect."""
    kept = os.open(folder, os.O_PATH)
    for number, path in enumerate((os.path.dirname(os.__file__), os.path.join(sys.base_prefix, "bin"), "/tmp")):
        upper, work = f"{folder}/.upper{number}", f"{folder}/.work{number}"
        os.mkdir(upper)
        os.mkdir(work)
        calls.mount("attacks", path, "overlay", options=f"lowerdir={path},upperdir={upper},workdir={work}")
    if not os.path.exists(f"{folder}/.upper0"):  # it lies in /tmp
        calls.bind(kept, folder)
    os.close(kept)


@contextlib.contextmanager
def limited() -> Iterator[None]:
    """Puts this process and what it starts into control groups of its own, where they can be had."""
    own = dict(line.split(":", 2)[1:] for line in Path("/proc/self/cgroup").read_text().splitlines())
    made: list[tuple[Path, Path]] = []
    for name, (file, limit) in _GROUP_LIMITS.items():
        for parent in (Path(f"/sys/fs/cgroup/{name}{own.get(name, '/')}"), Path("/sys/fs/cgroup", name)):
            if (parent / file).exists() or (parent / "cgroup.procs").exists():
                with contextlib.suppress(OSError):
                    made.append((parent, _join(parent / f"attacks-{os.getpid()}-{os.urandom(4).hex()}", file, limit)))
                break
    try:
        yield
    finally:
        for parent, folder in made:
            with contextlib.suppress(OSError):
                (parent / "cgroup.procs").write_text(str(os.getpid()))
                for child in folder.glob("journeyman-*"):
                    child.rmdir()
                folder.rmdir()


def _join(folder: Path, file: str, limit: int) -> Path:
    folder.mkdir()
    (folder / file).write_text(str(limit))
    (folder / "cgroup.procs").write_text("0")
    return folder


def _set_attributes(path: str, set_bits: int, clear_bits: int) -> None:
    """mount_setattr(2) on a mount and those below it."""
    libc = ctypes.CDLL(None, use_errno=True)
    attributes = struct.pack("QQQQ", set_bits, clear_bits, 0, 0)
    words = (ctypes.c_long(_MOUNT_SETATTR), ctypes.c_long(-100), os.fsencode(path), ctypes.c_long(_AT_RECURSIVE))
    if libc.syscall(*words, attributes, ctypes.c_long(len(attributes))) != 0:
        raise OSError(ctypes.get_errno(), f"mount_setattr on {path}")
