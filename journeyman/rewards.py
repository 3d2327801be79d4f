"""shape_rewards: verdicts of one group become rewards. Called by the scheduler when a group is judged and by the one-file loop.

Invariants: every failing member is below every passing one; only graded members are passed in; a group in which nobody passed is all
zeros unless its domain lets partial credit train.
"""

import math
from collections.abc import Sequence
from typing import Protocol

from journeyman.packs.port import RewardRule

PASS_FLOOR = 0.6
"""Least reward of a passing member, however many turns it took."""
FAIL_CEILING = 0.5
"""Greatest reward of a failing member, however much of the work it did."""


class Graded(Protocol):
    """What shaping needs of a graded member; journeyman.records.Verdict is one."""

    @property
    def passed(self) -> bool: ...

    @property
    def partial(self) -> float:
        """0..1."""
        ...

    @property
    def num_turns(self) -> int: ...


def shape_rewards(members: Sequence[Graded], rule: RewardRule) -> list[float]:
    """One reward in 0..1 for each graded member, in their order."""
    partial_trains = rule.all_failed_trains or any(member.passed for member in members)
    return [_reward(member, rule, partial_trains=partial_trains) for member in members]


def _reward(member: Graded, rule: RewardRule, *, partial_trains: bool) -> float:
    if member.passed:
        return min(1.0, max(PASS_FLOOR, 1.0 - rule.turn_cost * member.num_turns))
    if not partial_trains or not math.isfinite(member.partial):
        return 0.0
    return min(FAIL_CEILING, max(0.0, rule.partial_weight * min(1.0, max(0.0, member.partial))))
