"""The kernel's limits for each process of a box. Set by its init on itself, before it serves, and so on all that it starts."""

import contextlib
import resource

_MAX_PENDING_SIGNALS = 256
"""The kernel counts them for a user of the host, so one box could use up all."""


def limit_open_files(max_open_files: int) -> None:
    """Of this process and all that it will start; never above what is allowed to it."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    limit = max_open_files if hard == resource.RLIM_INFINITY else min(max_open_files, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))


def apply_rlimits(memory_bytes: int, max_processes: int, disk_bytes: int) -> None:
    """The kernel's limits for each process of the box, never above what we are allowed ourselves."""
    wanted = {
        resource.RLIMIT_AS: memory_bytes,
        resource.RLIMIT_NPROC: max_processes,
        resource.RLIMIT_FSIZE: disk_bytes,
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_MEMLOCK: 0,
    }
    for which, value in wanted.items():
        _, hard = resource.getrlimit(which)
        limit = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(which, (limit, limit))
    for which, value in ((resource.RLIMIT_MSGQUEUE, 0), (resource.RLIMIT_SIGPENDING, _MAX_PENDING_SIGNALS)):
        with contextlib.suppress(ValueError):  # gVisor's kernel has none for the whole host, and refuses to limit them
            resource.setrlimit(which, (value, value))
