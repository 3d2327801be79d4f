"""What every way of confining a box shares. Used in the zygote and in the children that become boxes."""

import contextlib
import os
import signal
import socket
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from sandbox_service.adapters.box.frames import encode
from sandbox_service.core.shape import BoxShape

_MAX_FD = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """A box's init."""

    pid: int
    slot: int
    """Number of its control group, and of its uid."""
    gate: socket.socket | None = None
    """Connection to it from before it was shut in, on which it has told what it writes to."""


class Confinement(Protocol):
    """Makes boxes as children of the zygote."""

    @property
    def num_spares(self) -> int:
        """Boxes made ahead of demand."""
        ...

    def prepare(self) -> None:
        """Once, in the process that will make boxes."""
        ...

    def start(self, shape: BoxShape, connection: socket.socket, layers: Sequence[int]) -> Started:
        """A new box that serves on connection and starts with the files of layers, the newest first."""
        ...

    def refill(self) -> bool:
        """Makes one box ahead of demand where some are wanted; whether more are."""
        ...

    def shrink(self) -> bool:
        """Ends one box made ahead that nobody is likely to ask for; whether there was one."""
        ...

    def keep(self, started: Started, layer: int) -> None:
        """Makes what a box has written a layer. OSError where it cannot be had."""
        ...

    def drop(self, layer: int) -> None:
        """Forgets a layer."""
        ...

    def bury(self, pid: int) -> Started | None:
        """Clears away after a box whose init has been reaped, taken or not; None where pid was none."""
        ...


@contextlib.contextmanager
def enter_quietly(connection: socket.socket) -> Iterator[None]:
    """Around all that a box's init ever does: says on the connection why it failed, and never comes back."""
    try:
        yield
    except BaseException as error:  # this process is a clone: nothing may run past here, whatever happened
        with contextlib.suppress(OSError):
            connection.sendall(encode({"op": "failed", "error": f"{type(error).__name__}: {error}"}))
    finally:
        os._exit(0)


def keep_only(*kept: int) -> None:
    """Closes every other descriptor, leaves the standard ones on /dev/null and forgets the zygote's signal handling."""
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    nothing = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    for number in range(3):
        os.dup2(nothing, number)
    start = 3
    for fd in sorted(kept):
        os.closerange(start, fd)
        start = fd + 1
    os.closerange(start, _MAX_FD)
