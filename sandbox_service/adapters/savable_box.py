"""SavableBox: a LinkedBox whose files can be saved, restored and given to others. Made by LinkedBackend.

Where the launcher has layers, saving costs the same however many files there are: what the box has written becomes a layer that nobody writes
to any more, and the box goes on in a new one on top of it, with a new init. Elsewhere files are copied through the service.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from journeyman.errors import ErrorCode, JourneymanError
from sandbox_service.adapters.box.frames import Header
from sandbox_service.adapters.box_link import BoxLink
from sandbox_service.adapters.launching import BoxCounters, LaunchedBox, Launcher
from sandbox_service.adapters.layer_counts import LayerCounts
from sandbox_service.adapters.linked_box import LinkedBox, wait_until_ready
from sandbox_service.core.shape import BoxShape
from sandbox_service.ports import SavedFiles

MAX_LAYERS = 100
"""On which one box may stand."""
READY_S = 15.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Workshop:
    """What boxes of a backend share."""

    launcher: Launcher
    counts: LayerCounts
    has_layers: Callable[[], bool]
    control: Callable[[], Awaitable[bool]]
    """Whether a trivial program runs normally in a fresh box."""


class SavableBox(LinkedBox):
    """One box. Made by make."""

    def __init__(self, launched: LaunchedBox, link: BoxLink, shape: BoxShape, workshop: Workshop) -> None:
        super().__init__(launched, link, shape, workshop.control)
        self._workshop = workshop
        self._layers: tuple[int, ...] = ()
        """What it stands on, the newest first."""

    @classmethod
    async def make(cls, shape: BoxShape, workshop: Workshop, saved: SavedFiles | None = None) -> "SavableBox":
        """A box, empty but for saved files. UNAVAILABLE where it does not come up."""
        layers = saved.layers if saved is not None else ()
        with workshop.counts.held_unless_failed(layers):
            box = cls(*await _launched(workshop, shape, layers), shape, workshop)
        box._layers = layers
        if saved is not None and saved.packed is not None:
            await box._fill(saved.packed)
        return box

    async def save(self) -> SavedFiles:
        """See LiveBox."""
        self._refuse_while_running()
        async with self._lock:
            self._refuse_spent()
            if not self._workshop.has_layers():
                return SavedFiles(packed=await self._pack())
            return SavedFiles(layers=await self._freeze())

    async def restore(self, saved: SavedFiles) -> None:
        """See LiveBox."""
        self._refuse_while_running()
        async with self._lock:
            await self._move_to(saved.layers)
            if saved.packed is not None:
                await self._unpack(saved.packed)

    async def destroy(self, reason: str) -> None:
        """See LiveBox."""
        await super().destroy(reason)
        self._let_go()

    async def _freeze(self) -> tuple[int, ...]:
        """Makes what it has written a layer and goes on upon it. Gives all layers, held for the caller."""
        if len(self._layers) >= MAX_LAYERS:
            message = f"{MAX_LAYERS} snapshots stand on each other; write the files into a new box and go on there"
            raise JourneymanError(ErrorCode.PRECONDITION, message)
        counts = self._workshop.counts
        if self._launched.keep is None:
            raise JourneymanError(ErrorCode.PRECONDITION, "files of this box can only be copied")
        layers = (counts.new(), *self._layers)
        with counts.held_unless_failed(layers):
            await self._launched.keep(layers[0])
            await self._move_to(layers)
        return layers

    async def _move_to(self, layers: tuple[int, ...]) -> None:
        """Lives on in a new init that stands on layers. Where that does not come up, in the old one. NOT_FOUND where it is gone meanwhile."""
        with self._workshop.counts.held_unless_failed(layers):
            launched, link = await _launched(self._workshop, self._shape, layers)
            if self._destroyed_for is not None:
                launched.kill()
                link.close()
                raise JourneymanError(ErrorCode.NOT_FOUND, f"the box is gone: {self._destroyed_for or 'destroyed'}")
        old_launched, old_link = self._launched, self._link
        self._launched, self._link, self._counted = launched, link, BoxCounters()
        self._spent = None
        self._let_go()
        self._layers = layers
        old_launched.kill()
        old_link.close()
        await self._make_folder()

    def _let_go(self) -> None:
        """Of what it stands on."""
        self._workshop.counts.release(self._layers)
        self._layers = ()

    async def _fill(self, packed: bytes) -> None:
        """Unpacks into a new box; ends it where that fails."""
        is_filled = False
        try:
            await self._unpack(packed)
            is_filled = True
        finally:
            if not is_filled:
                await self.destroy("it could not be filled")

    async def _pack(self) -> bytes:
        frame = await self._ask_now({"op": "pack"}, ())
        error = "its programs broke it" if frame is None else frame.text("error")
        if frame is None or error:
            raise JourneymanError(ErrorCode.PRECONDITION, f"the files of the box cannot be kept: {error}")
        return frame.raw

    async def _unpack(self, packed: bytes) -> None:
        request: tuple[Header, Sequence[bytes]] = ({"op": "unpack"}, (packed,))
        frame = await self._ask_now(*request)
        if frame is None or (error := frame.text("error")):
            reason = "it is gone" if frame is None else error
            raise JourneymanError(ErrorCode.UNAVAILABLE, f"a box could not be filled: {reason}")

    def _refuse_while_running(self) -> None:
        if self._is_running:
            message = "a program runs in the box; wait for its end, or cancel its call"
            raise JourneymanError(ErrorCode.PRECONDITION, message)

    def _refuse_spent(self) -> None:
        if self._spent is not None:
            message = (
                f"its programs broke the box ({self._spent}), and its files went with it; restore it from a snapshot"
            )
            raise JourneymanError(ErrorCode.PRECONDITION, message)


async def _launched(workshop: Workshop, shape: BoxShape, layers: Sequence[int]) -> tuple[LaunchedBox, BoxLink]:
    launched = await workshop.launcher.launch(shape, layers)
    link = BoxLink(launched)
    await wait_until_ready(launched, link, READY_S)
    return launched, link
