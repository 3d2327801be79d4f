"""What an RL job must remember between its steps, as plain data: its checkpoint's state, and its life. Pure.

Invariants: a group is trained at most once in the lineage of a checkpoint (`trained`); reading group.ready again from `offset` meets every
group that is neither trained nor dropped. The incarnation and the drops cannot wait for a checkpoint, since others hear of them before:
they are stored as the job's life.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from journeyman.records import PolicyVersion, Trajectory


@dataclass(frozen=True, slots=True, kw_only=True)
class Life:
    """Of one process on one job; replaced, never lost."""

    incarnation: int
    """Raised at every start, whether or not the life before reached a checkpoint: no two lives name their weights alike."""
    dropped: tuple[str, ...]
    """Groups let go so far, by all lives."""


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

    @property
    def life(self) -> Life:
        """What is stored without a checkpoint."""
        return Life(incarnation=self.incarnation, dropped=tuple(sorted(self.dropped)))

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
            "step": self.step,
            "offset": self.offset,
            "trained": sorted(self.trained),
            "committed_here": list(self.uncommitted),
        }

    @classmethod
    def reborn(cls, life: Life | None, state: Mapping[str, object] | None) -> "Lineage":
        """Of a starting trainer: a new incarnation after the last life's, at the checkpoint's state where there is one."""
        lineage = cls() if life is None else cls(incarnation=life.incarnation + 1, dropped=set(life.dropped))
        if state is not None:
            step, offset = state["step"], state["offset"]
            assert isinstance(step, int)
            assert isinstance(offset, int)
            lineage.step, lineage.offset, lineage.trained = step, offset, set(texts(state, "trained"))
        return lineage


def texts(state: Mapping[str, object], name: str) -> list[str]:
    """A list of strings in a checkpoint's state."""
    value = state[name]
    assert isinstance(value, list)
    return [str(item) for item in value]


def oldest_step(trajectories: Sequence[Trajectory]) -> int | None:
    """Step of the oldest weights that sampled a token; None where nothing was sampled."""
    packed = [v for t in trajectories for v, sampled in zip(t.versions, t.is_sampled, strict=True) if sampled]
    return min((PolicyVersion.unpack(version).step for version in set(packed)), default=None)
