"""A seccomp filter without libseccomp: a deny list assembled into BPF. Loaded by every box init before it serves.

What is denied is kernel surface that no task needs (mounts, namespaces, tracing, bpf, io_uring, keys, modules, clocks), sockets other than
local and internet ones, stocks shared by all boxes, and touching another process's limits. Unknown architectures are killed; the rest is allowed.
"""

import errno
import struct
from collections.abc import Sequence
from typing import Final

_LOAD, _JUMP_EQUAL, _JUMP_AT_LEAST, _JUMP_BITS, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _KILL_PROCESS, _ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
_NUMBER, _ARCHITECTURE, _FIRST_ARGUMENT = 0, 4, 16
_X32_BIT: Final = 0x40000000
_NAMESPACE_FLAGS: Final = 0x7E020000 | 0x80
_LOCAL_FAMILIES: Final = (1, 2, 10)
"""AF_UNIX, AF_INET, AF_INET6."""
_TERMINAL_INJECTION: Final = (0x5412, 0x541C)
"""TIOCSTI, TIOCLINUX."""

_AUDIT: Final = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
# Numbers by system call: x86_64, aarch64 (None where the architecture has none).
_DENIED: Final[dict[str, tuple[int | None, int | None]]] = {
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "unshare": (272, 97),
    "setns": (308, 268),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "mount_setattr": (442, 442),
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "process_madvise": (440, 440),
    "kcmp": (312, 272),
    "pidfd_getfd": (438, 438),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "open_by_handle_at": (304, 265),
    "name_to_handle_at": (303, 264),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "reboot": (169, 142),
    "settimeofday": (164, 170),
    "clock_settime": (227, 112),
    "clock_adjtime": (305, 266),
    "adjtimex": (159, 171),
    "acct": (163, 89),
    "quotactl": (179, 60),
    "quotactl_fd": (443, 443),
    "lookup_dcookie": (212, 18),
    "syslog": (103, 116),
    "fanotify_init": (300, 262),
    "iopl": (172, None),
    "ioperm": (173, None),
    "modify_ldt": (154, None),
    "vhangup": (153, 58),
    "sethostname": (170, 161),
    "setdomainname": (171, 162),
    "set_mempolicy": (238, 237),
    "migrate_pages": (256, 238),
    "move_pages": (279, 239),
}
# What the kernel counts for the host's user that makes boxes, so that one box could use up every other's.
_SHARED_STOCK: Final = {"inotify_init": (253, None), "inotify_init1": (294, 26)}
# The process that each of these acts on is its first argument.
_SIGNALLING: Final = {
    "kill": (62, 129),
    "tkill": (200, 130),
    "tgkill": (234, 131),
    "rt_sigqueueinfo": (129, 138),
    "rt_tgsigqueueinfo": (297, 240),
    "pidfd_open": (434, 434),
}
# Likewise; a program that slows the first process of its box down would be watched late.
_SCHEDULING: Final = {
    "sched_setparam": (142, 118),
    "sched_setscheduler": (144, 119),
    "sched_setaffinity": (203, 122),
    "sched_setattr": (314, 274),
}
# Kind and number of what is slowed down: a process, a group of processes, or all of a user's, which is refused.
_PRIORITY: Final = {"setpriority": ((141, 140), 2), "ioprio_set": ((251, 30), 3)}
_FCNTL: Final = (72, 25)
_SIGNAL_OWNERS: Final = (8, 10, 15)
"""F_SETOWN, F_SETSIG, F_SETOWN_EX."""
_CLONE, _CLONE3, _SOCKET, _SOCKETPAIR, _IOCTL, _PRLIMIT = (
    (56, 220),
    (435, 435),
    (41, 198),
    (53, 199),
    (16, 29),
    (302, 261),
)

Instruction = tuple[int, int, int, int]
"""code, jump if true, jump if false, operand."""


