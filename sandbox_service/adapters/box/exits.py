"""Notices that a child has ended, beside other things that are waited for. Called by runner.Runner.

A pidfd says so where the kernel has them; gVisor's kernel may have none, so there the child is asked for every few milliseconds.
"""

import errno
import os
from collections.abc import Container

_LOOK_MS = 3.0


class ExitWatch:
    """Watches one child, which it leaves to others to reap."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self.fd = _open(pid)
        """To be polled for reading; -1 where the kernel has no pidfds."""

    def wait_ms(self, wanted_ms: float) -> float:
        """How long to poll at most before has_ended is to be asked again."""
        return wanted_ms if self.fd >= 0 else min(wanted_ms, _LOOK_MS)

    def has_ended(self, ready_fds: Container[int]) -> bool:
        """Whether the child is over, after a poll that found ready_fds."""
        if self.fd >= 0:
            return self.fd in ready_fds
        try:
            return os.waitid(os.P_PID, self._pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
        except ChildProcessError:
            return True  # reaped already

    def close(self) -> None:
        """Stops watching."""
        if self.fd >= 0:
            os.close(self.fd)


def _open(pid: int) -> int:
    try:
        return os.pidfd_open(pid)
    except OSError as error:
        if error.errno != errno.ENOSYS:
            raise
        return -1
