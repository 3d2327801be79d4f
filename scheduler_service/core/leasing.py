"""Which waiting members a worker gets. Called by playing.py.

A worker that already holds a group gets its other members first (shared prefix, forked boxes). Then whole groups. A group is split only
where at least half of it fits, or where the worker would stay idle otherwise: each part costs an object, a fact and a verification.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from journeyman.records import LatestPolicy, PolicyRef, PolicySelector
from scheduler_service.core.group import Group, RolloutState


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """What a worker asks for."""

    worker_id: str
    max_rollouts: int
    loaded: PolicyRef | None
    """Policy that its engine holds."""
    is_idle: bool
    """Whether it plays nothing now, and so may load another policy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A group with waiting members and the policy it must be played with."""

    group: Group
    policy: PolicySelector


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """Members of one group for one worker."""

    group_id: str
    indexes: tuple[int, ...]


def suits(policy: PolicySelector, loaded: PolicyRef | None) -> bool:
    """Whether an engine with this policy can play it without being emptied first. It follows its run's newest version by itself."""
    match policy:
        case LatestPolicy(run_id=run_id):
            return loaded is None or loaded.run_id == run_id
        case PolicyRef():
            return loaded == policy


class Basket:
    """What one answer holds so far. All of it needs one policy: the loaded one, or that of the first group an idle worker gets."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask
        self._policy: PolicySelector | None = None
        self.room = ask.max_rollouts
        self.shares: list[Share] = []

    def accepts(self, policy: PolicySelector) -> bool:
        """Whether groups of this policy may join."""
        if self._policy is not None:
            return policy == self._policy
        return self._ask.is_idle or suits(policy, self._ask.loaded)

    def admits(self, num_members: int) -> bool:
        """Whether so many members of one group fit, whole or by enough of them to be worth splitting it."""
        is_starving = self._ask.is_idle and not self.shares
        return self.room > 0 and (is_starving or self.room * 2 >= num_members)

    def add(self, candidate: Candidate) -> Share:
        """Puts in as many members as fit."""
        share = Share(group_id=candidate.group.group_id, indexes=candidate.group.waiting[: self.room])
        self.shares.append(share)
        self.room -= len(share.indexes)
        self._policy = candidate.policy
        return share


def fill(basket: Basket, candidates: Iterable[Candidate], ask: Ask) -> None:
    """Fills the basket from groups that were admitted before, in their order."""
    left = list(candidates)
    held = [candidate for candidate in left if _is_held(candidate.group, ask.worker_id)]
    whole = [candidate for candidate in left if candidate not in held]
    for candidate in held:
        if basket.room > 0 and basket.accepts(candidate.policy):
            basket.add(candidate)
    split: list[Candidate] = []
    for candidate in whole:
        if basket.accepts(candidate.policy):
            if len(candidate.group.waiting) <= basket.room:
                basket.add(candidate)
            else:
                split.append(candidate)
    for candidate in split:
        if basket.accepts(candidate.policy) and basket.admits(len(candidate.group.waiting)):
            basket.add(candidate)


def _is_held(group: Group, worker_id: str) -> bool:
    return any(r.state is RolloutState.LEASED and r.worker_id == worker_id for r in group.rollouts)
