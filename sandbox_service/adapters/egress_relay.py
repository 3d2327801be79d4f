"""Copies bytes both ways between a box and a server: back-pressure, half-close, idle time and a budget of bytes. Used by adapters.egress."""

import asyncio
import contextlib
from dataclasses import dataclass

_READ_BYTES = 64 * 1024
_WRITE_BUFFER_BYTES = 256 * 1024


class RelayEnded(Exception):
    """A limit ended it; says which."""


@dataclass(slots=True)
class ByteBudget:
    """What a box may still move, over all its connections and both directions."""

    left: int

    def take(self, count: int) -> None:
        """RelayEnded where it is spent."""
        self.left -= count
        if self.left < 0:
            raise RelayEnded("the box has used up its bytes")


class Wire:
    """One end of a relay."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer
        writer.transport.set_write_buffer_limits(high=_WRITE_BUFFER_BYTES)

    def abort(self) -> None:
        """Closes it now, whatever was not sent."""
        with contextlib.suppress(OSError, RuntimeError):
            self.writer.transport.abort()


class Relay:
    """Two wires."""

    def __init__(self, box: Wire, server: Wire, budget: ByteBudget, idle_s: float) -> None:
        self._box = box
        self._server = server
        self._budget = budget
        self._idle_s = idle_s
        self._last_s = asyncio.get_running_loop().time()
        self.out_bytes = 0
        """From the box."""
        self.in_bytes = 0

    async def run(self, after_server_s: float | None) -> None:
        """Until both sides have said all. RelayEnded where a limit is met, OSError where a side is lost.

        after_server_s: how long to listen to the box once the server has said all; None means as long as it likes.
        """
        outward, inward = (asyncio.ensure_future(pump) for pump in (self._pump_out(), self._pump_in()))
        both = asyncio.gather(outward, inward)
        try:
            if after_server_s is not None:
                await asyncio.wait((both, inward), return_when=asyncio.FIRST_COMPLETED)
                await asyncio.wait((both,), timeout=after_server_s)
                if inward.done() and not both.done():
                    return
            await both
        finally:
            for task in (both, outward, inward):
                task.cancel()
            await asyncio.gather(both, outward, inward, return_exceptions=True)

    async def _pump_out(self) -> None:
        while data := await self._read(self._box):
            self._budget.take(len(data))
            self.out_bytes += len(data)
            await self._write(self._server, data)
        self._finish(self._server)

    async def _pump_in(self) -> None:
        while data := await self._read(self._server):
            self._budget.take(len(data))
            self.in_bytes += len(data)
            await self._write(self._box, data)
        self._finish(self._box)

    async def _read(self, wire: Wire) -> bytes:
        """The next bytes; nothing moving in either direction for too long ends the relay."""
        loop = asyncio.get_running_loop()
        while True:
            try:
                async with asyncio.timeout_at(self._last_s + self._idle_s):
                    data = await wire.reader.read(_READ_BYTES)
            except TimeoutError:
                if loop.time() >= self._last_s + self._idle_s:
                    raise RelayEnded(f"idle for {self._idle_s:g} s") from None
                continue
            self._last_s = loop.time()
            return data

    async def _write(self, wire: Wire, data: bytes) -> None:
        """Waits while the other side does not take what it was sent."""
        wire.writer.write(data)
        try:
            async with asyncio.timeout(self._idle_s):
                await wire.writer.drain()
        except TimeoutError:
            raise RelayEnded(f"not read for {self._idle_s:g} s") from None
        self._last_s = asyncio.get_running_loop().time()

    def _finish(self, wire: Wire) -> None:
        """Says that no more will come, and goes on listening."""
        with contextlib.suppress(OSError, RuntimeError):
            if wire.writer.can_write_eof():
                wire.writer.write_eof()
