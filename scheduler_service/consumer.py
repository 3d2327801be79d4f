"""Bus edge of the scheduler: facts of workers, verifier and trainer, and tasks that clients put on the bus.

Group facts are handled by the batch: one decision and one transaction for what one poll brought. Repeats and late facts change nothing.
"""

from collections.abc import Mapping

from jm.events.v1.events_pb2 import Envelope

from journeyman.bus.consumer import BatchHandler, Handler
from journeyman.bus.port import Record
from journeyman.convert import task_from_proto
from journeyman.topics import (
    GROUP_COMMITTED,
    GROUP_DROPPED,
    GROUP_TAKEN,
    TASK_SUBMITTED,
    TRAJECTORY_RECORDED,
    TRAJECTORY_VERIFIED,
)
from scheduler_service.app import Scheduler
from scheduler_service.facts import incoming

GROUP_TOPICS = (TRAJECTORY_RECORDED, TRAJECTORY_VERIFIED, GROUP_TAKEN, GROUP_COMMITTED, GROUP_DROPPED)


def handlers(app: Scheduler) -> Mapping[str, Handler]:
    """Topics whose records are handled one at a time, so that a refused one does not hold up the others."""

    async def on_task_submitted(envelope: Envelope, record: Record) -> None:
        await app.submit_tasks(envelope.run_id, [task_from_proto(envelope.task_submitted.task)])

    return {TASK_SUBMITTED.name: on_task_submitted}


def batch_handlers(app: Scheduler) -> Mapping[str, BatchHandler]:
    """Topics whose records change groups."""

    async def on_group_facts(batch: list[tuple[Envelope, Record]]) -> None:
        await app.receive([incoming(envelope) for envelope, _ in batch])

    return {topic.name: on_group_facts for topic in GROUP_TOPICS}
