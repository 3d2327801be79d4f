"""The service's end of a connection to a box, against an init that this test plays."""

import asyncio
import socket
from collections.abc import AsyncIterator, Sequence

import pytest

from sandbox_service.adapters.box.frames import Frame, FrameReader, encode
from sandbox_service.adapters.box_link import BoxGone, BoxLink, BoxSilent
from sandbox_service.adapters.box_logs import BoxLogs
from sandbox_service.adapters.launching import BoxCounters, LaunchedBox
from sandbox_service.adapters.run_output import RunOutput
from sandbox_service.core.shape import BoxShape


class PlayedInit:
    """The other end of the connection."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._reader = FrameReader()
        self._frames: list[Frame] = []

    async def hear(self) -> str:
        """What is asked next."""
        loop = asyncio.get_running_loop()
        while not self._frames:
            data = await loop.sock_recv(self._connection, 1 << 16)
            assert data, "the service has closed"
            self._frames += self._reader.feed(data)
        return self._frames.pop(0).text("op")

    async def say(self, header: dict[str, str], blobs: Sequence[bytes] = ()) -> None:
        """Sends one frame."""
        await asyncio.get_running_loop().sock_sendall(self._connection, encode(header, blobs))

    def close(self) -> None:
        """Dies."""
        self._connection.close()


@pytest.fixture
async def ends() -> AsyncIterator[tuple[BoxLink, PlayedInit]]:
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    theirs.setblocking(False)

    async def no_counters() -> BoxCounters:
        return BoxCounters()

    ended: asyncio.Future[BoxCounters] = asyncio.get_running_loop().create_future()
    link = BoxLink(LaunchedBox(connection=ours, ended=ended, kill=lambda: None, counters=no_counters))
    yield link, PlayedInit(theirs)
    link.close()
    theirs.close()


async def test_a_cancelled_request_is_stopped_before_the_next(ends: tuple[BoxLink, PlayedInit]) -> None:
    link, init = ends
    first = asyncio.ensure_future(link.request({"op": "run"}, within_s=5.0))
    assert await init.hear() == "run"
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    second = asyncio.ensure_future(link.request({"op": "read"}, within_s=5.0))
    assert await init.hear() == "stop"
    await init.say({"op": "out", "stream": "stdout"}, [b"late"])
    await init.say({"answer": "first"})
    assert await init.hear() == "read"
    await init.say({"answer": "second"})
    assert (await second).text("answer") == "second"


async def test_a_request_cancelled_while_it_is_sent_is_sent_to_its_end(ends: tuple[BoxLink, PlayedInit]) -> None:
    link, init = ends
    first = asyncio.ensure_future(link.request({"op": "write"}, [bytes(4 << 20)], within_s=5.0))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    first.cancel()
    second = asyncio.ensure_future(link.request({"op": "read"}, within_s=5.0))
    assert await init.hear() == "write"
    await init.say({"answer": "first"})
    assert [await init.hear(), await init.hear()] == ["stop", "read"]
    await init.say({"answer": "second"})
    assert (await second).text("answer") == "second"


async def test_an_init_that_does_not_stop_is_silent(
    ends: tuple[BoxLink, PlayedInit], monkeypatch: pytest.MonkeyPatch
) -> None:
    link, init = ends
    monkeypatch.setattr("sandbox_service.adapters.box_link._STOP_S", 0.05)
    first = asyncio.ensure_future(link.request({"op": "run"}, within_s=5.0))
    await init.hear()
    first.cancel()
    await asyncio.wait([first])
    for _ in range(2):
        with pytest.raises(BoxSilent):
            await link.request({"op": "read"}, within_s=5.0)


async def test_output_is_read_only_as_fast_as_it_is_taken(ends: tuple[BoxLink, PlayedInit]) -> None:
    link, init = ends
    gate = asyncio.Event()
    taken = 0

    async def take(frame: Frame) -> None:
        nonlocal taken
        taken += len(frame.blobs[0])
        await gate.wait()

    request = asyncio.ensure_future(link.request({"op": "run"}, within_s=5.0, take=take))
    await init.hear()

    async def flood() -> None:
        for _ in range(64):
            await init.say({"op": "out", "stream": "stdout"}, [bytes(1 << 17)])
        await init.say({"answer": "done"})

    flooding = asyncio.ensure_future(flood())
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(asyncio.shield(flooding), 0.2)
    assert link._waiting_bytes < 1 << 20
    gate.set()
    assert (await request).text("answer") == "done"
    assert taken == 64 << 17
    await flooding


async def test_a_dead_init_and_one_that_speaks_nonsense_are_gone(ends: tuple[BoxLink, PlayedInit]) -> None:
    link, init = ends
    request = asyncio.ensure_future(link.request({"op": "run"}, within_s=5.0))
    await init.hear()
    await asyncio.get_running_loop().sock_sendall(init._connection, b"\xff" * 8)
    with pytest.raises(BoxGone):
        await request
    with pytest.raises(BoxGone):
        await link.request({"op": "run"}, within_s=5.0)


async def test_silence_is_told(ends: tuple[BoxLink, PlayedInit]) -> None:
    link, _ = ends
    with pytest.raises(BoxSilent):
        await link.request({"op": "run"}, within_s=0.05)


def frame(header: dict[str, str], *blobs: bytes) -> Frame:
    (made,) = FrameReader().feed(encode(header, blobs))
    return made


@pytest.mark.parametrize(
    "sent",
    [
        frame({"op": "out", "stream": "stdin"}, b"x"),
        frame({"op": "out", "stream": "stdout"}),
        frame({"op": "out", "stream": "stdout"}, b"x" * 13),
    ],
)
async def test_output_that_cannot_be_is_not_believed(sent: Frame) -> None:
    output = RunOutput(BoxShape(output_bytes=4, log_bytes=8), BoxLogs(), 1, None)
    with pytest.raises(BoxGone):
        await output.take(sent)


def test_answers_without_output_are_not_believed() -> None:
    output = RunOutput(BoxShape(), BoxLogs(), 1, None)
    with pytest.raises(BoxGone):
        output.finish(frame({}, b"only one"))
    with pytest.raises(BoxGone):
        output.finish(frame({}, b"", bytes(BoxShape().output_bytes + 1)))
