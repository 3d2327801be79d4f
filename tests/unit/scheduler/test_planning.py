"""What is played next: curriculum, evaluations' fixed lists, leasing by policy and by whole groups."""

import random
from collections import Counter
from dataclasses import replace

import pytest

from journeyman.records import LatestPolicy, PolicyRef, PolicySelector, PolicyVersion, Split
from journeyman.testing.scripted_tasks import ScriptedTasks
from scheduler_service.core import curriculum, group_state, playing, run_rules
from scheduler_service.core.group import Group
from scheduler_service.core.leasing import Ask, Basket, Candidate, fill, suits
from scheduler_service.core.planning import has_next
from scheduler_service.core.run import DomainRecord, DomainShare, LevelRecord, RunKind, RunSpec, Standing
from scheduler_service.core.working_set import Draft, WorkingSet

SOURCE = ScriptedTasks({"math.tool": (1, 2, 3), "code.repair": (1,)})
LATEST = LatestPolicy(run_id="train")


def policy(step: int, run_id: str = "train") -> PolicyRef:
    version = PolicyVersion(incarnation=1, step=step)
    return PolicyRef(run_id=run_id, version=version, uri=f"policies/{run_id}/{version}", manifest_sha256="00")


def spec(run_id: str, kind: RunKind, selector: PolicySelector = LATEST, **changes: int) -> RunSpec:
    num_groups = 0 if kind is RunKind.TRAIN else changes.pop("num_groups", 7)
    base = RunSpec(
        run_id=run_id,
        kind=kind,
        domains=tuple(
            DomainShare(domain=name, levels=(), num_groups=num_groups) for name in ("math.tool", "code.repair")
        ),
        split=Split.TRAIN if kind is RunKind.TRAIN else Split.HELDOUT,
        policy=selector,
        group_size=4 if kind is RunKind.TRAIN else 1,
        admission_slots=1000,
        min_graded=2,
        retry_budget=1,
        lease_s=10.0,
        seed=1,
        max_off_policy_steps=1,
        temperature=1.0,
    )
    return replace(base, **changes)  # type: ignore[arg-type]  # the tests change whole-number fields only


def working(*specs: RunSpec) -> WorkingSet:
    made = WorkingSet(source=SOURCE)
    for one in specs:
        draft = Draft(made, 0.0)
        run_rules.create(draft, one)
        made.apply(draft.batch())
    return made


def ask(max_rollouts: int, loaded: PolicyRef | None = None, *, is_idle: bool = False, worker_id: str = "w") -> Ask:
    return Ask(worker_id=worker_id, max_rollouts=max_rollouts, loaded=loaded, is_idle=is_idle)


def lease(made: WorkingSet, asked: Ask) -> list[playing.LeasedGroup]:
    draft = Draft(made, 0.0)
    leased = playing.lease(draft, asked)
    made.apply(draft.batch())
    return leased


def test_evaluations_under_one_seed_play_the_same_tasks_evenly_over_levels() -> None:
    first, second = (
        [item.group.task for item in lease(working(spec(run_id, RunKind.EVAL, group_size=size)), ask(99))]
        for run_id, size in (("before", 1), ("after", 2))
    )
    assert [task.task_id for task in first] == [task.task_id for task in second]
    assert len({task.task_id for task in first}) == 14
    assert Counter((task.domain, task.level) for task in first) == {
        ("math.tool", 1): 3,
        ("math.tool", 2): 2,
        ("math.tool", 3): 2,
        ("code.repair", 1): 7,
    }
    other = lease(working(spec("other", RunKind.EVAL, seed=2)), ask(99))
    assert not {task.task_id for task in first} & {item.group.task.task_id for item in other}


def test_an_evaluation_has_exactly_its_groups() -> None:
    made = working(spec("e", RunKind.EVAL, num_groups=3))
    assert len(lease(made, ask(99))) == 6
    assert not has_next(made.runs["e"])
    assert lease(made, ask(99)) == []


def record(name: str = "d", rate: float | None = None, **changes: object) -> DomainRecord:
    levels = tuple(LevelRecord(level=level) for level in (1, 2, 3))
    return replace(DomainRecord(domain=name, levels=levels, recent_pass_rate=rate), **changes)  # type: ignore[arg-type]  # test data


def test_domains_are_admitted_in_proportion_to_their_weights() -> None:
    records = {
        "even": record("even", 0.5),
        "mastered": record("mastered", 1.0, standing=Standing.MASTERED),
        "new": record("new"),
    }
    rng = random.Random(0)
    counts: Counter[str] = Counter()
    for _ in range(1000):
        chosen = curriculum.next_domain(list(records.values()), rng)
        counts[chosen.domain] += 1
        records[chosen.domain] = curriculum.admitted(chosen, 1)
    assert abs(counts["even"] - counts["new"]) <= 1
    assert counts["mastered"] / counts["even"] == pytest.approx(0.25 * 0.12 / 0.62, rel=0.05)


