"""Frames between the service and a box: a JSON header and byte strings. Never pickle: what a box says is not to be trusted.

The box side reads and writes them on a blocking socket; the service side feeds what it receives to a FrameReader.
"""

import json
import socket
import struct
from collections.abc import Mapping, Sequence

JsonValue = str | int | float | bool | None | Sequence["JsonValue"] | Mapping[str, "JsonValue"]
Header = Mapping[str, JsonValue]
MAX_FRAME_BYTES = 256 * 1024 * 1024
"""More than this in one frame means the other side has gone wrong."""
_PREFIX = struct.Struct("=II")
_MAX_NUMBER = 1 << 63
_SIZES = "sizes"


class FrameError(Exception):
    """What arrived is no frame."""


def encode(header: Header, blobs: Sequence[bytes] = ()) -> bytes:
    """One frame."""
    text = json.dumps({**header, _SIZES: [len(blob) for blob in blobs]}).encode()
    body = sum(map(len, blobs))
    return b"".join((_PREFIX.pack(len(text), body), text, *blobs))


class Frame:
    """A received frame: typed access to its header, and its byte strings."""

    __slots__ = ("_header", "blobs", "raw")

    def __init__(self, header: dict[str, object], blobs: tuple[bytes, ...], raw: bytes) -> None:
        self._header = header
        self.blobs = blobs
        """Byte strings, in the order sent."""
        self.raw = raw
        """The frame as it came, to be passed on unread."""

    def text(self, name: str) -> str:
        """A string; empty where absent."""
        value = self._header.get(name, "")
        if not isinstance(value, str):
            raise FrameError(f"{name} is not text")
        return value

    def number(self, name: str) -> float:
        """A finite number; 0 where absent."""
        value = self._header.get(name, 0)
        if not isinstance(value, int | float) or not -_MAX_NUMBER < value < _MAX_NUMBER:
            raise FrameError(f"{name} is not a number")
        return value

    def flag(self, name: str) -> bool:
        """A truth value; False where absent."""
        return self._header.get(name) is True

    def texts(self, name: str) -> list[str]:
        """A list of strings; empty where absent."""
        value = self._header.get(name, [])
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise FrameError(f"{name} is not a list of texts")
        return value


class FrameReader:
    """Cuts a stream of bytes into frames."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> list[Frame]:
        """Frames completed by data. FrameError where the stream is none."""
        self._buffer += data
        frames = []
        while (frame := self._next()) is not None:
            frames.append(frame)
        return frames

    def _next(self) -> Frame | None:
        if len(self._buffer) < _PREFIX.size:
            return None
        text_bytes, body_bytes = _PREFIX.unpack_from(self._buffer)
        total = _PREFIX.size + text_bytes + body_bytes
        if total > MAX_FRAME_BYTES:
            raise FrameError(f"a frame of {total} bytes")
        if len(self._buffer) < total:
            return None
        raw = bytes(self._buffer[:total])
        del self._buffer[:total]
        return parse(raw)


def parse(raw: bytes) -> Frame:
    """One frame out of its bytes. FrameError where they are none."""
    text_bytes, body_bytes = _PREFIX.unpack_from(raw)
    text, body = raw[_PREFIX.size : _PREFIX.size + text_bytes], raw[_PREFIX.size + text_bytes :]
    try:
        header = json.loads(text)
    except ValueError as error:
        raise FrameError("a header that is no JSON") from error
    sizes = header.pop(_SIZES, None) if isinstance(header, dict) else None
    if not isinstance(sizes, list) or not all(isinstance(size, int) and size >= 0 for size in sizes):
        raise FrameError("a header without sizes")
    if not sum(sizes) == body_bytes == len(body):
        raise FrameError("sizes that do not add up")
    blobs, start = [], 0
    for size in sizes:
        blobs.append(body[start : start + size])
        start += size
    return Frame(header, tuple(blobs), raw)


def receive(connection: socket.socket) -> Frame | None:
    """The next frame from a blocking socket; None where the other side has closed."""
    prefix = _read_exactly(connection, _PREFIX.size)
    if prefix is None:
        return None
    rest = _read_exactly(connection, sum(_PREFIX.unpack(prefix)))
    return None if rest is None else parse(prefix + rest)


def _read_exactly(connection: socket.socket, size: int) -> bytes | None:
    content = bytearray()
    while len(content) < size:
        piece = connection.recv(min(size - len(content), 1 << 20))
        if not piece:
            return None
        content += piece
    return bytes(content)
