"""Rewards: outcome first, always."""

from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from journeyman.packs.port import RewardRule
from journeyman.rewards import FAIL_CEILING, PASS_FLOOR, shape_rewards


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A graded member."""

    passed: bool
    partial: float = 0.0
    num_turns: int = 1


RULE = RewardRule(turn_cost=0.05, partial_weight=0.4, all_failed_trains=False)

rules = st.builds(
    RewardRule,
    turn_cost=st.floats(0, 10),
    partial_weight=st.floats(0, 10),
    all_failed_trains=st.booleans(),
)
members = st.builds(
    Member, passed=st.booleans(), partial=st.floats(allow_nan=True, allow_infinity=True), num_turns=st.integers(0, 1000)
)


@given(st.lists(members, max_size=16), rules)
def test_every_failing_member_is_below_every_passing_one(group: list[Member], rule: RewardRule) -> None:
    rewards = shape_rewards(group, rule)
    assert len(rewards) == len(group)
    for member, reward in zip(group, rewards, strict=True):
        assert (PASS_FLOOR <= reward <= 1.0) if member.passed else (0.0 <= reward <= FAIL_CEILING)


@given(st.lists(st.builds(Member, passed=st.just(False), partial=st.floats(0, 1)), min_size=1, max_size=16))
def test_a_group_in_which_nobody_passed_is_all_zeros_by_default(group: list[Member]) -> None:
    assert set(shape_rewards(group, RULE)) == {0.0}


@given(st.lists(members, min_size=1, max_size=16), rules, st.integers(1, 1000))
def test_turns_cost_only_those_who_passed(group: list[Member], rule: RewardRule, num_turns: int) -> None:
    longer = [Member(passed=m.passed, partial=m.partial, num_turns=m.num_turns + num_turns) for m in group]
    for member, before, after in zip(group, shape_rewards(group, rule), shape_rewards(longer, rule), strict=True):
        assert after <= before if member.passed else after == before


def test_partial_credit_orders_the_failing_where_somebody_passed() -> None:
    group = [Member(passed=True, num_turns=2), Member(passed=False, partial=0.5), Member(passed=False, partial=0.25)]
    assert shape_rewards(group, RULE) == [0.9, 0.2, 0.1]


def test_partial_credit_trains_an_all_failed_group_only_where_the_domain_says_so() -> None:
    rule = RewardRule(turn_cost=0.0, partial_weight=0.4, all_failed_trains=True)
    assert shape_rewards([Member(passed=False, partial=1.0), Member(passed=False)], rule) == [0.4, 0.0]
