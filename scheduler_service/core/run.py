"""Records of a run: what was asked for, and everything that is remembered of it besides its groups.

Run is the row of the ledger: it changes only together with the groups it counts, in one transaction.
"""

from dataclasses import dataclass, field
from enum import StrEnum

from journeyman.records import PolicySelector, Split
from scheduler_service.core.group import DropReason, GroupState


class RunKind(StrEnum):
    """What a run is for."""

    TRAIN = "train"
    EVAL = "eval"
    COLLECT = "collect"


class RunState(StrEnum):
    """Where a run is."""

    ACTIVE = "active"
    DRAINING = "draining"
    FINISHED = "finished"


class Standing(StrEnum):
    """What the curriculum says of a domain."""

    LEARNING = "learning"
    MASTERED = "mastered"
    STUCK = "stuck"


@dataclass(frozen=True, slots=True, kw_only=True)
class DomainShare:
    """One domain's part in a run."""

    domain: str
    levels: tuple[int, ...]
    """Empty means all levels of the pack."""
    num_groups: int
    """Eval and collect: exactly so many. Train: 0."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSpec:
    """See jm.scheduler.v1.RunSpec; immutable."""

    run_id: str
    kind: RunKind
    domains: tuple[DomainShare, ...]
    """Empty where the client submits the tasks."""
    split: Split
    policy: PolicySelector
    group_size: int
    admission_slots: int
    min_graded: int
    retry_budget: int
    lease_s: float
    seed: int
    max_off_policy_steps: int
    temperature: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelRecord:
    """Beta posterior of passing at one level, with old evidence fading."""

    level: int
    alpha: float = 1.0
    beta: float = 1.0
    num_drawn: int = 0
    """Tasks drawn from this level; the next one's seed follows from it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DomainRecord:
    """One domain inside a run."""

    domain: str
    levels: tuple[LevelRecord, ...]
    num_groups: int = 0
    """Groups asked for; 0 where the curriculum decides or the client submits."""
    num_admitted: int = 0
    num_graded: int = 0
    num_passed: int = 0
    num_excluded: int = 0
    recent_pass_rate: float | None = None
    """Exponentially weighted over groups; None before any."""
    num_equal_in_row: int = 0
    """Latest groups in a row whose rewards were all equal."""
    standing: Standing = Standing.LEARNING
    virtual_time: float = 0.0
    """Grows by 1/weight with each group admitted; the domain with the least is next."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupTotals:
    """Groups of a run by where they are; their sum is the run's num_admitted."""

    in_flight: int = 0
    ready: int = 0
    taken: int = 0
    committed: int = 0
    closed: int = 0
    dropped: int = 0

    @property
    def unfinished(self) -> int:
        """Groups that are in no terminal state."""
        return self.in_flight + self.ready + self.taken


TOTAL_OF: dict[GroupState, str] = {
    GroupState.ADMITTED: "in_flight",
    GroupState.OPEN: "in_flight",
    GroupState.JUDGED: "in_flight",
    GroupState.READY: "ready",
    GroupState.TAKEN: "taken",
    GroupState.COMMITTED: "committed",
    GroupState.CLOSED: "closed",
    GroupState.DROPPED: "dropped",
}
"""Field of GroupTotals that counts a state; PLANNED groups are not admitted and not counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A run as it stands."""

    spec: RunSpec
    state: RunState
    number: int
    """Order of creation, from 1."""
    domains: tuple[DomainRecord, ...]
    num_admitted: int = 0
    totals: GroupTotals = field(default_factory=GroupTotals)
    drops: tuple[tuple[DropReason, int], ...] = ()
    num_requeued: int = 0
    num_trajectories: int = 0
    num_sampled_tokens: int = 0

    def domain(self, name: str) -> DomainRecord | None:
        """The record of a domain; None for one that is not (yet) in the run."""
        return next((record for record in self.domains if record.domain == name), None)
