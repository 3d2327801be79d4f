"""What programs write, on its way from their pipes to the service. Called by runner.Runner, which never waits while it sends.

Where the service does not take what is sent, the rest of one frame stays here, nothing more is read from the program's pipes, and so the
program itself is held back.
"""

import socket

from sandbox_service.adapters.box.frames import encode


class Output:
    """One stream of one program."""

    __slots__ = ("_buffer", "_hold_bytes", "_max_bytes", "_total_bytes", "is_over", "name")

    def __init__(self, name: str, hold_bytes: int, max_bytes: int) -> None:
        self.name = name
        self._hold_bytes = hold_bytes
        self._max_bytes = max_bytes
        self._buffer = bytearray()
        self._total_bytes = 0
        self.is_over = False
        """Whether more was written than may be."""

    def add(self, data: bytes) -> None:
        """Takes what was written; what is over the limit is dropped."""
        room = self._max_bytes - self._total_bytes
        self.is_over |= len(data) > room
        taken = data[:room] if self.is_over else data
        self._buffer += taken
        self._total_bytes += len(taken)

    @property
    def is_due(self) -> bool:
        """Whether what is held is to be sent before the program's end."""
        return self._total_bytes > self._hold_bytes and len(self._buffer) > 0

    def pop(self) -> bytes:
        """What is held, which is held no longer."""
        held = bytes(self._buffer)
        self._buffer.clear()
        return held


class Outlet:
    """Sends pieces of output on the connection that also carries the answers."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.fd = connection.fileno()
        """The connection's, to be polled."""
        self._rest = memoryview(b"")

    @property
    def is_free(self) -> bool:
        """Whether another piece may be sent."""
        return not self._rest

    def send(self, name: str, piece: bytes) -> None:
        """Sends as much as the service takes now. Only while free."""
        self._rest = memoryview(encode({"op": "out", "stream": name}, (piece,)))
        self.push()

    def push(self) -> None:
        """Sends more of the rest, if there is one. A service that is gone shows when the connection is read."""
        if not self._rest:
            return
        try:
            self._rest = self._rest[self.connection.send(self._rest, socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL) :]
        except BlockingIOError:
            return
        except OSError:
            self._rest = memoryview(b"")

    def finish(self) -> None:
        """Sends the rest, waiting for it: the program has ended, and the service reads to the end or closes."""
        self.connection.sendall(self._rest)
        self._rest = memoryview(b"")
