"""Bus edge: trajectory.recorded in, trajectory.verified out.

Records of one poll are judged side by side, so a group that waits for its sandbox does not hold up the others of that poll. A final verdict
has an event id made from the object alone: redelivery publishes the same fact again. An object that can never be judged gives verdicts
that say so, never silence.
"""

import asyncio
import logging

from jm.events.v1 import events_pb2 as events

from journeyman.bus.envelope import event_id, outgoing, wrap
from journeyman.bus.port import Bus, Record
from journeyman.convert import object_ref_from_proto, verdict_to_proto
from journeyman.errors import JourneymanError
from journeyman.topics import TRAJECTORY_RECORDED
from verifier_service.app import Judged, Verifier, verifier_ref
from verifier_service.core.verdicts import ungraded

log = logging.getLogger(__name__)

GROUP = "verifier"
TOPIC = TRAJECTORY_RECORDED.name


class RecordedConsumer:
    """Handles batches of trajectory.recorded."""

    def __init__(self, app: Verifier, bus: Bus) -> None:
        self._app = app
        self._bus = bus

    async def handle(self, batch: list[tuple[events.Envelope, Record]]) -> None:
        """Raises the first retryable failure after all others of the batch are published."""
        outcomes = await asyncio.gather(*(self._handle_one(envelope) for envelope, _ in batch), return_exceptions=True)
        for outcome in outcomes:
            if isinstance(outcome, BaseException):
                raise outcome

    async def _handle_one(self, envelope: events.Envelope) -> None:
        recorded = envelope.trajectory_recorded
        if not recorded.HasField("object"):
            return
        ref = object_ref_from_proto(recorded.object)
        try:
            judged = await self._app.verify(recorded.group_id, ref)
        except JourneymanError as error:
            if error.retryable:
                raise
            log.error("object cannot be judged", extra={"group_id": recorded.group_id, "reason": str(error)})
            judged = _unjudged(recorded, str(error))
        identity = ("verified", ref.sha256) if judged.is_final else ("unverified", ref.sha256, envelope.event_id)
        fact = wrap(
            judged.verified,
            event_id=event_id(*identity),
            run_id=envelope.run_id,
            causation_id=envelope.event_id,
        )
        await self._bus.publish([outgoing(fact, recorded.group_id)])


def _unjudged(recorded: events.TrajectoryRecorded, reason: str) -> Judged:
    """verifier_error for every member that the object should hold."""
    ref = object_ref_from_proto(recorded.object)
    verdicts = [
        ungraded(member.index, member.attempt, member.num_turns, member.num_sampled_tokens, reason)
        for member in recorded.members
        if member.completed
    ]
    verified = events.TrajectoryVerified(
        group_id=recorded.group_id,
        verdicts=[verdict_to_proto(verdict, ref) for verdict in verdicts],
        verifier_ref=verifier_ref(),
    )
    return Judged(verified=verified, is_final=False)
