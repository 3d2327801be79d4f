"""ConsumerLoop: polls, handles, commits. Effects first, then the offset; a crash in between redelivers, so handlers are idempotent.

A handler that raises decides what follows: a retryable JourneymanError is tried again with growing, jittered pauses; any other error sends
the record to dead.letter with the error, and the rest go on. Records whose event_id was handled lately are skipped.
"""

import asyncio
import logging
import random
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping, Sequence

from jm.events.v1 import events_pb2 as ev

from journeyman.bus.envelope import event_id, outgoing, parse, wrap
from journeyman.bus.port import Bus, Record
from journeyman.errors import JourneymanError
from journeyman.observe import trace
from journeyman.observe.logs import bound
from journeyman.observe.metrics import BUS_HANDLE_SECONDS, BUS_HANDLED_TOTAL

log = logging.getLogger(__name__)
Handler = Callable[[ev.Envelope, Record], Awaitable[None]]
BatchHandler = Callable[[list[tuple[ev.Envelope, Record]]], Awaitable[None]]
POLL_S = 0.5
MAX_ATTEMPTS = 8
FIRST_PAUSE_S = 0.05
LONGEST_PAUSE_S = 5.0
REMEMBERED = 4096


class ConsumerLoop:
    """One consumer group's work in this process."""

    def __init__(
        self,
        bus: Bus,
        group: str,
        handlers: Mapping[str, Handler] | None = None,
        *,
        batch_handlers: Mapping[str, BatchHandler] | None = None,
        dedup: bool = True,
        max_records: int = 64,
        max_attempts: int = MAX_ATTEMPTS,
    ) -> None:
        singles = {topic: _one_by_one(handler) for topic, handler in (handlers or {}).items()}
        self._handlers: dict[str, BatchHandler] = {**singles, **(batch_handlers or {})}
        self._singly = frozenset(singles)
        self._bus, self._group = bus, group
        self._dedup, self._max_records, self._max_attempts = dedup, max_records, max_attempts
        self._handled: OrderedDict[str, None] = OrderedDict()

    async def run(self, stop: asyncio.Event) -> None:
        """Until the event is set. Errors of the bus itself are waited out."""
        consumer = await self._bus.consumer(self._group, sorted(self._handlers))
        try:
            while not stop.is_set():
                try:
                    records = await consumer.poll(self._max_records, POLL_S)
                    if records:
                        await self._handle(records)
                        await consumer.commit(records)
                except JourneymanError as error:
                    if not error.retryable:
                        raise
                    log.warning("bus unavailable", extra={"group": self._group, "reason": error.message})
                    await asyncio.sleep(FIRST_PAUSE_S * (1 + random.random()))
        finally:
            await consumer.close()

    async def _handle(self, records: Sequence[Record]) -> None:
        """Hands each topic's run of records to its handler, keeping their order."""
        for topic in dict.fromkeys(record.topic for record in records):
            batch = []
            for record in records:
                if record.topic == topic and (envelope := await self._readable(record)) is not None:
                    batch.append((envelope, record))
            size = 1 if topic in self._singly else max(1, len(batch))
            for start in range(0, len(batch), size):
                await self._deliver(topic, batch[start : start + size])

    async def _readable(self, record: Record) -> ev.Envelope | None:
        """None when the record is a duplicate, or unreadable and now in dead.letter."""
        try:
            envelope = parse(record.value)
        except JourneymanError as error:
            await self._bury(record, error, attempts=1)
            return None
        return None if self._dedup and envelope.event_id in self._handled else envelope

    async def _deliver(self, topic: str, batch: list[tuple[ev.Envelope, Record]]) -> None:
        """Handles a batch; one that fails for good is split, so that only the guilty record is buried."""
        error = await self._attempt(topic, batch)
        if error is None:
            for envelope, _ in batch:
                self._remember(envelope.event_id)
        elif len(batch) > 1:
            for item in batch:
                await self._deliver(topic, [item])
        else:
            await self._bury(batch[0][1], error, self._max_attempts if _is_retryable(error) else 1)

    async def _attempt(self, topic: str, batch: list[tuple[ev.Envelope, Record]]) -> Exception | None:
        """None when handled, else the last error."""
        envelope = batch[0][0]
        for attempt in range(1, self._max_attempts + 1):
            started = time.perf_counter()
            with trace.span(envelope.traceparent), bound(run_id=envelope.run_id, event_id=envelope.event_id):
                try:
                    await self._handlers[topic](batch)
                except Exception as error:
                    log.warning(
                        "handling failed",
                        exc_info=error,
                        extra={"topic": topic, "attempt": attempt, "num_records": len(batch)},
                    )
                    if not _is_retryable(error) or attempt == self._max_attempts:
                        return error
                else:
                    BUS_HANDLED_TOTAL.labels(topic, "ok").inc(len(batch))
                    BUS_HANDLE_SECONDS.labels(topic).observe(time.perf_counter() - started)
                    return None
            await asyncio.sleep(min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2**attempt) * (0.5 + random.random()))
        return None

    async def _bury(self, record: Record, error: Exception, attempts: int) -> None:
        """Puts the record on dead.letter, where it can be looked at and played again."""
        log.error(
            "record sent to dead.letter", extra={"topic": record.topic, "offset": record.offset, "reason": str(error)}
        )
        BUS_HANDLED_TOTAL.labels(record.topic, "dead").inc()
        letter = ev.DeadLetter(
            topic=record.topic,
            partition=record.partition,
            offset=record.offset,
            key=record.key,
            value=record.value,
            error=f"{type(error).__name__}: {error}"[:500],
            attempts=attempts,
            consumer_group=self._group,
        )
        identity = event_id("dead", self._group, record.topic, record.partition, record.offset)
        await self._bus.publish([outgoing(wrap(letter, event_id=identity), record.key)])

    def _remember(self, identity: str) -> None:
        self._handled[identity] = None
        if len(self._handled) > REMEMBERED:
            self._handled.popitem(last=False)


def _one_by_one(handler: Handler) -> BatchHandler:
    async def handle(batch: list[tuple[ev.Envelope, Record]]) -> None:
        for envelope, record in batch:
            await handler(envelope, record)

    return handle


def _is_retryable(error: Exception) -> bool:
    return isinstance(error, JourneymanError) and error.retryable