def build_filter(machine: str, *, for_gvisor: bool = False) -> bytes:
    """The filter for an architecture (platform.machine()), as struct sock_filter[]. KeyError where it is not known.

    for_gvisor: on its kernel programs could kill process 1 of their box, which Linux does not allow.
    """
    column = list(_AUDIT).index(machine)
    program: list[Instruction] = [
        (_LOAD, 0, 0, _ARCHITECTURE),
        (_JUMP_EQUAL, 1, 0, _AUDIT[machine]),
        (_RETURN, 0, 0, _KILL_PROCESS),
        (_LOAD, 0, 0, _NUMBER),
    ]
    if machine == "x86_64":
        program += [(_JUMP_AT_LEAST, 0, 1, _X32_BIT), _refusal(errno.ENOSYS)]
    for numbers in _DENIED.values():
        if (number := numbers[column]) is not None:
            program += _when(number, [_refusal(errno.EPERM)])
    for numbers in _SHARED_STOCK.values():
        if (number := numbers[column]) is not None:
            program += _when(number, [_refusal(errno.EMFILE)])  # used up: programs know how to do without
    program += _when(_CLONE3[column], [_refusal(errno.ENOSYS)])
    program += _when(_CLONE[column], _unless_clear(0, _NAMESPACE_FLAGS))
    for call in (_SOCKET, _SOCKETPAIR):
        program += _when(call[column], _unless_one_of(_LOCAL_FAMILIES))
    program += _when(_IOCTL[column], _if_one_of(1, _TERMINAL_INJECTION))
    program += _when(_PRLIMIT[column], _unless_zero(0))
    for numbers in _SCHEDULING.values():
        program += _when(numbers[column], _if_one_of(0, (1,)))
    for numbers, of_user in _PRIORITY.values():
        program += _when(numbers[column], [*_refused_if(0, of_user), *_refused_if(1, 1), (_RETURN, 0, 0, _ALLOW)])
    if for_gvisor:
        for numbers in _SIGNALLING.values():
            program += _when(numbers[column], _if_one_of(0, (1,)))
        program += _when(_FCNTL[column], _if_one_of(1, _SIGNAL_OWNERS))
    program.append((_RETURN, 0, 0, _ALLOW))
    return b"".join(struct.pack("=HBBI", *instruction) for instruction in program)


def _refusal(number: int) -> Instruction:
    return (_RETURN, 0, 0, _ERRNO | number)


def _when(number: int, body: Sequence[Instruction]) -> list[Instruction]:
    """body where the system call is number; the accumulator holds the number before and is not read after body."""
    return [(_JUMP_EQUAL, 0, len(body), number), *body]


def _argument(index: int) -> Instruction:
    """Loads the low word of an argument: both architectures are little-endian, and these arguments are ints to the kernel."""
    return (_LOAD, 0, 0, _FIRST_ARGUMENT + 8 * index)


def _unless_clear(index: int, bits: int) -> list[Instruction]:
    return [_argument(index), (_JUMP_BITS, 0, 1, bits), _refusal(errno.EPERM), (_RETURN, 0, 0, _ALLOW)]


def _refused_if(index: int, value: int) -> list[Instruction]:
    """Goes on where an argument is another."""
    return [_argument(index), (_JUMP_EQUAL, 0, 1, value), _refusal(errno.EPERM)]


def _unless_zero(index: int) -> list[Instruction]:
    return [_argument(index), (_JUMP_EQUAL, 1, 0, 0), _refusal(errno.EPERM), (_RETURN, 0, 0, _ALLOW)]


def _unless_one_of(values: Sequence[int]) -> list[Instruction]:
    tests = [(_JUMP_EQUAL, len(values) - place, 0, value) for place, value in enumerate(values)]
    return [_argument(0), *tests, _refusal(errno.EAFNOSUPPORT), (_RETURN, 0, 0, _ALLOW)]


def _if_one_of(index: int, values: Sequence[int]) -> list[Instruction]:
    tests = [(_JUMP_EQUAL, len(values) - place, 0, value) for place, value in enumerate(values)]
    return [_argument(index), *tests, (_RETURN, 0, 0, _ALLOW), _refusal(errno.EPERM)]
