"""Pieces of output between a program and its reader."""

import asyncio

import pytest

from journeyman.boxes.port import OutputPiece, Stream
from sandbox_service.pieces import Pieces


def piece(content: bytes, stream: Stream = Stream.STDOUT) -> OutputPiece:
    return OutputPiece(stream=stream, content=content)


async def test_order_is_kept_and_neighbours_are_joined() -> None:
    pieces = Pieces()
    for one in (piece(b"a"), piece(b"b"), piece(b"x", Stream.STDERR), piece(b"c")):
        pieces.put(one)
    pieces.close()
    assert [one async for one in pieces] == [piece(b"ab"), piece(b"x", Stream.STDERR), piece(b"c")]


async def test_a_writer_waits_until_the_reader_takes() -> None:
    pieces = Pieces()
    pieces.put(piece(bytes(300_000)))
    waiting = asyncio.ensure_future(pieces.wait_for_room())
    await asyncio.sleep(0)
    assert not waiting.done()
    await anext(pieces)
    await waiting


async def test_release_ends_all_waiting() -> None:
    pieces = Pieces()
    pieces.put(piece(bytes(300_000)))
    waiting = asyncio.ensure_future(pieces.wait_for_room())
    await asyncio.sleep(0)
    pieces.release()
    await waiting
    pieces.put(piece(bytes(300_000)))
    await pieces.wait_for_room()


async def test_a_reader_waits_for_a_piece_or_the_end() -> None:
    pieces = Pieces()
    reading = asyncio.ensure_future(anext(pieces))
    await asyncio.sleep(0)
    pieces.put(piece(b"a"))
    assert await reading == piece(b"a")
    ending = asyncio.ensure_future(anext(pieces))
    await asyncio.sleep(0)
    pieces.close()
    with pytest.raises(StopAsyncIteration):
        await ending
