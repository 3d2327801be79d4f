"""ObjectRecorder: results as one Parquet object and one fact a group. Effects first, then the fact.

The object's key and the fact's id follow from what was played, so recording again after a crash or an error repeats and does not add.
"""

from collections.abc import Sequence

from jm.events.v1 import events_pb2 as ev

from journeyman.bus.envelope import event_id, publish
from journeyman.bus.port import Bus
from journeyman.convert import attribution_to_proto, object_ref_to_proto, policy_version_to_proto
from journeyman.objects.port import Objects
from journeyman.records import ObjectRef, PolicyVersion, Trajectory
from journeyman.trajectories import encode_group, object_key
from rollout_service.core.records import Failed, GroupLease, Outcome, Played


class ObjectRecorder:
    """See the Recorder port."""

    def __init__(self, objects: Objects, bus: Bus, worker_id: str) -> None:
        self._objects, self._bus, self._worker_id = objects, bus, worker_id

    async def record(self, lease: GroupLease, outcomes: Sequence[Outcome]) -> None:
        """JourneymanError of the store or of the bus; nothing is published then."""
        stored = await self._store([outcome.trajectory for outcome in outcomes if isinstance(outcome, Played)])
        members = sorted((member_to_proto(outcome) for outcome in outcomes), key=lambda member: member.index)
        identity = event_id(
            "trajectory.recorded",
            lease.group_id,
            *((member.index, member.attempt, member.completed) for member in members),
            stored.sha256 if stored else "",
        )
        fact = ev.TrajectoryRecorded(
            group_id=lease.group_id,
            object=object_ref_to_proto(stored) if stored else None,
            members=members,
            worker_id=self._worker_id,
        )
        await publish(self._bus, lease.group_id, fact, event_id=identity, run_id=lease.run_id)

    async def alert(self, name: str, text: str) -> None:
        """alert.raised."""
        fact = ev.AlertRaised(name=name, text=text, service="rollout")
        await publish(self._bus, name, fact, event_id=event_id("alert", self._worker_id, name, text))

    async def _store(self, trajectories: Sequence[Trajectory]) -> ObjectRef | None:
        if not trajectories:
            return None
        data = encode_group(trajectories)
        return await self._objects.put(object_key(trajectories, data), data)


def member_to_proto(outcome: Outcome) -> ev.RecordedMember:
    """One member of the fact."""
    match outcome:
        case Played(trajectory=trajectory):
            versions = [version for version in trajectory.versions if version >= 0]
            oldest = policy_version_to_proto(PolicyVersion.unpack(min(versions))) if versions else None
            return ev.RecordedMember(
                index=trajectory.index,
                attempt=trajectory.attempt,
                completed=True,
                attribution=attribution_to_proto(trajectory.attribution),
                ending=trajectory.ending,
                num_sampled_tokens=trajectory.num_sampled,
                num_turns=len(trajectory.steps),
                oldest_version=oldest,
            )
        case Failed(member=member):
            return ev.RecordedMember(
                index=member.index,
                attempt=member.attempt,
                completed=False,
                attribution=attribution_to_proto(outcome.attribution),
                ending=outcome.detail[:500],
            )
