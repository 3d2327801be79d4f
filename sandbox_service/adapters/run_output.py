"""The output of one running program: what a result keeps of it, what goes to logs and what a listener hears. Used by LinkedBox."""

import os
from dataclasses import dataclass

from journeyman.boxes.port import OutputCut, OutputPiece, Stream
from sandbox_service.adapters.box.frames import Frame
from sandbox_service.adapters.box_link import BoxGone
from sandbox_service.adapters.box_logs import BoxLogs
from sandbox_service.core.output import KeptOutput
from sandbox_service.core.shape import BoxShape
from sandbox_service.ports import Listener

_NO_LOG = -1
_STREAMS = tuple(Stream)
_PIECE_BYTES = 64 * 1024


@dataclass(slots=True)
class _Long:
    """A stream that did not come with the answer, or not in one piece."""

    output: KeptOutput
    log: str
    """Its name; empty where there is none."""
    log_fd: int = _NO_LOG


class RunOutput:
    """Both streams of one program."""

    def __init__(self, shape: BoxShape, logs: BoxLogs, number: int, listener: Listener | None) -> None:
        self._shape = shape
        self._logs = logs
        self._number = number
        self._listener = listener
        self._long: dict[str, _Long] = {}
        self._rest: tuple[bytes, ...] = ()
        self._is_over = (False, False)

    async def take(self, frame: Frame) -> None:
        """A frame with output. Comes back when the listener wants more."""
        name = frame.text("stream")
        if name not in _STREAMS or len(frame.blobs) != 1:
            raise BoxGone("it sends what is no output")
        self._add(Stream(name), frame.blobs[0])
        if self._listener is not None:
            await self._listener.wait_for_room()

    def finish(self, answer: Frame) -> None:
        """The rest, which comes with the answer: mostly all there is."""
        if len(answer.blobs) != len(_STREAMS):
            raise BoxGone("it answers without output")
        self._rest = answer.blobs
        self._is_over = (answer.flag("stdout_is_over"), answer.flag("stderr_is_over"))
        for stream, rest in zip(_STREAMS, answer.blobs, strict=True):
            if rest and (stream in self._long or self._listener is not None or len(rest) > self._shape.output_bytes):
                self._add(stream, rest)

    def close(self) -> None:
        """Closes the logs; what they hold can be read."""
        for long in self._long.values():
            if long.log_fd != _NO_LOG:
                os.close(long.log_fd)
                long.log_fd = _NO_LOG

    def kept(self, stream: Stream) -> tuple[bytes, OutputCut | None]:
        """What the result keeps, and what it does not; None where that is nothing."""
        number = _STREAMS.index(stream)
        long = self._long.get(stream)
        content = self._rest[number] if long is None else long.output.content
        if long is not None and not long.output.is_whole:
            total_bytes = long.output.total_bytes
            return content, OutputCut(head_bytes=long.output.head_bytes, total_bytes=total_bytes, log=long.log)
        if self._is_over[number]:
            return content, OutputCut(head_bytes=len(content), total_bytes=len(content))
        return content, None

    @property
    def total_bytes(self) -> int:
        """Written to both."""
        short = sum(len(rest) for stream, rest in zip(_STREAMS, self._rest, strict=True) if stream not in self._long)
        return short + sum(long.output.total_bytes for long in self._long.values())

    def _add(self, stream: Stream, data: bytes) -> None:
        long = self._long.get(stream)
        if long is None:
            log = f"run{self._number}-{stream}" if self._shape.log_bytes else ""
            long = self._long[stream] = _Long(KeptOutput(self._shape.output_bytes), log)
        if long.output.total_bytes + len(data) > self._shape.output_bytes + self._shape.log_bytes:
            raise BoxGone("it sends more output than a program may write")
        self._log(long, data)
        long.output.feed(data)
        if self._listener is not None:
            for start in range(0, len(data), _PIECE_BYTES):
                self._listener.put(OutputPiece(stream=stream, content=data[start : start + _PIECE_BYTES]))

    def _log(self, long: _Long, data: bytes) -> None:
        """Writes a log from the first byte on that the result does not keep in one piece."""
        if not long.log or not (long.log_fd != _NO_LOG or long.output.is_too_long_with(len(data))):
            return
        try:
            if long.log_fd == _NO_LOG:
                long.log_fd = self._logs.open(long.log)
                _write_all(long.log_fd, long.output.content)
            _write_all(long.log_fd, data)
        except OSError:  # the host's disk is full, which is not the program's fault: its result is as good without
            self._give_up(long)

    def _give_up(self, long: _Long) -> None:
        if long.log_fd != _NO_LOG:
            os.close(long.log_fd)
        long.log, long.log_fd = "", _NO_LOG


def _write_all(fd: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(fd, rest) :]
