"""A Backend over any launcher: all kinds of isolation differ only in how a box is launched and in what they enforce."""

import asyncio

from journeyman.errors import JourneymanError
from sandbox_service.adapters.launching import Launcher
from sandbox_service.adapters.linked_box import LinkedBox
from sandbox_service.core.programs import Program
from sandbox_service.core.shape import BoxShape

_READY_S = 15.0
_CONTROL = Program(source="print(6 * 7)", timeout_s=2.0, cpu_s=2.0)


class LinkedBackend:
    """A working kind of isolation."""

    def __init__(
        self, launcher: Launcher, isolation: str, enforced: tuple[str, ...], not_enforced: tuple[str, ...]
    ) -> None:
        self._launcher = launcher
        self.isolation = isolation
        self.enforced = enforced
        self.not_enforced = not_enforced
        self.lost: asyncio.Event = launcher.lost

    async def create(self, shape: BoxShape) -> LinkedBox:
        """See Backend."""
        box = LinkedBox(await self._launcher.launch(shape), shape, self._control)
        await box.wait_until_ready(_READY_S)
        return box

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
