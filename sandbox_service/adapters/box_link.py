"""The service's end of the connection to a box's init: one request at a time, each answered by one frame. Used by LinkedBox."""

import asyncio
from collections.abc import Sequence

from sandbox_service.adapters.box.frames import Frame, FrameError, FrameReader, Header, encode
from sandbox_service.adapters.launching import LaunchedBox

_READ_BYTES = 256 * 1024


class BoxGone(Exception):
    """The box's init has closed the connection, or speaks nonsense: it is dead or about to be."""


class BoxSilent(Exception):
    """The box's init did not answer in time."""


class BoxLink:
    """A connection to a box."""

    def __init__(self, launched: LaunchedBox) -> None:
        self._connection = launched.connection
        self._reader = FrameReader()
        self._frames: list[Frame] = []
        self._is_closed = False
        self._waiter: asyncio.Future[None] | None = None
        asyncio.get_running_loop().add_reader(self._connection, self._hear)

    async def request(self, header: Header, blobs: Sequence[bytes] = (), *, within_s: float) -> Frame:
        """The answer. BoxGone or BoxSilent where there is none."""
        try:
            async with asyncio.timeout(within_s):
                await self._send(encode(header, blobs))
                return await self.next_frame()
        except TimeoutError as error:
            raise BoxSilent(f"no answer within {within_s:.1f} s") from error

    async def next_frame(self) -> Frame:
        """The next frame the box sends."""
        while not self._frames:
            if self._is_closed:
                raise BoxGone("the box has ended")
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter
        return self._frames.pop(0)

    def close(self) -> None:
        """Closes the connection, which ends the box's init."""
        self._end()

    async def _send(self, data: bytes) -> None:
        if self._is_closed:
            raise BoxGone("the box has ended")
        try:
            sent = self._send_now(data)
            if sent < len(data):
                await asyncio.get_running_loop().sock_sendall(self._connection, memoryview(data)[sent:])
        except OSError as error:
            raise BoxGone(str(error)) from error

    def _send_now(self, data: bytes) -> int:
        try:
            return self._connection.send(data)
        except BlockingIOError:
            return 0

    def _hear(self) -> None:
        try:
            data = self._connection.recv(_READ_BYTES)
            self._frames += self._reader.feed(data)
        except BlockingIOError:
            return
        except (OSError, FrameError):
            data = b""
        if not data:
            self._end()
        if self._frames or self._is_closed:
            self._wake()

    def _end(self) -> None:
        if not self._is_closed:
            self._is_closed = True
            asyncio.get_running_loop().remove_reader(self._connection)
            self._connection.close()
            self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)
        self._waiter = None
