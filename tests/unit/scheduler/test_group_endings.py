"""Every ending of a rollout and of a group, as lifecycle.md's tables have them."""

from dataclasses import replace

import pytest

from journeyman.records import Attribution, ObjectRef, PolicyVersion, Split, Verdict, VerdictStatus
from journeyman.testing.scripted_tasks import PLAIN, ScriptedTasks
from scheduler_service.core import group_state
from scheduler_service.core.group import DropReason, FactKind, Group, GroupState, RolloutState, Step
from scheduler_service.core.group_state import JudgedMember, MemberRecord, Rules

SOURCE = ScriptedTasks({"math.tool": (1, 2)})
TRAIN = Rules(trains=True, retry_budget=1, min_graded=2, reward=PLAIN)
EVAL = replace(TRAIN, trains=False)
STORED = ObjectRef(uri="trajectories/r/g/0-1-x.parquet", sha256="00", num_bytes=1)
VERSION = PolicyVersion(incarnation=1, step=3)
NOW_S = 100.0

INFRASTRUCTURE = [item for item in Attribution if item.is_infrastructure]


def new_group(size: int = 3) -> Group:
    task = SOURCE.task("math.tool", Split.TRAIN, 1, 7)
    return group_state.admit(run_id="r", number=1, task=task, group_size=size, now_s=0.0)


def leased(size: int = 3, attempt: int = 1) -> Group:
    group = new_group(size)
    for number in range(attempt):
        if number:
            group = group_state.expire(group, replace(TRAIN, retry_budget=99), 1000.0).group
        group = group_state.lease(group, range(size), "w", 200.0, 0.0).group
    return group


def member(index: int, attempt: int = 1, cause: Attribution | None = None) -> MemberRecord:
    """Completed unless a cause is given."""
    return MemberRecord(
        index=index,
        attempt=attempt,
        completed=cause is None,
        attribution=cause or Attribution.POLICY,
        num_sampled_tokens=5,
        num_turns=1,
    )


def verdict(
    index: int,
    *,
    passed: bool = True,
    status: VerdictStatus = VerdictStatus.GRADED,
    attribution: Attribution = Attribution.POLICY,
    attempt: int = 1,
    score: float = 1.0,
    partial: float = 0.0,
    stored: ObjectRef | None = STORED,
) -> JudgedMember:
    judged = Verdict(
        index=index,
        attempt=attempt,
        status=status,
        score=score,
        passed=passed,
        partial=partial,
        attribution=attribution,
        tier="rule",
        reason="",
        tiers=(),
        num_turns=1,
        num_sampled_tokens=5,
    )
    return JudgedMember(verdict=judged, object=stored)


def played(group: Group, rules: Rules, *judged: JudgedMember) -> Step:
    """Records every judged member, then delivers the verdicts."""
    records = [member(item.verdict.index, item.verdict.attempt) for item in judged]
    recorded = group_state.record(group, records, STORED, rules, NOW_S).group
    return group_state.judge(recorded, judged, rules, NOW_S)


def states(group: Group) -> list[RolloutState]:
    return [rollout.state for rollout in group.rollouts]


def test_a_group_goes_from_admission_to_ready_with_shaped_rewards() -> None:
    group = new_group()
    assert group.state is GroupState.ADMITTED
    group = group_state.lease(group, [0, 1, 2], "w", 200.0, 1.0).group
    assert (group.state, states(group)) == (GroupState.OPEN, [RolloutState.LEASED] * 3)
    step = played(group, TRAIN, verdict(0), verdict(1, passed=False, partial=0.5), verdict(2, passed=False))
    assert (step.group.state, step.facts) == (GroupState.READY, (FactKind.READY,))
    assert step.group.ready_members == (0, 1, 2)
    assert [rollout.reward for rollout in step.group.rollouts] == [0.95, 0.2, 0.0]


@pytest.mark.parametrize(("passes", "rewards"), [(True, 0.95), (False, 0.0)])
def test_equal_rewards_drop_the_group_for_zero_variance(passes: bool, rewards: float) -> None:
    step = played(leased(), TRAIN, *(verdict(index, passed=passes) for index in range(3)))
    assert (step.group.drop_reason, step.facts) == (DropReason.ZERO_VARIANCE, (FactKind.DROPPED,))
    assert {rollout.reward for rollout in step.group.rollouts} == {rewards}


@pytest.mark.parametrize("passes", [True, False])
def test_evaluation_groups_are_closed_whatever_came_out(passes: bool) -> None:
    step = played(leased(1), EVAL, verdict(0, passed=passes))
    assert (step.group.state, step.facts) == (GroupState.CLOSED, (FactKind.CLOSED,))


@pytest.mark.parametrize("attribution", [Attribution.POLICY, Attribution.BUDGET])
def test_what_the_model_did_is_graded(attribution: Attribution) -> None:
    step = played(leased(2), TRAIN, verdict(0), verdict(1, passed=False, attribution=attribution))
    assert (step.group.state, step.group.rollouts[1].attribution) == (GroupState.READY, attribution)