@pytest.mark.parametrize(("num_passed", "standing"), [(4, Standing.MASTERED), (0, Standing.STUCK)])
def test_all_equal_groups_in_a_row_change_the_standing_and_one_other_changes_it_back(
    num_passed: int, standing: Standing
) -> None:
    before = record()
    for number in range(curriculum.EQUAL_IN_ROW):
        assert before.standing is Standing.LEARNING, number
        before = curriculum.learnt(before, 1, num_passed, 4, is_equal=True)
    assert before.standing is standing
    assert curriculum.weight(before) > 0
    assert curriculum.learnt(before, 1, 2, 4, is_equal=False).standing is Standing.LEARNING


def test_learnable_levels_are_preferred_and_none_is_given_up() -> None:
    levels = (
        LevelRecord(level=1, alpha=200.0, beta=1.0),
        LevelRecord(level=2, alpha=50.0, beta=50.0),
        LevelRecord(level=3, alpha=1.0, beta=200.0),
    )
    rng = random.Random(0)
    drawn = Counter(curriculum.next_level(record(levels=levels), rng) for _ in range(2000))
    assert drawn[2] > 3 * max(drawn[1], drawn[3])
    assert min(drawn.values()) > 50


def test_groups_without_a_graded_member_teach_nothing() -> None:
    assert curriculum.learnt(record(), 1, 0, 0, is_equal=True) == record()


def test_the_curriculum_repeats_itself_under_its_seed() -> None:
    first, second = (lease(working(spec("t", RunKind.TRAIN)), ask(80)) for _ in range(2))
    assert [item.group.task for item in first] == [item.group.task for item in second]
    assert len({item.group.task.task_id for item in first}) == 20


@pytest.mark.parametrize(
    ("selector", "loaded", "expected"),
    [
        (LATEST, policy(3), True),
        (LATEST, None, True),
        (LATEST, policy(3, "other"), False),
        (policy(3), policy(3), True),
        (policy(3), policy(4), False),
        (policy(3), None, False),
    ],
)
def test_an_engine_plays_what_its_policy_suits(
    selector: PolicySelector, loaded: PolicyRef | None, expected: bool
) -> None:
    assert suits(selector, loaded) is expected


def test_a_busy_worker_gets_only_what_its_policy_suits_and_an_idle_one_gets_one_policy() -> None:
    made = working(spec("train", RunKind.TRAIN), spec("eval", RunKind.EVAL, policy(0), num_groups=2))
    assert {item.run.spec.run_id for item in lease(made, ask(8, policy(5)))} == {"train"}
    idle = lease(made, ask(99, policy(5), is_idle=True, worker_id="x"))
    assert {item.run.spec.run_id for item in idle} == {"eval"}
    assert len(idle) == 4


def groups(*sizes: int) -> list[Candidate]:
    task = SOURCE.task("math.tool", Split.TRAIN, 1, 1)
    made = [
        group_state.admit(run_id="r", number=number, task=task, group_size=size, now_s=0.0)
        for number, size in enumerate(sizes)
    ]
    return [Candidate(group=group, policy=LATEST) for group in made]


def filled(candidates: list[Candidate], asked: Ask) -> list[tuple[int, int]]:
    """(group number, members given)."""
    basket = Basket(asked)
    fill(basket, candidates, asked)
    return [(int(share.group_id[-6:]), len(share.indexes)) for share in basket.shares]


def test_whole_groups_come_first_and_one_is_split_only_where_half_of_it_fits() -> None:
    assert filled(groups(8, 5, 5), ask(10)) == [(0, 8)]
    assert filled(groups(8, 4, 4), ask(12)) == [(0, 8), (1, 4)]
    assert filled(groups(8, 6, 4), ask(12)) == [(0, 8), (2, 4)]
    assert filled(groups(8, 6), ask(11)) == [(0, 8), (1, 3)]
    assert filled(groups(16), ask(4)) == []
    assert filled(groups(16), ask(4, is_idle=True)) == [(0, 4)]


def test_a_worker_gets_the_rest_of_a_group_that_it_holds_first() -> None:
    first, second = groups(4, 4)
    held: Group = group_state.lease(second.group, [0, 1], "w", 10.0, 0.0).group
    candidates = [first, Candidate(group=held, policy=LATEST)]
    assert filled(candidates, ask(6)) == [(1, 2), (0, 4)]
    assert filled(candidates, ask(1)) == [(1, 1)]


def test_slots_bound_admission_and_a_fresh_process_loses_what_its_name_held() -> None:
    made = working(spec("train", RunKind.TRAIN, admission_slots=2))
    assert len(lease(made, ask(99, policy(0)))) == 2
    assert lease(made, ask(99, policy(0), is_idle=True)) == []
    again = lease(made, ask(99, None, is_idle=True))
    assert [item.group.rollouts[0].attempt for item in again] == [2, 2]
    assert made.runs["train"].num_requeued == 8
    assert lease(made, ask(99, None, is_idle=True, worker_id="another")) == []
