"""The filter's program, run by a small interpreter: what it allows and what it answers, on both architectures."""

import errno
import struct

import pytest

from sandbox_service.adapters.linux.seccomp import build_filter

ALLOW, KILL = 0x7FFF0000, 0x80000000
AUDIT = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
OTHER = {"x86_64": 0x40000003, "aarch64": 0x40000028}
# name: x86_64, aarch64
NUMBERS = {
    "read": (0, 63),
    "execve": (59, 221),
    "openat2": (437, 437),
    "mount": (165, 40),
    "ptrace": (101, 117),
    "unshare": (272, 97),
    "clone": (56, 220),
    "clone3": (435, 435),
    "socket": (41, 198),
    "socketpair": (53, 199),
    "ioctl": (16, 29),
    "prlimit64": (302, 261),
    "kill": (62, 129),
    "tgkill": (234, 131),
    "rt_sigqueueinfo": (129, 138),
    "pidfd_open": (434, 434),
    "fcntl": (72, 25),
    "io_uring_setup": (425, 425),
    "inotify_init1": (294, 26),
    "sched_setaffinity": (203, 122),
    "sched_setscheduler": (144, 119),
    "setpriority": (141, 140),
    "ioprio_set": (251, 30),
}


def run(machine: str, number: int, *arguments: int, audit: int | None = None, for_gvisor: bool = False) -> int:
    """What the kernel would do."""
    padded = (*arguments, 0, 0, 0, 0, 0, 0)[:6]
    data = struct.pack("=iIQ6Q", number, AUDIT[machine] if audit is None else audit, 0, *padded)
    program = list(struct.iter_unpack("=HBBI", build_filter(machine, for_gvisor=for_gvisor)))
    place = accumulator = 0
    while True:
        code, yes, no, operand = program[place]
        place += 1
        if code == 0x20:
            (accumulator,) = struct.unpack_from("=I", data, operand)
        elif code == 0x06:
            return operand
        else:
            is_met = {0x15: accumulator == operand, 0x35: accumulator >= operand, 0x45: bool(accumulator & operand)}[
                code
            ]
            place += yes if is_met else no


def refused(number: int) -> int:
    return 0x50000 | number


@pytest.fixture(params=["x86_64", "aarch64"])
def machine(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def nr(machine: str, name: str) -> int:
    return NUMBERS[name][list(AUDIT).index(machine)]


def test_ordinary_calls_pass(machine: str) -> None:
    for name in ("read", "execve", "openat2"):
        assert run(machine, nr(machine, name)) == ALLOW


def test_kernel_surface_is_refused(machine: str) -> None:
    for name in ("mount", "ptrace", "unshare", "io_uring_setup"):
        assert run(machine, nr(machine, name)) == refused(errno.EPERM)


def test_forks_pass_and_new_namespaces_do_not(machine: str) -> None:
    clone = nr(machine, "clone")
    assert run(machine, clone, 0x1200011) == ALLOW
    for bit in (0x20000, 0x2000000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000):
        assert run(machine, clone, bit | 17) == refused(errno.EPERM)
    assert run(machine, nr(machine, "clone3")) == refused(errno.ENOSYS)


@pytest.mark.parametrize("name", ["socket", "socketpair"])
def test_only_local_and_internet_sockets(machine: str, name: str) -> None:
    passing = [family for family in range(50) if run(machine, nr(machine, name), family) == ALLOW]
    assert passing == [1, 2, 10]
    assert run(machine, nr(machine, name), 40) == refused(errno.EAFNOSUPPORT)


def test_terminals_cannot_be_fed(machine: str) -> None:
    ioctl = nr(machine, "ioctl")
    assert run(machine, ioctl, 0, 0x5413) == ALLOW
    assert run(machine, ioctl, 0, 0x5412) == refused(errno.EPERM)
    assert run(machine, ioctl, 0, 0x541C) == refused(errno.EPERM)


def test_limits_of_others_cannot_be_touched(machine: str) -> None:
    assert run(machine, nr(machine, "prlimit64"), 0, 7) == ALLOW
    assert run(machine, nr(machine, "prlimit64"), 1, 7) == refused(errno.EPERM)


@pytest.mark.parametrize("name", ["kill", "tgkill", "rt_sigqueueinfo", "pidfd_open"])
def test_process_1_is_out_of_reach_where_its_kernel_would_let_it_be_killed(machine: str, name: str) -> None:
    number = nr(machine, name)
    assert run(machine, number, 1, 9, for_gvisor=True) == refused(errno.EPERM)
    for other in (2, 11, 0xFFFFFFFF, 0):
        assert run(machine, number, other, 9, for_gvisor=True) == ALLOW
    assert run(machine, number, 1, 9) == ALLOW


def test_signals_cannot_be_sent_by_way_of_files_either(machine: str) -> None:
    passing = [
        command for command in range(20) if run(machine, nr(machine, "fcntl"), 3, command, for_gvisor=True) == ALLOW
    ]
    assert passing == [command for command in range(20) if command not in (8, 10, 15)]


def test_other_architectures_are_killed(machine: str) -> None:
    assert run(machine, 0, audit=OTHER[machine]) == KILL


def test_the_x32_table_is_closed() -> None:
    assert run("x86_64", 0x40000000 | 165) == refused(errno.ENOSYS)


def test_stocks_that_boxes_share_count_as_used_up(machine: str) -> None:
    assert run(machine, nr(machine, "inotify_init1"), 0) == refused(errno.EMFILE)


def test_the_first_process_cannot_be_slowed_down(machine: str) -> None:
    for name in ("sched_setaffinity", "sched_setscheduler"):
        assert run(machine, nr(machine, name), 1) == refused(errno.EPERM)
        assert run(machine, nr(machine, name), 0) == run(machine, nr(machine, name), 17) == ALLOW
    for name, of_process, of_group, of_user in (("setpriority", 0, 1, 2), ("ioprio_set", 1, 2, 3)):
        for kind in (of_process, of_group):
            assert run(machine, nr(machine, name), kind, 1) == refused(errno.EPERM)
            assert run(machine, nr(machine, name), kind, 0) == run(machine, nr(machine, name), kind, 17) == ALLOW
        assert run(machine, nr(machine, name), of_user, 0) == refused(errno.EPERM)
