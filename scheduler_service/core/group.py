"""Records of a group and its rollouts. The transitions are in group_state.py; nothing else makes new versions of these.

In the ledger a group is one row, its rollouts one JSON column, so every transition is atomic.
"""

from dataclasses import dataclass
from enum import StrEnum

from journeyman.records import Attribution, ObjectRef, PolicyVersion, Task


class GroupState(StrEnum):
    """Where a group is; lifecycle.md draws the arrows."""

    PLANNED = "PLANNED"
    ADMITTED = "ADMITTED"
    OPEN = "OPEN"
    JUDGED = "JUDGED"
    """Never stored: the decision that follows is made in the same step."""
    READY = "READY"
    TAKEN = "TAKEN"
    COMMITTED = "COMMITTED"
    CLOSED = "CLOSED"
    DROPPED = "DROPPED"

    @property
    def is_terminal(self) -> bool:
        """Whether nothing can follow."""
        return self in (GroupState.COMMITTED, GroupState.CLOSED, GroupState.DROPPED)


class RolloutState(StrEnum):
    """Where a rollout is."""

    WAITING = "WAITING"
    LEASED = "LEASED"
    RECORDED = "RECORDED"
    GRADED = "GRADED"
    EXCLUDED = "EXCLUDED"


class DropReason(StrEnum):
    """Why a group left the flow untrained."""

    INFRA = "infra"
    STALE = "stale"
    ZERO_VARIANCE = "zero_variance"
    CANCELLED = "cancelled"
    POISONED = "poisoned"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rollout:
    """One member of a group."""

    index: int
    state: RolloutState = RolloutState.WAITING
    attempt: int = 0
    """Fencing number of the latest lease; 0 before the first."""
    worker_id: str = ""
    """Holder of the latest lease."""
    until_s: float = 0.0
    """End of the lease, Unix seconds; meaningful only where LEASED."""
    num_failures: int = 0
    """Leases lost to infrastructure; above the retry budget the rollout is EXCLUDED."""
    is_requeue_due: bool = False
    """Whether the next lease repeats one that infrastructure ended."""
    num_requeued: int = 0
    attribution: Attribution | None = None
    """Class of the ending, of the exclusion or of the latest infrastructure failure; None before any."""
    is_recorded: bool = False
    """Whether a trajectory was accepted."""
    object: ObjectRef | None = None
    """Where the accepted trajectory is."""
    num_turns: int = 0
    num_sampled_tokens: int = 0
    score: float = 0.0
    passed: bool = False
    partial: float = 0.0
    reward: float | None = None
    """After shaping; None unless it was graded and the group judged."""

    @property
    def is_settled(self) -> bool:
        """Whether its part of the group is known."""
        return self.state in (RolloutState.GRADED, RolloutState.EXCLUDED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """One task and its rollouts."""

    group_id: str
    """RUN/g000123."""
    run_id: str
    number: int
    """Order of admission inside the run, from 0."""
    task: Task
    state: GroupState
    rollouts: tuple[Rollout, ...]
    admitted_at_s: float
    changed_at_s: float
    """When it reached its present state."""
    ready_members: tuple[int, ...] = ()
    """Indexes whose rewards were published in group.ready, and so enter an advantage."""
    drop_reason: DropReason | None = None
    detail: str = ""
    trained_into: PolicyVersion | None = None
    """Version that first trained on it in the surviving lineage; None unless TAKEN or COMMITTED."""

    @property
    def waiting(self) -> tuple[int, ...]:
        """Indexes that can be leased."""
        return tuple(rollout.index for rollout in self.rollouts if rollout.state is RolloutState.WAITING)


class FactKind(StrEnum):
    """Facts that the scheduler publishes."""

    READY = "ready"
    CLOSED = "closed"
    DROPPED = "dropped"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """A fact to publish; its content is the group as it was then."""

    kind: FactKind
    group: Group
    max_off_policy_steps: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What a transition gives back."""

    group: Group
    facts: tuple[FactKind, ...] = ()
    """To be published once the new state is stored."""
