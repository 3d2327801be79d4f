"""What an RL job must remember between its steps, as plain data: its checkpoint's state. Pure.

Invariants: a group is trained at most once in the lineage of a checkpoint (`trained`); reading group.ready again from `offset` meets every
group that is neither trained nor dropped.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from journeyman.records import PolicyVersion, Trajectory


@dataclass(kw_only=True)
class Lineage:
    """Of one RL job."""

    incarnation: int = 0
    step: int = 0
    offset: int = 0
    """On group.ready: everything before it is trained or dropped."""
    trained: set[str] = field(default_factory=set)
    dropped: set[str] = field(default_factory=set)
    uncommitted: list[str] = field(default_factory=list)
    """Trained since the last checkpoint."""
    newly_dropped: list[str] = field(default_factory=list)
    """Dropped since the last checkpoint."""

    @property
    def version(self) -> PolicyVersion:
        """Of the weights as they are now."""
        return PolicyVersion(incarnation=self.incarnation, step=self.step)

    def is_settled(self, group_id: str) -> bool:
        """Trained or dropped already."""
        return group_id in self.trained or group_id in self.dropped

    def to_state(self) -> dict[str, object]:
        """For a checkpoint."""
        return {
            "incarnation": self.incarnation,
            "step": self.step,
            "offset": self.offset,
            "trained": sorted(self.trained),
            "dropped": sorted(self.dropped),
            "committed_here": list(self.uncommitted),
            "dropped_here": list(self.newly_dropped),
        }

    @classmethod
    def from_state(cls, state: Mapping[str, object]) -> "Lineage":
        """Of a restarted trainer: a new incarnation."""
        incarnation, step, offset = state["incarnation"], state["step"], state["offset"]
        assert isinstance(incarnation, int)
        assert isinstance(step, int)
        assert isinstance(offset, int)
        return cls(
            incarnation=incarnation + 1,
            step=step,
            offset=offset,
            trained=set(texts(state, "trained")),
            dropped=set(texts(state, "dropped")),
        )


def texts(state: Mapping[str, object], name: str) -> list[str]:
    """A list of strings in a checkpoint's state."""
    value = state[name]
    assert isinstance(value, list)
    return [str(item) for item in value]


def oldest_step(trajectories: Sequence[Trajectory]) -> int | None:
    """Step of the oldest weights that sampled a token; None where nothing was sampled."""
    packed = [v for t in trajectories for v, sampled in zip(t.versions, t.is_sampled, strict=True) if sampled]
    return min((PolicyVersion.unpack(version).step for version in set(packed)), default=None)
