"""What a worker holds and what comes of it: leases, and the outcome of each member."""

from dataclasses import dataclass, replace

from journeyman.records import Attribution, PolicySelector, Task, Trajectory


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One attempt at one member: what is renewed, returned and lost."""

    group_id: str
    index: int
    attempt: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """One member under lease."""

    index: int
    attempt: int
    seed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupLease:
    """Members of one group, to be played together."""

    group_id: str
    run_id: str
    task: Task
    policy: PolicySelector
    members: tuple[Member, ...]
    life_s: float
    """How long the lease lasts from now on without renewal."""
    temperature: float
    """0 means greedy."""

    @property
    def attempts(self) -> tuple[Attempt, ...]:
        """The lease's members as attempts."""
        return tuple(self.attempt(member) for member in self.members)

    def attempt(self, member: Member) -> Attempt:
        """One member as an attempt."""
        return Attempt(group_id=self.group_id, index=member.index, attempt=member.attempt)

    def only(self, members: tuple[Member, ...]) -> "GroupLease":
        """The same lease with fewer members."""
        return replace(self, members=members)


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """The scheduler's answer to a call for work."""

    leases: tuple[GroupLease, ...]
    retry_after_s: float
    """How long to wait before asking again when there are none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """A member that ended by the model's doing or budget."""

    trajectory: Trajectory


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """A member that infrastructure ended: no trajectory, no evidence about the model."""

    member: Member
    attribution: Attribution
    detail: str


Outcome = Played | Failed
