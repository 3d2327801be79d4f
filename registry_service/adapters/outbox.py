"""Carries facts from the ledger's outbox to the bus, in order. A crash between publishing and marking repeats the fact under the same event_id."""

import asyncio
import logging

from journeyman.bus.port import Bus
from journeyman.errors import JourneymanError
from registry_service.ports import Ledger

POLL_S = 0.5
"""Decisions are rare and nobody waits for their facts by the millisecond."""
BATCH = 64

_log = logging.getLogger(__name__)


class OutboxRelay:
    """Runs in the background for the life of the process."""

    def __init__(self, ledger: Ledger, bus: Bus) -> None:
        self._ledger = ledger
        self._bus = bus

    async def run(self, stop: asyncio.Event) -> None:
        """Publishes until stopped, and once more then."""
        while not stop.is_set():
            await self._attempt()
            try:
                await asyncio.wait_for(stop.wait(), POLL_S)
            except TimeoutError:
                continue
        await self._attempt()

    async def publish_waiting(self) -> int:
        """Publishes what waits now and says how many facts that were."""
        waiting = await self._ledger.unpublished(BATCH)
        if waiting:
            await self._bus.publish([fact for _, fact in waiting])
            await self._ledger.mark_published([number for number, _ in waiting])
        return len(waiting)

    async def _attempt(self) -> None:
        try:
            await self.publish_waiting()
        except JourneymanError as error:
            if not error.retryable:
                raise
            _log.warning("outbox waits", extra={"reason": error.message})
