"""KafkaBus: the bus of a cluster, through kafka-python. The client blocks, so it runs in threads: one for producing, one a consumer.

Durable means acks=all with the idempotent producer. A key's partition is Kafka's own choice; order inside a partition is the same
promise as on the other buses. Topics are made with the partitions that journeyman.topics lists, where the broker does not have them.
"""

import asyncio
import contextlib
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, OffsetAndMetadata, TopicPartition
from kafka.errors import KafkaError, TopicAlreadyExistsError

from journeyman.bus.partition import num_partitions
from journeyman.bus.port import Bus, BusConsumer, Outgoing, Record
from journeyman.errors import ErrorCode, JourneymanError
from journeyman.topics import TOPICS

Result = TypeVar("Result")
SEND_TIMEOUT_S = 30.0
MAX_RECORD_BYTES = 8 * 1024 * 1024
SESSION_TIMEOUT_MS = 10_000
"""A dead member's partitions are taken over after this."""


class KafkaBus(Bus):
    """A connection to a Kafka cluster."""

    def __init__(self, bootstrap: str) -> None:
        self._servers = bootstrap.split(",")
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="kafka-producer")
        self._producer: Any = None
        self._lock = threading.Lock()

    async def publish(self, records: Sequence[Outgoing]) -> None:
        """See Bus."""
        for record in records:
            num_partitions(record.topic)
        await _in(self._thread, lambda: self._send(records))

    def _send(self, records: Sequence[Outgoing]) -> None:
        producer = self._connected()
        sent = [
            producer.send(
                record.topic,
                key=record.key.encode(),
                value=record.value,
                headers=[(name, value.encode()) for name, value in record.headers.items()],
            )
            for record in records
        ]
        producer.flush(timeout=SEND_TIMEOUT_S)
        for future in sent:
            future.get(timeout=SEND_TIMEOUT_S)

    def _connected(self) -> Any:
        with self._lock:
            if self._producer is None:
                self._ensure_topics()
                self._producer = KafkaProducer(
                    bootstrap_servers=self._servers,
                    acks="all",
                    enable_idempotence=True,
                    linger_ms=1,
                    max_request_size=MAX_RECORD_BYTES,
                )
        return self._producer

    def _ensure_topics(self) -> None:
        admin = KafkaAdminClient(bootstrap_servers=self._servers)
        try:
            existing = set(admin.list_topics())
            for name in sorted(TOPICS.keys() - existing):
                wanted = {name: {"num_partitions": TOPICS[name].partitions, "replication_factor": 1}}
                with contextlib.suppress(TopicAlreadyExistsError):
                    admin.create_topics(wanted)
        finally:
            admin.close()

    async def consumer(self, group: str, topics: Sequence[str]) -> BusConsumer:
        """See Bus."""
        for topic in topics:
            num_partitions(topic)
        await _in(self._thread, self._connected)
        joined = KafkaGroupMember(self._servers, group, tuple(topics))
        await joined.start()
        return joined

    async def lag(self, group: str) -> int:
        """See Bus. Needs a broker that tells end offsets rightly."""
        return await _in(self._thread, lambda: self._lag(group))

    def _lag(self, group: str) -> int:
        self._connected()
        reader = KafkaConsumer(bootstrap_servers=self._servers, group_id=group, enable_auto_commit=False)
        try:
            pairs = [TopicPartition(name, p) for name, topic in TOPICS.items() for p in range(topic.partitions)]
            committed = {pair: reader.committed(pair) for pair in pairs}
            topics = {pair.topic for pair, offset in committed.items() if offset is not None}
            mine = [pair for pair in pairs if pair.topic in topics]
            ends = reader.end_offsets(mine) if mine else {}
            return sum(int(ends[pair]) - int(committed[pair] or 0) for pair in mine)
        finally:
            reader.close()

    async def close(self) -> None:
        """See Bus."""
        if self._producer is not None:
            await _in(self._thread, lambda: self._producer.close(timeout=5))
        self._thread.shutdown(wait=False)


class KafkaGroupMember(BusConsumer):
    """One member of a consumer group; its client lives in a thread of its own."""

    def __init__(self, servers: Sequence[str], group: str, topics: tuple[str, ...]) -> None:
        self._servers, self._group, self._topics = servers, group, topics
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=f"kafka-{group}")
        self._consumer: Any = None
        self._sought: dict[tuple[str, int], int] | None = None

    async def start(self) -> None:
        """Connects and subscribes."""
        await _in(self._thread, self._start)

    def _start(self) -> None:
        self._consumer = KafkaConsumer(
            bootstrap_servers=list(self._servers),
            group_id=self._group,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            session_timeout_ms=SESSION_TIMEOUT_MS,
            heartbeat_interval_ms=3000,
            fetch_max_wait_ms=50,
            max_partition_fetch_bytes=MAX_RECORD_BYTES,
        )
        self._consumer.subscribe(list(self._topics))

    async def poll(self, max_records: int, timeout_s: float) -> Sequence[Record]:
        """See BusConsumer."""
        return await _in(self._thread, lambda: self._poll(max_records, timeout_s))

    def _poll(self, max_records: int, timeout_s: float) -> list[Record]:
        self._apply_seek(timeout_s)
        found = self._consumer.poll(timeout_ms=int(timeout_s * 1000), max_records=max_records)
        return [
            Record(
                topic=raw.topic,
                partition=raw.partition,
                offset=raw.offset,
                key=(raw.key or b"").decode(),
                value=raw.value or b"",
                headers={name: (value or b"").decode() for name, value in raw.headers or ()},
                timestamp_ms=raw.timestamp or 0,
            )
            for records in found.values()
            for raw in records
        ]

    def _apply_seek(self, timeout_s: float) -> None:
        """A seek waits until the group has given this member its partitions."""
        if self._sought is None:
            return
        if not self._consumer.assignment():
            self._consumer.poll(timeout_ms=int(timeout_s * 1000), max_records=1)
        assigned = self._consumer.assignment()
        for pair in assigned:
            self._consumer.seek(pair, self._sought.get((pair.topic, pair.partition), 0))
        if assigned:
            self._sought = None

    async def commit(self, records: Sequence[Record]) -> None:
        """See BusConsumer."""
        ends: dict[Any, Any] = {}
        for record in records:
            pair = TopicPartition(record.topic, record.partition)
            offset = max(record.offset + 1, ends[pair].offset if pair in ends else 0)
            ends[pair] = OffsetAndMetadata(offset, "", -1)
        await _in(self._thread, lambda: self._consumer.commit(ends))

    async def seek(self, offsets: Mapping[tuple[str, int], int]) -> None:
        """See BusConsumer."""
        self._sought = dict(offsets)

    async def close(self) -> None:
        """See BusConsumer."""
        await _in(self._thread, lambda: self._consumer.close(autocommit=False))
        self._thread.shutdown(wait=False)


async def _in(thread: ThreadPoolExecutor, work: Callable[[], Result]) -> Result:
    """Runs work there; UNAVAILABLE for what the client raises."""
    try:
        return await asyncio.get_running_loop().run_in_executor(thread, work)
    except KafkaError as error:
        raise JourneymanError(ErrorCode.UNAVAILABLE, f"Kafka: {type(error).__name__}: {error}") from error
