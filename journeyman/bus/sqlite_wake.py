"""Wakes the other processes of a SQLite bus: each listens on a Unix datagram socket, a publisher sends one empty datagram to each.

Called by SqliteBus. Waking is only a hint: a consumer also looks every FALLBACK_S by itself, so a lost datagram costs time, never a record.
"""

import asyncio
import contextlib
import hashlib
import os
import secrets
import socket
import tempfile
from pathlib import Path

FALLBACK_S = 0.1


class Wake:
    """This process's ear, and its voice to the others."""

    def __init__(self, bus_file: Path) -> None:
        digest = hashlib.sha256(str(bus_file.resolve()).encode()).hexdigest()[:16]
        # Not beside the bus file: the path of a Unix socket may have 107 bytes only.
        self._folder = Path(tempfile.gettempdir()) / f"journeyman-{os.getuid()}" / digest
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._name = f"{os.getpid()}-{secrets.token_hex(3)}"
        self._voice = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._voice.setblocking(False)
        self._ear: socket.socket | None = None
        self._num_heard = 0
        self._waiters: list[asyncio.Future[None]] = []

    def all(self) -> None:
        """Wakes everyone on the bus, this process included."""
        self._heard()
        for name in os.listdir(self._folder):
            if name == self._name:
                continue
            try:
                self._voice.sendto(b"", str(self._folder / name))
            except BlockingIOError:
                continue  # it has unread wake-ups already
            except ConnectionRefusedError:
                with contextlib.suppress(OSError):
                    (self._folder / name).unlink()  # its process is gone
            except OSError:
                continue  # only a hint: the other one looks by itself soon

    def ticket(self) -> int:
        """Taken before looking for records, so that what is published while looking ends the wait that follows at once."""
        return self._num_heard

    async def wait(self, ticket: int, timeout_s: float) -> None:
        """Until someone has published since the ticket was taken, or timeout_s, or FALLBACK_S."""
        if self._ear is None:
            self._listen()
            return  # what was published before we listened was not heard: look once more
        if self._num_heard != ticket:
            return
        waiter = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        try:
            await asyncio.wait((waiter,), timeout=min(timeout_s, FALLBACK_S))
        finally:
            self._waiters.remove(waiter)

    def _heard(self) -> None:
        self._num_heard += 1
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)

    def _listen(self) -> None:
        self._ear = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._ear.setblocking(False)
        self._ear.bind(str(self._folder / self._name))
        asyncio.get_running_loop().add_reader(self._ear.fileno(), self._hear)

    def _hear(self) -> None:
        assert self._ear is not None
        with contextlib.suppress(BlockingIOError):
            while True:
                self._ear.recv(1)
        self._heard()

    def close(self) -> None:
        """Stops listening."""
        if self._ear is not None:
            with contextlib.suppress(RuntimeError):
                asyncio.get_running_loop().remove_reader(self._ear.fileno())
            self._ear.close()
            with contextlib.suppress(OSError):
                (self._folder / self._name).unlink()
        self._voice.close()
