"""What is kept of a program's output: the first half of the room and the last. Pure; called by adapters.run_output."""


class KeptOutput:
    """Head and tail of one stream."""

    def __init__(self, keep_bytes: int) -> None:
        self._head_room = keep_bytes // 2
        self._tail_room = keep_bytes - self._head_room
        self._head = bytearray()
        self._tail = bytearray()
        self.total_bytes = 0
        """Length of the stream so far."""

    def feed(self, data: bytes) -> None:
        """Takes more of the stream. Holds at most twice the room, and data."""
        self.total_bytes += len(data)
        missing = self._head_room - len(self._head)
        self._head += data[:missing]
        self._tail += data[missing:]
        if len(self._tail) > 2 * self._tail_room:
            del self._tail[: -self._tail_room]

    @property
    def is_whole(self) -> bool:
        """Whether nothing is missing."""
        return not self.is_too_long_with(0)

    def is_too_long_with(self, num_bytes: int) -> bool:
        """Whether something will be missing when so many bytes more have come."""
        return self.total_bytes + num_bytes > self._head_room + self._tail_room

    @property
    def head_bytes(self) -> int:
        """Bytes before the gap."""
        return len(self._head)

    @property
    def content(self) -> bytes:
        """Head and tail, one after the other."""
        return bytes(self._head + self._tail[-self._tail_room :])
