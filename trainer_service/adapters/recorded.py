"""Recorded rollouts from the object store."""

from collections.abc import Sequence

from journeyman.errors import ErrorCode, JourneymanError
from journeyman.objects.port import Objects
from journeyman.records import ObjectRef, Trajectory
from journeyman.trajectories import decode_group
from trainer_service.ports import ReadyGroup, ReadyRollout


class ObjectTrajectories:
    """See ports.Trajectories."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects

    async def of_group(self, group: ReadyGroup) -> Sequence[tuple[ReadyRollout, Trajectory]]:
        """Members with their trajectories. CORRUPT when an object does not hold a member it should."""
        found: dict[tuple[str, int, int], Trajectory] = {}
        refs = {m.uri: ObjectRef(uri=m.uri, sha256=m.sha256, num_bytes=m.num_bytes) for m in group.members}
        for uri, ref in refs.items():
            for trajectory in decode_group(await self._objects.get_checked(ref)):
                found[uri, trajectory.index, trajectory.attempt] = trajectory
        pairs = []
        for member in group.members:
            recorded = found.get((member.uri, member.index, member.attempt))
            if recorded is None:
                message = (
                    f"{member.uri} lacks rollout {member.index} attempt {member.attempt} of group {group.group_id}"
                )
                raise JourneymanError(ErrorCode.CORRUPT, message)
            pairs.append((member, recorded))
        return pairs
