"""SqliteBus: the bus of one machine. A write-ahead log shared by all service processes: topics, partitions, groups, offsets, replay.

Statements are short and run on the event loop's thread. Publishers wake waiting processes (journeyman.bus.sqlite_wake).
Kill -9 of any process loses nothing that publish() returned for (loss of power may lose the last moments:
synchronous=NORMAL).
"""

import contextlib
import json
import sqlite3
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from journeyman.bus.partition import num_partitions, partition_of
from journeyman.bus.port import Bus, BusConsumer, Outgoing, Record
from journeyman.bus.sqlite_members import MEMBERS_SCHEMA, Membership
from journeyman.bus.sqlite_wake import Wake
from journeyman.errors import ErrorCode, JourneymanError

BUSY_TIMEOUT_S = 10.0
_SCHEMA = f"""
CREATE TABLE IF NOT EXISTS records (
    topic TEXT, partition INTEGER, offset INTEGER, key TEXT, value BLOB, headers TEXT, timestamp_ms INTEGER,
    PRIMARY KEY (topic, partition, offset)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS offsets (
    consumer_group TEXT, topic TEXT, partition INTEGER, next INTEGER,
    PRIMARY KEY (consumer_group, topic, partition)) WITHOUT ROWID;
{MEMBERS_SCHEMA}
"""
Pair = tuple[str, int]


class SqliteBus(Bus):
    """One process's connection to the file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self.connection = sqlite3.connect(
                path, timeout=BUSY_TIMEOUT_S, isolation_level=None, check_same_thread=False
            )
            self.connection.execute("PRAGMA journal_mode=WAL")
            self.connection.execute("PRAGMA synchronous=NORMAL")
            self.connection.executescript(_SCHEMA)
            self.wake = Wake(path)
        except (sqlite3.Error, OSError) as error:
            message = f"bus file {str(path)!r} cannot be opened for writing ({error}); name a file in a writable folder with space left"
            raise JourneymanError(ErrorCode.INVALID_INPUT, message) from error

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """One write transaction; UNAVAILABLE when the disk or the lock refuses, and then nothing was written."""
        try:
            self.connection.execute("BEGIN IMMEDIATE")
            try:
                yield self.connection
                self.connection.execute("COMMIT")
            except BaseException:
                with contextlib.suppress(sqlite3.Error):
                    self.connection.execute("ROLLBACK")
                raise
        except sqlite3.Error as error:
            raise JourneymanError(ErrorCode.UNAVAILABLE, f"bus file {str(self._path)!r}: {error}") from error

    def rows(self, query: str, parameters: Sequence[str | int]) -> list[tuple[Any, ...]]:
        """What a SELECT finds; UNAVAILABLE when the file cannot be read."""
        try:
            return self.connection.execute(query, parameters).fetchall()
        except sqlite3.Error as error:
            raise JourneymanError(ErrorCode.UNAVAILABLE, f"bus file {str(self._path)!r}: {error}") from error

    async def publish(self, records: Sequence[Outgoing]) -> None:
        """See Bus. All records or none."""
        pairs = [(record.topic, partition_of(record.topic, record.key)) for record in records]
        now_ms = time.time_ns() // 1_000_000
        with self.transaction() as connection:
            ends = {pair: self._end(pair) for pair in set(pairs)}
            rows = []
            for record, pair in zip(records, pairs, strict=True):
                rows.append((*pair, ends[pair], record.key, record.value, json.dumps(dict(record.headers)), now_ms))
                ends[pair] += 1
            connection.executemany("INSERT INTO records VALUES (?, ?, ?, ?, ?, ?, ?)", rows)
        self.wake.all()

    def _end(self, pair: Pair) -> int:
        query = "SELECT max(offset) FROM records WHERE topic = ? AND partition = ?"
        ((last,),) = self.rows(query, pair)
        return 0 if last is None else int(last) + 1

    async def consumer(self, group: str, topics: Sequence[str]) -> BusConsumer:
        """See Bus."""
        for topic in topics:
            num_partitions(topic)
        membership = Membership(self.transaction, group, tuple(sorted(topics)))
        membership.partitions()
        return SqliteConsumer(self, membership)

    async def lag(self, group: str) -> int:
        """See Bus."""
        offsets = self.committed(group)
        topics = {topic for topic, _ in offsets}
        query = "SELECT topics FROM members WHERE consumer_group = ?"
        for (joined,) in self.rows(query, (group,)):
            topics.update(json.loads(joined))
        pairs = [(topic, partition) for topic in topics for partition in range(num_partitions(topic))]
        return sum(self._end(pair) - offsets.get(pair, 0) for pair in pairs)

    def committed(self, group: str) -> dict[Pair, int]:
        """Next offset of the group by partition, where it has committed."""
        query = "SELECT topic, partition, next FROM offsets WHERE consumer_group = ?"
        return {(topic, partition): offset for topic, partition, offset in self.rows(query, (group,))}

    async def close(self) -> None:
        """See Bus."""
        self.wake.close()
        self.connection.close()


class SqliteConsumer(BusConsumer):
    """One member of a group."""

    def __init__(self, bus: SqliteBus, membership: Membership) -> None:
        self._bus = bus
        self._membership = membership
        self._positions: dict[Pair, int] = {}
        self._sought: Mapping[Pair, int] | None = None

    async def poll(self, max_records: int, timeout_s: float) -> Sequence[Record]:
        """See BusConsumer."""
        deadline = time.monotonic() + timeout_s
        while True:
            ticket = self._bus.wake.ticket()
            self._take_share()
            if records := self._read(max_records):
                return records
            if (remaining_s := deadline - time.monotonic()) <= 0:
                return []
            await self._bus.wake.wait(ticket, remaining_s)

    def _read(self, max_records: int) -> list[Record]:
        records: list[Record] = []
        query = (
            "SELECT offset, key, value, headers, timestamp_ms FROM records"
            " WHERE topic = ? AND partition = ? AND offset >= ? ORDER BY offset LIMIT ?"
        )
        for pair, position in self._positions.items():
            for row in self._bus.rows(query, (*pair, position, max_records - len(records))):
                records.append(
                    Record(
                        topic=pair[0],
                        partition=pair[1],
                        offset=row[0],
                        key=row[1],
                        value=row[2],
                        headers=json.loads(row[3]),
                        timestamp_ms=row[4],
                    )
                )
                self._positions[pair] = row[0] + 1
        return records

    def _take_share(self) -> None:
        """Follows the group's membership; partitions new to this member start where it sought, else at what the group has committed."""
        mine = self._membership.partitions()
        if mine != self._positions.keys():
            starts = self._bus.committed(self._membership.group) if self._sought is None else self._sought
            self._positions = {pair: self._positions.get(pair, starts.get(pair, 0)) for pair in sorted(mine)}

    async def commit(self, records: Sequence[Record]) -> None:
        """See BusConsumer."""
        ends: dict[Pair, int] = {}
        for record in records:
            pair = (record.topic, record.partition)
            ends[pair] = max(ends.get(pair, 0), record.offset + 1)
        upsert = "INSERT INTO offsets VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET next = max(next, excluded.next)"
        with self._bus.transaction() as connection:
            connection.executemany(upsert, [(self._membership.group, *pair, end) for pair, end in ends.items()])

    async def seek(self, offsets: Mapping[Pair, int]) -> None:
        """See BusConsumer."""
        self._sought = dict(offsets)
        self._positions = {}

    async def close(self) -> None:
        """See BusConsumer."""
        self._membership.leave()
