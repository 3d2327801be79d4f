"""Who belongs to a consumer group of the SQLite bus. All members run on one machine, so a dead process is noticed by its pid at once.

Called by SqliteConsumer. A member that hangs loses its place when its lease runs out, as with Kafka's session timeout.
"""

import json
import os
import secrets
import sqlite3
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

from journeyman.bus.partition import share

MEMBERS_SCHEMA = """
CREATE TABLE IF NOT EXISTS members (
    consumer_group TEXT, member TEXT, topics TEXT, process TEXT, until_ms INTEGER,
    PRIMARY KEY (consumer_group, member)) WITHOUT ROWID;
"""
LEASE_S = 60.0
"""How long a member that lives but does not poll keeps its partitions: longer than the slowest handler with its retries."""
REFRESH_S = 1.0
"""Between two looks at the member list; also how long a dead member's partitions may wait."""


class Membership:
    """This consumer's place in its group."""

    def __init__(
        self,
        transaction: Callable[[], AbstractContextManager[sqlite3.Connection]],
        group: str,
        topics: tuple[str, ...],
    ) -> None:
        self.group = group
        self._transaction = transaction
        self._topics = topics
        self._member = f"{os.getpid()}-{secrets.token_hex(4)}"
        self._partitions: frozenset[tuple[str, int]] = frozenset()
        self._refreshed_s = float("-inf")

    def partitions(self) -> frozenset[tuple[str, int]]:
        """This member's (topic, partition) pairs, at most REFRESH_S old."""
        if time.monotonic() - self._refreshed_s >= REFRESH_S:
            self._partitions = share(self._join(), self._member, self._topics)
            self._refreshed_s = time.monotonic()
        return self._partitions

    def _join(self) -> list[str]:
        """Renews this member, removes the dead, and returns the living that read the same topics."""
        now_ms = time.time_ns() // 1_000_000
        row = (
            self.group,
            self._member,
            json.dumps(self._topics),
            process_identity(os.getpid()),
            now_ms + int(LEASE_S * 1000),
        )
        query = "SELECT member, topics, process, until_ms FROM members WHERE consumer_group = ?"
        with self._transaction() as connection:
            connection.execute("INSERT OR REPLACE INTO members VALUES (?, ?, ?, ?, ?)", row)
            living = []
            for member, topics, process, until_ms in connection.execute(query, (self.group,)).fetchall():
                if until_ms < now_ms or process != process_identity(int(process.partition("/")[0])):
                    connection.execute(
                        "DELETE FROM members WHERE consumer_group = ? AND member = ?", (self.group, member)
                    )
                elif tuple(json.loads(topics)) == self._topics:
                    living.append(str(member))
        return living

    def leave(self) -> None:
        """Frees the place for the others."""
        with self._transaction() as connection:
            connection.execute(
                "DELETE FROM members WHERE consumer_group = ? AND member = ?", (self.group, self._member)
            )


def process_identity(pid: int) -> str:
    """pid/start time, which a later process with the same pid does not share; pid/ where no such process lives."""
    try:
        start = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return f"{pid}/" + ("" if not _is_alive(pid) else "alive")
    return f"{pid}/{start}"


def _is_alive(pid: int) -> bool:
    """For systems without /proc."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
