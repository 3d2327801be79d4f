"""Bus: topics with partitions, consumer groups, offsets and replay. At-least-once, ordered inside a partition (a key stays in one).

Implementations: memory, SQLite (default on one machine), Kafka. One contract suite runs against all.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """A record as consumed."""

    topic: str
    partition: int
    offset: int
    key: str
    value: bytes
    """A serialised jm.events.v1.Envelope."""
    headers: Mapping[str, str]
    timestamp_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Outgoing:
    """A record to publish; the partition follows from the key."""

    topic: str
    key: str
    value: bytes
    headers: Mapping[str, str]


class BusConsumer(Protocol):
    """One member of a consumer group; not to be shared between tasks."""

    async def poll(self, max_records: int, timeout_s: float) -> Sequence[Record]:
        """Next records, at most max_records, empty after timeout_s; each partition's in order."""
        ...

    async def commit(self, records: Sequence[Record]) -> None:
        """Marks these and everything before them in their partitions as handled by the group."""
        ...

    async def seek(self, offsets: Mapping[tuple[str, int], int]) -> None:
        """Next poll of each (topic, partition) starts at the given offset; partitions not named start at 0. Does not touch the group's offsets."""
        ...

    async def close(self) -> None:
        """Leaves the group without committing."""
        ...


class Bus(Protocol):
    """A connection to the bus."""

    async def publish(self, records: Sequence[Outgoing]) -> None:
        """Durable when it returns. Raises JourneymanError(UNAVAILABLE) and then none, some or all may have been written."""
        ...

    async def consumer(self, group: str, topics: Sequence[str]) -> BusConsumer:
        """Joins a group; a new group starts at the beginning of each topic. Topics unknown to journeyman.topics are INVALID_INPUT."""
        ...

    async def lag(self, group: str) -> int:
        """Records published but not committed by the group, over the topics it has committed or joined."""
        ...

    async def close(self) -> None:
        """Flushes and disconnects."""
        ...
