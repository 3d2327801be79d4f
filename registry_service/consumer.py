"""Bus edge of the registry: group.closed brings results of evaluations, policy.published brings policies."""

from collections.abc import Mapping

from jm.events.v1.events_pb2 import Envelope

from journeyman.bus.consumer import Handler
from journeyman.bus.port import Record
from journeyman.convert import policy_ref_from_proto
from journeyman.topics import GROUP_CLOSED, POLICY_PUBLISHED
from registry_service.app import Registry
from registry_service.convert import results_from_proto


def handlers(app: Registry) -> Mapping[str, Handler]:
    """One handler a topic. Repeats are harmless: both effects are keyed by id."""

    async def on_group_closed(envelope: Envelope, record: Record) -> None:
        await app.record_results(envelope.run_id, results_from_proto(envelope.group_closed))

    async def on_policy_published(envelope: Envelope, record: Record) -> None:
        fact = envelope.policy_published
        parent = policy_ref_from_proto(fact.parent) if fact.HasField("parent") else None
        await app.record_policy(policy_ref_from_proto(fact.policy), parent, fact.made_by)

    return {GROUP_CLOSED.name: on_group_closed, POLICY_PUBLISHED.name: on_policy_published}
