"""A Backend over any launcher: all kinds of isolation differ only in how a box is launched and in what they enforce."""

import asyncio

from journeyman.errors import JourneymanError
from sandbox_service.adapters.launching import Launcher
from sandbox_service.adapters.layer_counts import LayerCounts
from sandbox_service.adapters.savable_box import SavableBox, Workshop
from sandbox_service.core.programs import Program
from sandbox_service.core.shape import BoxShape
from sandbox_service.ports import SavedFiles

OVERLAY = "overlay"
_CONTROL = Program(source="print(6 * 7)", timeout_s=2.0, cpu_s=2.0)


class LinkedBackend:
    """A working kind of isolation."""

    def __init__(
        self, launcher: Launcher, isolation: str, enforced: tuple[str, ...], not_enforced: tuple[str, ...]
    ) -> None:
        self._launcher = launcher
        self._counts = LayerCounts(launcher)
        self._workshop = Workshop(
            launcher=launcher, counts=self._counts, has_layers=lambda: self.forking == OVERLAY, control=self._control
        )
        self.isolation = isolation
        self.enforced = enforced
        self.not_enforced = not_enforced
        self.forking = OVERLAY
        """overlay, or copy with its reason after a colon."""
        self.lost: asyncio.Event = launcher.lost

    @property
    def num_ready(self) -> int:
        """See Backend."""
        return self._launcher.num_ready

    async def create(self, shape: BoxShape, saved: SavedFiles | None = None) -> SavableBox:
        """See Backend."""
        return await SavableBox.make(shape, self._workshop, saved)

    def discard(self, saved: SavedFiles) -> None:
        """See Backend."""
        self._counts.release(saved.layers)

    async def close(self) -> None:
        """See Backend."""
        await self._launcher.close()

    async def _control(self) -> bool:
        """Whether a trivial program runs normally on this machine now."""
        try:
            box = await self.create(BoxShape())
        except JourneymanError:
            return False
        try:
            return (await box.run(_CONTROL)).result.stdout == b"42\n"
        finally:
            await box.destroy("control")
