"""Layers are dropped when nobody holds them, once, and boxes that are destroyed while they move leave nothing."""

import asyncio
import socket
from collections.abc import Sequence

import pytest

from journeyman.errors import ErrorCode, JourneymanError
from sandbox_service.adapters.box.frames import encode
from sandbox_service.adapters.launching import BoxCounters, LaunchedBox
from sandbox_service.adapters.layer_counts import LayerCounts
from sandbox_service.adapters.savable_box import SavableBox, Workshop
from sandbox_service.core.shape import BoxShape
from sandbox_service.ports import SavedFiles


class PaperLauncher:
    """Boxes that say they are ready and nothing more. A gate holds launches back."""

    num_ready = 0

    def __init__(self) -> None:
        self.lost = asyncio.Event()
        self.dropped: list[int] = []
        self.living = 0
        self.fails = False
        self.is_deaf = False
        self.gate: asyncio.Event | None = None
        self.waiting = asyncio.Event()
        self._theirs: list[socket.socket] = []

    async def launch(self, shape: BoxShape, layers: Sequence[int] = ()) -> LaunchedBox:
        if self.gate is not None:
            self.waiting.set()
            await self.gate.wait()
        if self.fails:
            raise JourneymanError(ErrorCode.UNAVAILABLE, "no more paper")
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        theirs.sendall(encode({"op": "ready"}))
        if self.is_deaf:
            theirs.close()
        self._theirs.append(theirs)
        self.living += 1
        ended: asyncio.Future[BoxCounters] = asyncio.get_running_loop().create_future()

        def kill() -> None:
            if not ended.done():
                self.living -= 1
                ended.set_result(BoxCounters())

        async def counters() -> BoxCounters:
            return BoxCounters()

        async def keep(layer: int) -> None:
            await asyncio.sleep(0)

        return LaunchedBox(connection=ours, ended=ended, kill=kill, counters=counters, keep=keep)

    def drop(self, layer: int) -> None:
        self.dropped.append(layer)

    async def close(self) -> None:
        for theirs in self._theirs:
            theirs.close()


async def _passes() -> bool:
    return True


@pytest.fixture
async def launcher() -> PaperLauncher:
    return PaperLauncher()


@pytest.fixture
async def workshop(launcher: PaperLauncher) -> Workshop:
    return Workshop(launcher=launcher, counts=LayerCounts(launcher), has_layers=lambda: True, control=_passes)


async def test_a_layer_lives_as_long_as_anything_stands_on_it(launcher: PaperLauncher, workshop: Workshop) -> None:
    box = await SavableBox.make(BoxShape(), workshop)
    first, second = await box.save(), await box.save()
    fork = await SavableBox.make(BoxShape(), workshop, first)
    assert (first.layers, second.layers) == ((1,), (2, 1))
    await box.destroy("")
    workshop.counts.release(second.layers)
    assert launcher.dropped == [2]
    workshop.counts.release(first.layers)
    assert launcher.dropped == [2]
    await fork.destroy("")
    assert launcher.dropped == [2, 1]
    assert (len(workshop.counts), launcher.living) == (0, 0)


async def test_what_fails_on_the_way_holds_nothing(launcher: PaperLauncher, workshop: Workshop) -> None:
    box = await SavableBox.make(BoxShape(), workshop)
    launcher.fails = True
    with pytest.raises(JourneymanError):
        await box.save()
    with pytest.raises(JourneymanError):
        await SavableBox.make(BoxShape(), workshop, SavedFiles(layers=(7,)))
    assert launcher.dropped == [1, 7]
    assert len(workshop.counts) == 0
    await box.destroy("")
    assert launcher.living == 0


async def test_a_box_destroyed_while_it_moves_is_gone(launcher: PaperLauncher, workshop: Workshop) -> None:
    box = await SavableBox.make(BoxShape(), workshop)
    launcher.gate = asyncio.Event()
    saving = asyncio.ensure_future(box.save())
    await launcher.waiting.wait()
    await box.destroy("")
    launcher.gate.set()
    with pytest.raises(JourneymanError) as gone:
        await saving
    assert gone.value.code is ErrorCode.NOT_FOUND
    assert (launcher.living, len(workshop.counts)) == (0, 0)


async def test_a_box_that_cannot_be_filled_is_ended(launcher: PaperLauncher, workshop: Workshop) -> None:
    launcher.is_deaf = True
    with pytest.raises(JourneymanError):
        await SavableBox.make(BoxShape(), workshop, SavedFiles(packed=b"x"))
    assert launcher.living == 0
