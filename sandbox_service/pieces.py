"""Pieces: output of a running program on its way to the one who listens. Used by the application; it makes the program wait for its reader."""

import asyncio
from collections import deque

from journeyman.boxes.port import OutputPiece

_ROOM_BYTES = 256 * 1024
_JOINED_BYTES = 256 * 1024


class Pieces:
    """A queue of pieces, in order. One side puts and then waits for room; the other iterates."""

    def __init__(self) -> None:
        self._waiting: deque[OutputPiece] = deque()
        self._num_bytes = 0
        self._is_closed = False
        self._is_released = False
        self._arrived = asyncio.Event()
        self._room = asyncio.Event()
        self._room.set()

    def put(self, piece: OutputPiece) -> None:
        """Appends a piece."""
        self._waiting.append(piece)
        self._num_bytes += len(piece.content)
        self._arrived.set()
        if self._num_bytes >= _ROOM_BYTES and not self._is_released:
            self._room.clear()

    async def wait_for_room(self) -> None:
        """Until the reader has taken enough, or release."""
        await self._room.wait()

    def release(self) -> None:
        """From now on nobody waits for room: the program has ended, or is about to, so that little more can come."""
        self._is_released = True
        self._room.set()

    def close(self) -> None:
        """Nothing more will come."""
        self._is_closed = True
        self._arrived.set()

    def __aiter__(self) -> "Pieces":
        return self

    async def __anext__(self) -> OutputPiece:
        """The next piece; short ones of the same stream are joined."""
        while not self._waiting:
            if self._is_closed:
                raise StopAsyncIteration
            self._arrived.clear()
            await self._arrived.wait()
        first = self._waiting.popleft()
        contents, num_bytes = [first.content], len(first.content)
        while self._waiting and self._waiting[0].stream is first.stream and num_bytes < _JOINED_BYTES:
            contents.append(self._waiting.popleft().content)
            num_bytes += len(contents[-1])
        self._num_bytes -= num_bytes
        if self._num_bytes < _ROOM_BYTES:
            self._room.set()
        return OutputPiece(stream=first.stream, content=b"".join(contents))
