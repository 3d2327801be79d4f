"""The file system that every box sees, made once by the zygote for itself: a read-only root with programs and interpreter, nothing else.

Each box inherits it with its mount namespace and adds its own /proc and its own sized tmpfs. So no mount of the host is ever in a box's
namespace, and making a box mounts four things.

A box that starts with files of another sees them as the lower layers of an overlay: forking costs the same however many they are.
"""

import contextlib
import os
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from journeyman.boxes.program import WORK_FOLDER
from sandbox_service.adapters.linux.calls import (
    CLONE_NEWNS,
    MS_NODEV,
    MS_NOEXEC,
    MS_NOSUID,
    MS_PRIVATE,
    MS_REC,
    bind,
    enter_root,
    make_read_only,
    mount,
    move_tree,
    open_tree,
    unmount,
    unshare,
)

UID_IN_BOX = 1000
TEMPORARY_FOLDER = "/tmp"
_NUM_OWN_FOLDERS = 8
"""What the box's file system holds beside its files."""
_SYSTEM_FOLDERS = ("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
_SYSTEM_FILES = ("/usr", "/etc/alternatives", "/etc/ld.so.cache")
_DEVICES = ("null", "zero", "full", "random", "urandom")
_MADE_FILES = {
    "etc/passwd": f"root:x:0:0::/:/usr/sbin/nologin\nbox:x:{UID_IN_BOX}:{UID_IN_BOX}::{WORK_FOLDER}:/bin/sh\n",
    "etc/group": f"root:x:0:\nbox:x:{UID_IN_BOX}:\n",
    "etc/hosts": "127.0.0.1 localhost\n::1 localhost\n",
    "etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
}
_LINKS = {
    "dev/fd": "/proc/self/fd",
    "dev/stdin": "/proc/self/fd/0",
    "dev/stdout": "/proc/self/fd/1",
    "dev/stderr": "/proc/self/fd/2",
    "dev/shm": TEMPORARY_FOLDER,
    "var/tmp": TEMPORARY_FOLDER,
}


def interpreter_folders() -> list[str]:
    """Folders outside /usr that this interpreter needs, wherever it lies; none inside another."""
    wanted = {os.path.abspath(prefix) for prefix in (sys.base_prefix, sys.prefix, sys.base_exec_prefix)}
    wanted |= {os.path.realpath(prefix) for prefix in wanted}
    wanted |= {os.path.dirname(os.path.dirname(os.path.realpath(sys.executable)))}
    outside = sorted(folder for folder in wanted if not _is_inside(folder, ("/usr", *_SYSTEM_FOLDERS)))
    return [folder for folder in outside if folder != "/" and not _is_inside(folder, set(outside) - {folder})]


def enter_template(folders: Sequence[str]) -> None:
    """Moves this process into a mount namespace that holds only the template. It must have that right already."""
    unshare(CLONE_NEWNS)
    mount("", "/", flags=MS_REC | MS_PRIVATE)
    links = [folder for folder in _SYSTEM_FOLDERS if os.path.islink(folder)]
    targets = {folder: os.readlink(folder) for folder in links}
    shown = [*_SYSTEM_FILES, *(folder for folder in _SYSTEM_FOLDERS if folder not in links), *folders]
    sources = {path: os.open(path, os.O_PATH | os.O_CLOEXEC) for path in shown if os.path.exists(path)}
    devices = {name: os.open(f"/dev/{name}", os.O_PATH | os.O_CLOEXEC) for name in _DEVICES}
    root = TEMPORARY_FOLDER
    mount("journeyman", root, "tmpfs", MS_NOSUID | MS_NODEV, "size=1m,nr_inodes=4096,mode=0755")
    _fill(root, targets)
    for path, fd in sources.items():
        _show(fd, path, root)
    make_read_only(root)
    for name, fd in devices.items():
        bind(fd, f"{root}/dev/{name}")
    mount("proc", f"{root}/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC)
    for fd in (*sources.values(), *devices.values()):
        os.close(fd)
    enter_root(root)


def mount_proc() -> None:
    """Shows the caller's pid namespace in /proc."""
    mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC)


def mount_box(disk_bytes: int, max_files: int, covered: Iterable[str], layers: Sequence[int]) -> int:
    """Gives the box that this process is to be its own working folder and temporary folder, on one sized tmpfs.

    covered: interpreter folders that lie where the temporary or working folder comes to lie; shown again on top of it. layers: trees of
    files (linux.calls.open_tree) that it starts with, the newest first; they are shared, what it changes is its own. Gives the tree of its
    own files, which can be a layer of others once it has ended.
    """
    kept = {path: os.open(path, os.O_PATH | os.O_CLOEXEC) for path in covered}
    options = f"size={disk_bytes},nr_inodes={max_files + _NUM_OWN_FOLDERS},mode=0755"
    mount("box", WORK_FOLDER, "tmpfs", MS_NOSUID | MS_NODEV, options)
    files = f"{WORK_FOLDER}/own"
    os.mkdir(files)
    own = open_tree(files)
    if layers:
        files = _stack(layers, files)
    else:
        for name, mode in (("work", 0o755), ("tmp", 0o1777)):
            os.mkdir(f"{files}/{name}")
            os.chmod(f"{files}/{name}", mode)
    for source, target in ((f"{files}/tmp", TEMPORARY_FOLDER), (f"{files}/work", WORK_FOLDER)):
        fd = os.open(source, os.O_PATH | os.O_CLOEXEC)
        bind(fd, target)
        os.close(fd)
    for path, fd in kept.items():
        os.makedirs(path, exist_ok=True)
        bind(fd, path)
        os.close(fd)
    return own


def _stack(layers: Sequence[int], own: str) -> str:
    """Mounts an overlay and gives its folder."""
    merged, scratch = f"{WORK_FOLDER}/merged", f"{WORK_FOLDER}/scratch"
    places = [f"{WORK_FOLDER}/{number}" for number in range(len(layers))]
    for folder in (merged, scratch, *places):
        os.mkdir(folder)
    for tree, place in zip(layers, places, strict=True):
        move_tree(tree, place)
    options = f"lowerdir={':'.join(places)},upperdir={own},workdir={scratch},userxattr"
    mount("box", merged, "overlay", MS_NOSUID | MS_NODEV, options)
    for place in places:
        unmount(place)
        os.rmdir(place)
    return merged


def is_covered(folder: str) -> bool:
    """Whether a box's own folders would hide it."""
    return _is_inside(folder, (TEMPORARY_FOLDER, WORK_FOLDER))


def _fill(root: str, links: dict[str, str]) -> None:
    for folder in ("dev", "etc", "proc", "var", WORK_FOLDER.lstrip("/"), TEMPORARY_FOLDER.lstrip("/")):
        os.mkdir(f"{root}/{folder}")
    for path, text in _MADE_FILES.items():
        Path(root, path).write_text(text)
    for path, target in (_LINKS | {link.lstrip("/"): target for link, target in links.items()}).items():
        os.symlink(target, f"{root}/{path}")
    for name in _DEVICES:
        Path(root, "dev", name).touch()


def _show(fd: int, path: str, root: str) -> None:
    """Binds what fd refers to at the same path below root."""
    target = root + path
    if os.path.isdir(f"/proc/self/fd/{fd}"):
        os.makedirs(target, exist_ok=True)
    else:
        os.makedirs(os.path.dirname(target), exist_ok=True)
        with contextlib.suppress(FileExistsError):
            Path(target).touch()
    bind(fd, target)


def _is_inside(path: str, folders: Iterable[str]) -> bool:
    return any(path == folder or path.startswith(folder.rstrip("/") + "/") for folder in folders)
