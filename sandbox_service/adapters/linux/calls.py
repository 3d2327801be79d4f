"""System calls by ctypes. Called by the zygote and by box inits, which are single-threaded; every failure raises OSError.

PyDLL keeps the interpreter's lock during a call, so that a clone never leaves a child whose lock is held by nobody.
"""

import contextlib
import ctypes
import os
import platform
import struct
from collections.abc import Callable
from typing import Final

_libc: Final = ctypes.PyDLL(None, use_errno=True)

CLONE_NEWNS, CLONE_NEWCGROUP, CLONE_NEWUTS, CLONE_NEWIPC = 0x20000, 0x2000000, 0x4000000, 0x8000000
CLONE_NEWUSER, CLONE_NEWPID, CLONE_NEWNET = 0x10000000, 0x20000000, 0x40000000
MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_BIND, MS_REC, MS_PRIVATE = 2, 4, 8, 4096, 16384, 1 << 18
MS_RDONLY, MS_REMOUNT = 1, 32
MNT_DETACH = 2
PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_KEEPCAPS, PR_SET_SECCOMP, PR_CAPBSET_DROP = 1, 4, 8, 22, 24
PR_SET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS, PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL = 36, 38, 47, 4
SECCOMP_MODE_FILTER = 2
RESOLVE_NO_MAGICLINKS, RESOLVE_BENEATH = 2, 8
LAST_CAPABILITY = 63

_SIGCHLD = 17
_AT_RECURSIVE, _AT_FDCWD, _AT_EMPTY_PATH = 0x8000, -100, 0x1000
_MOUNT_ATTR_RDONLY, _MOUNT_ATTR_NOSUID, _MOUNT_ATTR_NODEV, _MOUNT_ATTR_IDMAP = 1, 2, 4, 1 << 20
_OPEN_TREE_CLONE, _MOVE_MOUNT_F_EMPTY_PATH = 1, 4
_NUMBERS: Final = {
    "x86_64": {
        "clone": 56,
        "pivot_root": 155,
        "capset": 126,
        "open_tree": 428,
        "move_mount": 429,
        "openat2": 437,
        "mount_setattr": 442,
        "sched_setattr": 314,
    },
    "aarch64": {
        "clone": 220,
        "pivot_root": 41,
        "capset": 91,
        "open_tree": 428,
        "move_mount": 429,
        "openat2": 437,
        "mount_setattr": 442,
        "sched_setattr": 274,
    },
}
MACHINE: Final = platform.machine()


def is_supported() -> bool:
    """Whether this machine's system call numbers are known here."""
    return MACHINE in _NUMBERS


def _check(result: int, what: str) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return result


def _system_call(name: str, *arguments: object) -> int:
    words = [ctypes.c_long(value) if isinstance(value, int) else value for value in arguments]
    return _check(int(_libc.syscall(ctypes.c_long(_NUMBERS[MACHINE][name]), *words)), name)


def clone(flags: int) -> int:
    """A child in new namespaces, as os.fork gives one: 0 in the child."""
    _after_fork("PyOS_BeforeFork")
    pid = -1
    try:
        pid = _system_call("clone", flags | _SIGCHLD, 0, 0, 0, 0)
    finally:
        _after_fork("PyOS_AfterFork_Child" if pid == 0 else "PyOS_AfterFork_Parent")
    return pid


def _after_fork(name: str) -> None:
    hook: Callable[[], None] = getattr(ctypes.pythonapi, name)
    hook()


def unshare(flags: int) -> None:
    """Moves the caller into new namespaces."""
    _check(int(_libc.unshare(flags)), "unshare")


def enter_mount_namespace(fd: int) -> None:
    """Moves the caller into a mount namespace; its root and working folder become that one's."""
    _check(int(_libc.setns(fd, CLONE_NEWNS)), "setns")


def mount(source: str, target: str, kind: str = "", flags: int = 0, options: str = "") -> None:
    """mount(2); empty strings are passed as NULL."""
    encoded = [os.fsencode(text) if text else None for text in (source, target, kind)]
    data = options.encode() if options else None
    _check(int(_libc.mount(*encoded, ctypes.c_ulong(flags), data)), f"mount {source or kind} on {target}")