@pytest.mark.parametrize("cause", [*INFRASTRUCTURE, Attribution.BAD_TASK])
def test_infrastructure_is_retried_inside_the_budget_then_excluded(cause: Attribution) -> None:
    first = group_state.record(leased(), [member(0, cause=cause)], None, TRAIN, NOW_S).group
    assert (first.rollouts[0].state, first.rollouts[0].num_failures) == (RolloutState.WAITING, 1)
    again = group_state.lease(first, [0], "w2", 300.0, NOW_S).group
    assert (again.rollouts[0].attempt, again.rollouts[0].num_requeued) == (2, 1)
    last = group_state.record(again, [member(0, 2, cause=cause)], None, TRAIN, NOW_S)
    assert (last.group.rollouts[0].state, last.group.rollouts[0].attribution) == (RolloutState.EXCLUDED, cause)
    expected = DropReason.POISONED if cause is Attribution.BAD_TASK else None
    assert last.group.drop_reason is expected


def test_excluded_members_enter_neither_rewards_nor_the_ready_fact() -> None:
    rules = replace(TRAIN, retry_budget=0)
    group = group_state.record(leased(), [member(1, cause=Attribution.SANDBOX)], None, rules, NOW_S).group
    step = played(group, rules, verdict(0), verdict(2, passed=False))
    assert (step.group.state, step.group.ready_members) == (GroupState.READY, (0, 2))
    assert step.group.rollouts[1].reward is None


@pytest.mark.parametrize("status", [VerdictStatus.VERIFIER_ERROR, VerdictStatus.TIMED_OUT])
def test_a_verifier_that_gave_up_excludes_and_too_few_graded_drop_the_group(status: VerdictStatus) -> None:
    failed = [verdict(index, status=status, attribution=Attribution.VERIFIER) for index in (1, 2)]
    step = played(leased(), TRAIN, verdict(0), *failed)
    assert states(step.group) == [RolloutState.GRADED, RolloutState.EXCLUDED, RolloutState.EXCLUDED]
    assert step.group.rollouts[1].attribution is Attribution.VERIFIER
    assert (step.group.drop_reason, step.facts) == (DropReason.INFRA, (FactKind.DROPPED,))


@pytest.mark.parametrize("attribution", [*INFRASTRUCTURE, Attribution.BAD_TASK])
def test_a_grade_that_blames_infrastructure_is_no_grade(attribution: Attribution) -> None:
    step = played(leased(), TRAIN, verdict(0, attribution=attribution))
    assert (step.group.rollouts[0].state, step.group.rollouts[0].attribution) == (
        RolloutState.EXCLUDED,
        Attribution.VERIFIER,
    )


@pytest.mark.parametrize("broken", [{"score": float("nan")}, {"partial": float("inf")}])
def test_a_grade_that_is_no_number_is_no_grade(broken: dict[str, float]) -> None:
    step = played(leased(), TRAIN, verdict(0, **broken))  # type: ignore[arg-type]  # mypy takes the dict for all parameters
    assert step.group.rollouts[0].state is RolloutState.EXCLUDED


@pytest.mark.parametrize("rules", [TRAIN, EVAL])
def test_a_bad_task_poisons_the_group_at_once(rules: Rules) -> None:
    bad = verdict(1, status=VerdictStatus.BAD_TASK, attribution=Attribution.BAD_TASK)
    step = played(leased(), rules, bad)
    assert (step.group.drop_reason, step.facts) == (DropReason.POISONED, (FactKind.DROPPED,))


def test_a_lease_that_runs_out_is_lost_and_one_that_was_renewed_is_not() -> None:
    group = group_state.renew(leased(), [1], 500.0)
    expired = group_state.expire(group, TRAIN, 200.0).group
    assert states(expired) == [RolloutState.WAITING, RolloutState.LEASED, RolloutState.WAITING]
    assert expired.rollouts[0].attribution is Attribution.SCHEDULER
    assert not group_state.holds(expired, 0, 1, "w")
    assert group_state.holds(expired, 1, 1, "w")
    assert not group_state.holds(expired, 1, 1, "another")


def test_a_lease_returned_unplayed_costs_no_retry() -> None:
    back = group_state.give_back(leased(), 0, 1, None, TRAIN, NOW_S).group
    assert (back.rollouts[0].state, back.rollouts[0].num_failures) == (RolloutState.WAITING, 0)
    again = group_state.lease(back, [0], "w", 300.0, NOW_S).group
    assert (again.rollouts[0].attempt, again.rollouts[0].num_requeued) == (2, 0)


def test_a_completed_member_without_an_object_is_a_failure_of_storage() -> None:
    step = group_state.record(leased(), [member(0)], None, TRAIN, NOW_S)
    assert (step.group.rollouts[0].state, step.group.rollouts[0].attribution) == (
        RolloutState.WAITING,
        Attribution.STORAGE,
    )


