"""The contract of the bus, on memory, SQLite and a Kafka-protocol broker."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path

import pytest

from journeyman.bus.connect import open_bus
from journeyman.bus.kafka import KafkaBus
from journeyman.bus.port import Bus, BusConsumer, Outgoing, Record
from journeyman.errors import ErrorCode, JourneymanError
from journeyman.testing.local_servers import find, kafka_broker
from journeyman.testing.missing import missing

READY, TAKEN = "group.ready", "group.taken"
BUSES = ["memory", "sqlite", pytest.param("kafka", marks=[pytest.mark.kafka, pytest.mark.timeout(240)])]


@pytest.fixture(scope="module")
def broker() -> Iterator[str]:
    program = find("noida-db")
    if program is None:
        missing("no Kafka-protocol broker: pip install noida-db")
    with kafka_broker(program) as address:
        yield address


@pytest.fixture(params=BUSES)
async def bus(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Bus]:
    opened: Bus
    if request.param == "kafka":
        opened = KafkaBus(str(request.getfixturevalue("broker")))
    else:
        opened = open_bus("memory:" if request.param == "memory" else f"sqlite:{tmp_path / 'bus.db'}")
    yield opened
    await opened.close()


@pytest.fixture
def group() -> str:
    """A group nobody used before: the broker outlives a test."""
    return f"group-{time.time_ns()}"


def records(topic: str, keys: Sequence[str], stamp: str) -> list[Outgoing]:
    return [
        Outgoing(topic=topic, key=key, value=f"{stamp}:{i}".encode(), headers={"h": "ä"}) for i, key in enumerate(keys)
    ]


async def read(consumer: BusConsumer, stamp: str, count: int, within_s: float = 30.0) -> list[Record]:
    """Records of this test, polled until there are count."""
    found: list[Record] = []
    deadline = time.monotonic() + within_s
    while len(found) < count and time.monotonic() < deadline:
        found += [r for r in await consumer.poll(50, 0.5) if r.value.startswith(stamp.encode())]
    return found


async def test_what_is_published_is_read_in_order_per_key_with_headers(bus: Bus, group: str) -> None:
    keys = [f"k{i % 3}" for i in range(12)]
    await bus.publish(records(TAKEN, keys, group))
    consumer = await bus.consumer(group, [TAKEN])
    found = await read(consumer, group, 12)
    assert sorted(r.value for r in found) == sorted(f"{group}:{i}".encode() for i in range(12))
    assert all(r.headers == {"h": "ä"} and r.topic == TAKEN for r in found)
    for key in set(keys):
        numbers = [int(r.value.split(b":")[1]) for r in found if r.key == key]
        assert numbers == sorted(numbers)
        assert len({r.partition for r in found if r.key == key}) == 1
    await consumer.close()


async def test_a_group_goes_on_after_its_commit_and_repeats_what_was_not_committed(bus: Bus, group: str) -> None:
    await bus.publish(records(READY, ["k"] * 6, group))
    first = await bus.consumer(group, [READY])
    found = await read(first, group, 6)
    await first.commit(found[:4])
    await first.close()
    second = await bus.consumer(group, [READY])
    again = await read(second, group, 2)
    assert [r.value for r in again] == [r.value for r in found[4:]]
    await second.commit(again)
    await second.close()


async def test_commits_never_go_back(bus: Bus, group: str) -> None:
    await bus.publish(records(READY, ["k"] * 3, group))
    consumer = await bus.consumer(group, [READY])
    found = await read(consumer, group, 3)
    await consumer.commit(found)
    assert await consumer.poll(10, 0.2) == []
    await consumer.close()


async def test_groups_do_not_disturb_each_other(bus: Bus, group: str) -> None:
    await bus.publish(records(READY, ["k"] * 2, group))
    for name in ("a", "b"):
        consumer = await bus.consumer(f"{group}-{name}", [READY])
        found = await read(consumer, group, 2)
        assert len(found) == 2
        await consumer.commit(found)
        await consumer.close()


async def test_seek_replays_from_an_offset_without_touching_the_group(bus: Bus, group: str) -> None:
    await bus.publish(records(READY, ["k"] * 4, group))
    consumer = await bus.consumer(group, [READY])
    found = await read(consumer, group, 4)
    await consumer.commit(found)
    await consumer.seek({(READY, 0): found[1].offset})
    assert [r.value for r in await read(consumer, group, 3)] == [r.value for r in found[1:]]
    await consumer.close()
    after = await bus.consumer(group, [READY])
    assert await after.poll(10, 0.3) == []
    await after.close()


async def test_a_waiting_consumer_is_woken(bus: Bus, group: str) -> None:
    consumer = await bus.consumer(group, [READY])
    waiting = asyncio.create_task(read(consumer, group, 1))
    await asyncio.sleep(0)
    await bus.publish(records(READY, ["k"], group))
    assert len(await asyncio.wait_for(waiting, 30)) == 1
    await consumer.close()


async def test_two_members_share_the_partitions_and_the_one_left_takes_all(bus: Bus, group: str) -> None:
    one, two = await bus.consumer(group, [TAKEN]), await bus.consumer(group, [TAKEN])
    keys = [f"key-{i}" for i in range(20)]
    await asyncio.gather(one.poll(1, 1.5), two.poll(1, 1.5))
    await bus.publish(records(TAKEN, keys, group))
    deadline = time.monotonic() + 30
    found: list[Record] = []
    while len({r.value for r in found}) < 20 and time.monotonic() < deadline:
        for member in (one, two):
            batch = await member.poll(50, 0.2)
            if batch:
                await member.commit(batch)
            found += [r for r in batch if r.value.startswith(group.encode())]
    assert {r.key for r in found} == set(keys)
    await two.close()
    await bus.publish(records(TAKEN, keys, f"{group}x"))
    assert {r.key for r in await read(one, f"{group}x", 20)} == set(keys)
    await one.close()


async def test_lag_counts_what_is_not_committed(bus: Bus, group: str) -> None:
    await bus.publish(records(READY, ["k"] * 5, group))
    consumer = await bus.consumer(group, [READY])
    found = await read(consumer, group, 5)
    await consumer.commit(found[:2])
    assert await bus.lag(group) == 3
    await consumer.commit(found)
    assert await bus.lag(group) == 0
    await consumer.close()


async def test_unknown_topics_are_refused(bus: Bus, group: str) -> None:
    for refused in (bus.publish(records("no.such", ["k"], group)), bus.consumer(group, ["no.such"])):
        with pytest.raises(JourneymanError, match=r"no\.such") as caught:
            await refused
        assert caught.value.code is ErrorCode.INVALID_INPUT
