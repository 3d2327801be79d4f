"""Carries facts from the outbox to the bus, in order. A crash between publishing and forgetting repeats a fact under the same event_id."""

import asyncio
import contextlib
import logging

from journeyman.bus.port import Bus
from journeyman.errors import JourneymanError
from scheduler_service.ports import Ledger

BATCH = 128
POLL_S = 1.0
"""Longest pause without being woken: after an error, and for facts that a former process left."""

_log = logging.getLogger(__name__)


class OutboxRelay:
    """Runs in the background for the life of the process."""

    def __init__(self, ledger: Ledger, bus: Bus, facts_stored: asyncio.Event) -> None:
        self._ledger, self._bus = ledger, bus
        self._facts_stored = facts_stored

    async def run(self, stop: asyncio.Event) -> None:
        """Publishes as facts are stored, and once more when stopped."""
        ended = asyncio.ensure_future(stop.wait())
        while not stop.is_set():
            self._facts_stored.clear()
            await self._publish_all()
            woken = asyncio.ensure_future(self._facts_stored.wait())
            await asyncio.wait({woken, ended}, timeout=POLL_S, return_when=asyncio.FIRST_COMPLETED)
            woken.cancel()
        await self._publish_all()
        with contextlib.suppress(asyncio.CancelledError):
            await ended

    async def _publish_all(self) -> None:
        try:
            while await self.publish_waiting() == BATCH:
                continue
        except JourneymanError as error:
            if not error.retryable:
                raise
            _log.warning("outbox waits", extra={"reason": error.message})

    async def publish_waiting(self) -> int:
        """Publishes what waits now and says how many facts that were."""
        waiting = await self._ledger.unpublished(BATCH)
        if waiting:
            await self._bus.publish([fact for _, fact in waiting])
            await self._ledger.forget([number for number, _ in waiting])
        return len(waiting)