def test_results_of_stale_attempts_change_nothing() -> None:
    group = leased(attempt=2)
    assert group_state.record(group, [member(0, 1)], STORED, TRAIN, NOW_S).group is group
    assert group_state.judge(group, [verdict(0, attempt=1)], TRAIN, NOW_S).group is group
    assert group_state.give_back(group, 0, 1, Attribution.ENGINE, TRAIN, NOW_S).group is group


def test_a_result_that_comes_after_its_lease_ran_out_is_ignored() -> None:
    expired = group_state.expire(leased(), TRAIN, 1000.0).group
    assert group_state.record(expired, [member(0, 1)], STORED, TRAIN, NOW_S).group is expired
    assert group_state.judge(expired, [verdict(0)], TRAIN, NOW_S).group is expired


def test_a_verdict_may_overtake_its_record_and_a_record_repeats_nothing() -> None:
    group = leased(2)
    early = group_state.judge(group, [verdict(0)], TRAIN, NOW_S).group
    assert early.rollouts[0].state is RolloutState.GRADED
    assert group_state.record(early, [member(0)], STORED, TRAIN, NOW_S).group is early
    step = played(early, TRAIN, verdict(1, passed=False))
    assert step.group.state is GroupState.READY
    assert group_state.judge(step.group, [verdict(0)], TRAIN, NOW_S) == Step(group=step.group)


def test_indexes_outside_the_group_are_ignored() -> None:
    group = leased()
    assert group_state.record(group, [member(9), member(-1)], STORED, TRAIN, NOW_S).group is group
    assert group_state.judge(group, [verdict(9), verdict(-1)], TRAIN, NOW_S).group is group


def ready() -> Group:
    return played(leased(2), TRAIN, verdict(0), verdict(1, passed=False)).group


def test_ready_is_taken_committed_and_repeats_change_nothing() -> None:
    taken = group_state.take(ready(), VERSION, NOW_S).group
    assert (taken.state, taken.trained_into) == (GroupState.TAKEN, VERSION)
    assert group_state.take(taken, VERSION, NOW_S).group is taken
    committed = group_state.commit(taken, PolicyVersion(incarnation=1, step=5), NOW_S).group
    assert (committed.state, committed.trained_into) == (GroupState.COMMITTED, VERSION)
    for late in (
        group_state.take(committed, VERSION, NOW_S),
        group_state.commit(committed, VERSION, NOW_S),
        group_state.drop_by_trainer(committed, DropReason.STALE, "", NOW_S),
        group_state.cancel(committed, NOW_S),
    ):
        assert late == Step(group=committed)


def test_a_trainer_that_crashed_takes_again_under_its_new_incarnation() -> None:
    taken = group_state.take(ready(), VERSION, NOW_S).group
    again = PolicyVersion(incarnation=2, step=2)
    retaken = group_state.take(taken, again, NOW_S).group
    assert (retaken.state, retaken.trained_into) == (GroupState.TAKEN, again)
    assert group_state.take(retaken, VERSION, NOW_S).group is retaken


def test_committed_may_overtake_taken() -> None:
    committed = group_state.commit(ready(), VERSION, NOW_S).group
    assert (committed.state, committed.trained_into) == (GroupState.COMMITTED, VERSION)
    assert group_state.take(committed, VERSION, NOW_S).group is committed


@pytest.mark.parametrize("is_taken", [False, True])
def test_the_trainer_drops_what_has_become_stale_even_after_taking_it(is_taken: bool) -> None:
    group = group_state.take(ready(), VERSION, NOW_S).group if is_taken else ready()
    step = group_state.drop_by_trainer(group, DropReason.STALE, "too old", NOW_S)
    assert (step.group.drop_reason, step.facts, step.group.trained_into) == (DropReason.STALE, (), None)
    assert group_state.take(step.group, VERSION, NOW_S).group is step.group


@pytest.mark.parametrize("group", [new_group(), leased(), ready()])
def test_cancelling_drops_what_the_trainer_has_not_taken(group: Group) -> None:
    step = group_state.cancel(group, NOW_S)
    assert (step.group.drop_reason, step.facts) == (DropReason.CANCELLED, (FactKind.DROPPED,))


def test_cancelling_leaves_taken_groups_to_the_trainer() -> None:
    taken = group_state.take(ready(), VERSION, NOW_S).group
    assert group_state.cancel(taken, NOW_S) == Step(group=taken)


def test_the_trainer_cannot_take_what_is_not_ready() -> None:
    group = leased()
    assert group_state.take(group, VERSION, NOW_S).group is group
    assert group_state.commit(group, VERSION, NOW_S).group is group
    assert group_state.drop_by_trainer(group, DropReason.STALE, "", NOW_S).group is group


def test_leases_of_a_lost_worker_are_lost_and_others_are_not() -> None:
    group = group_state.lease(new_group(), [0], "w", 200.0, 0.0).group
    group = group_state.lease(group, [1], "x", 200.0, 0.0).group
    lost = group_state.lose_worker(group, "w", TRAIN, NOW_S).group
    assert states(lost) == [RolloutState.WAITING, RolloutState.LEASED, RolloutState.WAITING]
