"""Bus edge: policy.published keeps the board of each run's newest policy.

Every worker process reads the topic from its beginning under a consumer group of its own, so each one knows all runs.
"""

import asyncio
from collections.abc import Mapping

from jm.events.v1 import events_pb2 as ev

from journeyman.bus.consumer import BatchHandler
from journeyman.bus.port import Record
from journeyman.convert import policy_ref_from_proto
from journeyman.records import PolicyRef
from journeyman.topics import POLICY_PUBLISHED


class PolicyBoard:
    """The newest policy of each run."""

    def __init__(self) -> None:
        self._newest: dict[str, PolicyRef] = {}
        self._changed = asyncio.Event()

    def newest(self, run_id: str) -> PolicyRef | None:
        """None before the run's first."""
        return self._newest.get(run_id)

    async def changed(self) -> None:
        """Returns after the next publication of any run."""
        await self._changed.wait()

    def put(self, ref: PolicyRef) -> None:
        """Takes a publication; an older version than the known one changes nothing, so redelivery and replay are harmless."""
        known = self._newest.get(ref.run_id)
        if known is not None and known.version >= ref.version:
            return
        self._newest[ref.run_id] = ref
        self._changed.set()
        self._changed = asyncio.Event()


def batch_handlers(board: PolicyBoard) -> Mapping[str, BatchHandler]:
    """For a ConsumerLoop. A whole batch is taken at once, so that a replay does not load every version it passes."""

    async def policy_published(batch: list[tuple[ev.Envelope, Record]]) -> None:
        for envelope, _ in batch:
            board.put(policy_ref_from_proto(envelope.policy_published.policy))

    return {POLICY_PUBLISHED.name: policy_published}
