"""The trainer's two ends of the bus: group.ready in, from an offset of its own; facts out, with ids derived from their subject."""

from collections.abc import Sequence

from google.protobuf.message import Message
from jm.events.v1 import events_pb2 as ev

from journeyman.bus.envelope import event_id, outgoing, parse, wrap
from journeyman.bus.port import Bus, BusConsumer, Outgoing
from journeyman.convert import policy_ref_to_proto, policy_version_to_proto
from journeyman.records import PolicyRef, PolicyVersion
from journeyman.topics import GROUP_READY
from trainer_service.ports import Dropped, ReadyGroup, ReadyRollout

_REASON = {
    Dropped.STALE: ev.DropReason.DROP_REASON_STALE,
    Dropped.CANCELLED: ev.DropReason.DROP_REASON_CANCELLED,
}


class BusGroups:
    """See ports.Groups. The group's committed offset is never used: the checkpoint says where to go on."""

    def __init__(self, bus: Bus, job_id: str) -> None:
        self._bus, self._group = bus, f"trainer-{job_id}"
        self._consumer: BusConsumer | None = None

    async def start(self, offset: int) -> None:
        """Next reads from the offset on."""
        self._consumer = await self._bus.consumer(self._group, [GROUP_READY.name])
        await self._consumer.seek({(GROUP_READY.name, 0): offset})

    async def next(self, timeout_s: float) -> Sequence[ReadyGroup]:
        """What became ready, in order; empty after timeout_s."""
        assert self._consumer is not None
        records = await self._consumer.poll(64, timeout_s)
        return [_group(parse(record.value), record.offset) for record in records]

    async def close(self) -> None:
        """Leaves."""
        if self._consumer is not None:
            await self._consumer.close()


def _group(envelope: ev.Envelope, offset: int) -> ReadyGroup:
    ready = envelope.group_ready
    return ReadyGroup(
        group_id=ready.group_id,
        run_id=envelope.run_id,
        domain=ready.domain,
        offset=offset,
        max_off_policy_steps=ready.max_off_policy_steps,
        members=tuple(
            ReadyRollout(
                index=m.index,
                attempt=m.attempt,
                uri=m.object.uri,
                sha256=m.object.sha256,
                num_bytes=m.object.num_bytes,
                reward=m.reward,
                passed=m.passed,
            )
            for m in ready.members
        ),
    )


class BusFacts:
    """See ports.Facts."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus

    async def policy_published(self, ref: PolicyRef, parent: PolicyRef | None, made_by: str) -> None:
        """On policy.published, keyed by run."""
        payload = ev.PolicyPublished(
            policy=policy_ref_to_proto(ref), parent=policy_ref_to_proto(parent) if parent else None, made_by=made_by
        )
        identity = event_id("policy.published", ref.name, ref.manifest_sha256)
        await self._bus.publish([outgoing(wrap(payload, event_id=identity, run_id=ref.run_id), ref.run_id)])

    async def groups_taken(self, run_id: str, group_ids: Sequence[str], into: PolicyVersion) -> None:
        """On group.taken."""
        version = policy_version_to_proto(into)
        await self._publish(run_id, [(g, ev.GroupTaken(group_id=g, into=version), ("taken", into)) for g in group_ids])

    async def groups_committed(self, run_id: str, group_ids: Sequence[str], version: PolicyVersion) -> None:
        """On group.committed."""
        message = policy_version_to_proto(version)
        facts = [(g, ev.GroupCommitted(group_id=g, version=message), ("committed", version)) for g in group_ids]
        await self._publish(run_id, facts)

    async def groups_dropped(self, run_id: str, group_ids: Sequence[str], reason: Dropped, detail: str) -> None:
        """On group.dropped."""
        message = _REASON[reason]
        facts = [(g, ev.GroupDropped(group_id=g, reason=message, detail=detail), (reason,)) for g in group_ids]
        await self._publish(run_id, facts)

    async def _publish(self, run_id: str, facts: Sequence[tuple[str, Message, tuple[object, ...]]]) -> None:
        records: list[Outgoing] = [
            outgoing(wrap(payload, event_id=event_id(key, *identity), run_id=run_id), key)
            for key, payload, identity in facts
        ]
        if records:
            await self._bus.publish(records)