def bind(source_fd: int, target: str) -> None:
    """Shows what an open path refers to at target, with everything mounted below it."""
    mount(f"/proc/self/fd/{source_fd}", target, flags=MS_BIND | MS_REC)


def make_read_only(target: str) -> None:
    """Makes the mount at target and those below it read-only, without devices and set-user-id programs."""
    attributes = struct.pack("QQQQ", _MOUNT_ATTR_RDONLY | _MOUNT_ATTR_NOSUID | _MOUNT_ATTR_NODEV, 0, 0, 0)
    _system_call("mount_setattr", _AT_FDCWD, os.fsencode(target), _AT_RECURSIVE, attributes, len(attributes))


def enter_root(folder: str) -> None:
    """Makes folder, a mount, the root of this mount namespace; the old root is gone."""
    os.chdir(folder)
    _system_call("pivot_root", b".", b".")
    _check(int(_libc.umount2(b".", MNT_DETACH)), "umount the old root")
    os.chdir("/")


def unmount(target: str) -> None:
    """Takes the mount at target away; who has it open keeps it."""
    _check(int(_libc.umount2(os.fsencode(target), MNT_DETACH)), f"umount {target}")


def open_tree(path: str) -> int:
    """A mount of path that lies nowhere yet. It lasts as long as the descriptor, and then as long as whatever it was moved to."""
    return _system_call("open_tree", _AT_FDCWD, os.fsencode(path), _OPEN_TREE_CLONE | os.O_CLOEXEC)


def move_tree(fd: int, target: str) -> None:
    """Puts what open_tree gave at target, in the caller's mount namespace."""
    _system_call("move_mount", fd, b"", _AT_FDCWD, os.fsencode(target), _MOVE_MOUNT_F_EMPTY_PATH)


def map_owners(fd: int, user_namespace_fd: int) -> None:
    """Shows a tree's files, which belong to a user in the namespace that they were made in, as that user's of another namespace. Linux 6.3+."""
    attributes = struct.pack("QQQQ", _MOUNT_ATTR_RDONLY | _MOUNT_ATTR_IDMAP, 0, 0, user_namespace_fd)
    _system_call("mount_setattr", fd, b"", _AT_EMPTY_PATH, attributes, len(attributes))


def prctl(option: int, argument: int = 0, pointer: object = 0, fourth: int = 0) -> None:
    """prctl(2)."""
    third = pointer if not isinstance(pointer, int) else ctypes.c_ulong(pointer)
    _check(
        int(_libc.prctl(option, ctypes.c_ulong(argument), third, ctypes.c_ulong(fourth), ctypes.c_ulong(0))), "prctl"
    )


def drop_capabilities() -> None:
    """Leaves no capability in any set, and none to be had by executing a program."""
    with contextlib.suppress(OSError):  # beyond the kernel's last, or not ours to drop: no_new_privs holds then
        for capability in range(LAST_CAPABILITY):
            prctl(PR_CAPBSET_DROP, capability)
    header = struct.pack("Ii", 0x20080522, 0)
    _system_call("capset", header, bytes(24))


def load_seccomp(program: bytes) -> None:
    """Installs a BPF program made by journeyman's assembler on this process and all its children. Needs no_new_privs."""
    instructions = ctypes.create_string_buffer(program, len(program))

    class Program(ctypes.Structure):
        _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_void_p))

    filled = Program(len(program) // 8, ctypes.cast(instructions, ctypes.c_void_p))
    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(filled))


def open_beneath(folder_fd: int, path: str, flags: int, mode: int = 0) -> int:
    """Opens path below a folder; links that lead out of it, absolute ones and magic ones fail."""
    how = struct.pack("QQQ", flags | os.O_CLOEXEC, mode, RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS)
    return _system_call("openat2", folder_fd, os.fsencode(path), how, len(how))
