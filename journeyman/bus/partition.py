"""Which partition a key goes to, and which partitions a member of a consumer group reads. The same on every embedded bus."""

import zlib
from collections.abc import Sequence

from journeyman.errors import ErrorCode, JourneymanError
from journeyman.topics import TOPICS


def partition_of(topic: str, key: str) -> int:
    """A key always lands in the same partition of a topic."""
    return zlib.crc32(key.encode()) % num_partitions(topic)


def num_partitions(topic: str) -> int:
    """INVALID_INPUT for a topic that journeyman.topics does not list."""
    if topic not in TOPICS:
        raise JourneymanError(
            ErrorCode.INVALID_INPUT, f"unknown topic {topic!r}; journeyman.topics lists {sorted(TOPICS)}"
        )
    return TOPICS[topic].partitions


def share(members: Sequence[str], member: str, topics: Sequence[str]) -> frozenset[tuple[str, int]]:
    """The (topic, partition) pairs of one member: all pairs dealt out in turn over the members in sorted order."""
    ordered = sorted(members)
    pairs = sorted((topic, partition) for topic in topics for partition in range(num_partitions(topic)))
    return frozenset(pair for i, pair in enumerate(pairs) if ordered[i % len(ordered)] == member)
