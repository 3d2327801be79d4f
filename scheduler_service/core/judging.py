"""What becomes of a group whose members are all known: READY, CLOSED or DROPPED. Called by group_state.py after every change in play."""

from collections.abc import Sequence
from dataclasses import replace

from journeyman.packs.port import RewardRule
from journeyman.records import Attribution
from journeyman.rewards import shape_rewards
from scheduler_service.core.group import DropReason, FactKind, Group, GroupState, Rollout, RolloutState, Step

SAME_REWARD = 1e-9
"""Rewards nearer than this are equal: their advantages would be noise of floating point."""


def settled(group: Group, rule: RewardRule, *, trains: bool, min_graded: int, now_s: float) -> Step:
    """The group's next state. A task that cannot be judged poisons its group at once, whatever the others still do."""
    if any(_is_bad_task(rollout) for rollout in group.rollouts):
        reason = "the verifier cannot judge this task, or no worker can play it"
        return Step(group=dropped(group, DropReason.POISONED, reason, now_s), facts=(FactKind.DROPPED,))
    if not all(rollout.is_settled for rollout in group.rollouts):
        return Step(group=group)
    graded = [rollout for rollout in group.rollouts if rollout.state is RolloutState.GRADED]
    rewards = shape_rewards(graded, rule)
    judged = _rewarded(group, graded, rewards)
    if not trains:
        return Step(group=_to(judged, GroupState.CLOSED, now_s), facts=(FactKind.CLOSED,))
    if len(graded) < min_graded:
        detail = f"{len(graded)} of {len(group.rollouts)} members graded, {min_graded} needed"
        return Step(group=dropped(judged, DropReason.INFRA, detail, now_s), facts=(FactKind.DROPPED,))
    if max(rewards) - min(rewards) < SAME_REWARD:
        detail = f"every reward is {rewards[0]:.3g}"
        return Step(group=dropped(judged, DropReason.ZERO_VARIANCE, detail, now_s), facts=(FactKind.DROPPED,))
    ready = replace(judged, ready_members=tuple(rollout.index for rollout in graded))
    return Step(group=_to(ready, GroupState.READY, now_s), facts=(FactKind.READY,))


def dropped(group: Group, reason: DropReason, detail: str, now_s: float) -> Group:
    """The group out of the flow."""
    return replace(_to(group, GroupState.DROPPED, now_s), drop_reason=reason, detail=detail)


def _is_bad_task(rollout: Rollout) -> bool:
    return rollout.state is RolloutState.EXCLUDED and rollout.attribution is Attribution.BAD_TASK


def _rewarded(group: Group, graded: Sequence[Rollout], rewards: Sequence[float]) -> Group:
    reward_of = {rollout.index: reward for rollout, reward in zip(graded, rewards, strict=True)}
    rollouts = tuple(replace(rollout, reward=reward_of.get(rollout.index)) for rollout in group.rollouts)
    return replace(group, rollouts=rollouts)


def _to(group: Group, state: GroupState, now_s: float) -> Group:
    return replace(group, state=state, changed_at_s=now_s)
