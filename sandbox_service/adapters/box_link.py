"""The service's end of the connection to a box's init: one request at a time, each answered by one frame. Used by LinkedBox.

While a program runs, frames with its output may come before the answer. They are read only as fast as they are taken, so that whoever does
not take them holds the program back. A request that is cancelled is stopped in the box before the next one is sent.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence

from sandbox_service.adapters.box.frames import Frame, FrameError, FrameReader, Header, encode
from sandbox_service.adapters.launching import LaunchedBox

_READ_BYTES = 256 * 1024
_MAX_WAITING_BYTES = 256 * 1024
_STOP_S = 5.0
"""In which a box's init answers after it was told to stop."""


class BoxGone(Exception):
    """The box's init has closed the connection, or speaks nonsense: it is dead or about to be."""


class BoxSilent(Exception):
    """The box's init did not answer in time."""


class BoxLink:
    """A connection to a box."""

    def __init__(self, launched: LaunchedBox) -> None:
        self._connection = launched.connection
        self._loop = asyncio.get_running_loop()
        self._reader = FrameReader()
        self._frames: deque[Frame] = deque()
        self._waiting_bytes = 0
        self._is_paused = False
        self._is_closed = False
        self._waiter: asyncio.Future[None] | None = None
        self._sending: asyncio.Task[None] | None = None
        """The rest of a frame that did not fit into the connection at once."""
        self._stopping: asyncio.Task[None] | None = None
        """The end of a request whose caller has gone."""
        self._loop.add_reader(self._connection, self._hear)

    async def request(
        self,
        header: Header,
        blobs: Sequence[bytes] = (),
        *,
        within_s: float,
        take: Callable[[Frame], Awaitable[None]] | None = None,
    ) -> Frame:
        """The answer; take gets the frames with output before it. BoxGone or BoxSilent where there is none."""
        if self._stopping is not None:
            await asyncio.shield(self._stopping)
            self._stopping = None
        is_answered = False
        try:
            async with asyncio.timeout(within_s):
                await self._send(encode(header, blobs))
                while (frame := await self.next_frame()).text("op") == "out":
                    if take is not None:
                        await take(frame)
                is_answered = True
                return frame
        except TimeoutError as error:
            raise BoxSilent(f"no answer within {within_s:.1f} s") from error
        except asyncio.CancelledError:
            if not is_answered:
                self._stopping = self._loop.create_task(self._stop())
                self._stopping.add_done_callback(lambda task: task.cancelled() or task.exception())
            raise

    async def next_frame(self) -> Frame:
        """The next frame the box sends."""
        while not self._frames:
            if self._is_closed:
                raise BoxGone("the box has ended")
            if self._is_paused:
                self._is_paused = False
                self._loop.add_reader(self._connection, self._hear)
            self._waiter = self._loop.create_future()
            await self._waiter
        frame = self._frames.popleft()
        self._waiting_bytes -= len(frame.raw)
        return frame

    def close(self) -> None:
        """Closes the connection, which ends the box's init."""
        self._end()

    async def _stop(self) -> None:
        """Ends the program that runs and reads up to its answer."""
        try:
            async with asyncio.timeout(_STOP_S):
                if self._sending is not None:
                    await self._sending
                await self._send(encode({"op": "stop"}))
                while (await self.next_frame()).text("op") == "out":
                    continue
        except TimeoutError as error:
            raise BoxSilent("it did not stop its program") from error
        except OSError as error:
            raise BoxGone(str(error)) from error

    async def _send(self, data: bytes) -> None:
        if self._is_closed:
            raise BoxGone("the box has ended")
        try:
            sent = self._send_now(data)
            if sent < len(data):
                rest = memoryview(data)[sent:]
                self._sending = self._loop.create_task(self._loop.sock_sendall(self._connection, rest))
                await asyncio.shield(self._sending)
        except OSError as error:
            raise BoxGone(str(error)) from error
        self._sending = None

    def _send_now(self, data: bytes) -> int:
        try:
            return self._connection.send(data)
        except BlockingIOError:
            return 0

    def _hear(self) -> None:
        try:
            data = self._connection.recv(_READ_BYTES)
            frames = self._reader.feed(data)
        except BlockingIOError:
            return
        except (OSError, FrameError):
            data, frames = b"", []
        self._frames.extend(frames)
        self._waiting_bytes += sum(len(frame.raw) for frame in frames)
        if not data:
            self._end()
        elif self._waiting_bytes > _MAX_WAITING_BYTES:
            self._is_paused = True
            self._loop.remove_reader(self._connection)
        if self._frames or self._is_closed:
            self._wake()

    def _end(self) -> None:
        if not self._is_closed:
            self._is_closed = True
            self._loop.remove_reader(self._connection)
            if self._sending is not None:
                self._sending.cancel()
            self._connection.close()
            self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)
        self._waiter = None
