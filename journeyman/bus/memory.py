"""MemoryBus: the whole bus in one process, for tests and the in-process loop. Nothing survives the process."""

import asyncio
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence

from journeyman.bus.partition import num_partitions, partition_of, share
from journeyman.bus.port import Bus, BusConsumer, Outgoing, Record

Pair = tuple[str, int]


class MemoryBus(Bus):
    """Topics as lists."""

    def __init__(self) -> None:
        self.logs: dict[Pair, list[Record]] = defaultdict(list)
        self.committed: dict[str, dict[Pair, int]] = defaultdict(dict)
        self.members: dict[str, dict[str, tuple[str, ...]]] = defaultdict(dict)
        self.changed = asyncio.Condition()
        self._num_joined = 0

    async def publish(self, records: Sequence[Outgoing]) -> None:
        """See Bus."""
        for record in records:
            pair = (record.topic, partition_of(record.topic, record.key))
            self.logs[pair].append(
                Record(
                    topic=record.topic,
                    partition=pair[1],
                    offset=len(self.logs[pair]),
                    key=record.key,
                    value=record.value,
                    headers=dict(record.headers),
                    timestamp_ms=time.time_ns() // 1_000_000,
                )
            )
        async with self.changed:
            self.changed.notify_all()

    async def consumer(self, group: str, topics: Sequence[str]) -> BusConsumer:
        """See Bus."""
        for topic in topics:
            num_partitions(topic)
        self._num_joined += 1
        member = f"member-{self._num_joined}"
        self.members[group][member] = tuple(topics)
        return MemoryConsumer(self, group, member, tuple(topics))

    async def lag(self, group: str) -> int:
        """See Bus."""
        topics = {topic for topic, _ in self.committed[group]}
        topics.update(topic for joined in self.members[group].values() for topic in joined)
        pairs = [(topic, partition) for topic in topics for partition in range(num_partitions(topic))]
        return sum(len(self.logs[pair]) - self.committed[group].get(pair, 0) for pair in pairs)

    async def close(self) -> None:
        """Nothing to flush."""


class MemoryConsumer(BusConsumer):
    """One member of a group on a MemoryBus."""

    def __init__(self, bus: MemoryBus, group: str, member: str, topics: tuple[str, ...]) -> None:
        self._bus, self._group, self._member, self._topics = bus, group, member, topics
        self._positions: dict[Pair, int] = {}
        self._sought: Mapping[Pair, int] | None = None

    async def poll(self, max_records: int, timeout_s: float) -> Sequence[Record]:
        """See BusConsumer."""
        deadline = time.monotonic() + timeout_s
        while not (records := self._next(max_records)):
            remaining = deadline - time.monotonic()
            if remaining <= 0:
                break
            try:
                async with self._bus.changed:
                    await asyncio.wait_for(self._bus.changed.wait(), remaining)
            except TimeoutError:
                break
        return records

    def _next(self, max_records: int) -> list[Record]:
        self._take_share()
        records: list[Record] = []
        for pair, position in self._positions.items():
            found = self._bus.logs[pair][position : position + max_records - len(records)]
            self._positions[pair] += len(found)
            records.extend(found)
        return records

    def _take_share(self) -> None:
        """Follows the group's membership; partitions new to this member start where it sought, else at what the group has committed."""
        members = [m for m, topics in self._bus.members[self._group].items() if topics == self._topics]
        mine = share(members, self._member, self._topics)
        if mine != self._positions.keys():
            starts = self._bus.committed[self._group] if self._sought is None else self._sought
            self._positions = {pair: self._positions.get(pair, starts.get(pair, 0)) for pair in sorted(mine)}

    async def commit(self, records: Sequence[Record]) -> None:
        """See BusConsumer."""
        committed = self._bus.committed[self._group]
        for record in records:
            pair = (record.topic, record.partition)
            committed[pair] = max(committed.get(pair, 0), record.offset + 1)

    async def seek(self, offsets: Mapping[Pair, int]) -> None:
        """See BusConsumer."""
        self._sought = dict(offsets)
        self._positions = {}

    async def close(self) -> None:
        """See BusConsumer."""
        self._bus.members[self._group].pop(self._member, None)
        async with self._bus.changed:
            self._bus.changed.notify_all()
