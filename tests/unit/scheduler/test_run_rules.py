"""What a RunSpec and a client's task must be: every refusal names the field, its value and what is right."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from journeyman.errors import ErrorCode, JourneymanError
from journeyman.records import LatestPolicy, Split, Task
from journeyman.testing.scripted_tasks import ScriptedTasks
from scheduler_service.core import playing, run_rules
from scheduler_service.core.leasing import Ask
from scheduler_service.core.run import DomainShare, Run, RunKind, RunSpec, RunState
from scheduler_service.core.working_set import Draft, TaskName, WorkingSet

SOURCE = ScriptedTasks({"math.tool": (1, 2)})
SHARE = DomainShare(domain="math.tool", levels=(1,), num_groups=0)
TRAIN = RunSpec(
    run_id="r",
    kind=RunKind.TRAIN,
    domains=(SHARE,),
    split=Split.TRAIN,
    policy=LatestPolicy(run_id="r"),
    group_size=4,
    admission_slots=2,
    min_graded=2,
    retry_budget=1,
    lease_s=10.0,
    seed=1,
    max_off_policy_steps=1,
    temperature=1.0,
)
EVAL = {"kind": RunKind.EVAL, "domains": (replace(SHARE, num_groups=1),), "split": Split.HELDOUT}


@pytest.mark.parametrize("changes", [{}, EVAL, {"temperature": 0.0}, {"domains": ()}, {"seed": -(2**63)}])
def test_a_right_spec_is_accepted(changes: Mapping[str, object]) -> None:
    run_rules.check_spec(replace(TRAIN, **changes), SOURCE)  # type: ignore[arg-type]  # test data


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"run_id": ""}, "run_id=''"),
        ({"run_id": "a/b"}, "run_id='a/b'"),
        ({"run_id": ".."}, "run_id='..'"),
        ({"run_id": "x" * 129}, "1 to 128"),
        ({"group_size": 1}, "group_size=1: train runs need 2"),
        ({**EVAL, "group_size": 0}, "group_size=0: eval runs need 1"),
        ({"group_size": 5000}, "group_size=5000"),
        ({"admission_slots": 0}, "admission_slots=0: must be at least 1"),
        ({"min_graded": 1}, "min_graded=1: must be 2 to group_size (4)"),
        ({"min_graded": 5}, "min_graded=5"),
        ({"retry_budget": -1}, "retry_budget=-1: must be at least 0"),
        ({"lease_s": 0.5}, "lease='0.5s': must be 1 s to 1 h"),
        ({"lease_s": 3601.0}, "lease='3601s'"),
        ({"temperature": -0.1}, "temperature=-0.1"),
        ({"temperature": float("nan")}, "temperature=nan"),
        ({"max_off_policy_steps": -1}, "max_off_policy_steps=-1"),
        ({"split": Split.HELDOUT}, "held-out tasks are never trained on"),
        ({"domains": (SHARE, SHARE)}, "domains[0].domain='math.tool': is named twice"),
        ({"domains": (replace(SHARE, domain="math.tol"),)}, "domains[0].domain='math.tol': no domain"),
        ({"domains": (replace(SHARE, levels=(1, 9)),)}, "domains[0].levels=[9]: math.tool has levels [1, 2]"),
        ({"domains": (replace(SHARE, levels=(1, 1)),)}, "name each level once"),
        ({"domains": (replace(SHARE, num_groups=3),)}, "domains[0].num_groups=3: must be 0"),
        ({**EVAL, "domains": (SHARE,)}, "domains[0].num_groups=0: eval runs need at least 1"),
    ],
)
def test_a_wrong_spec_is_refused_by_field_value_and_fix(changes: Mapping[str, object], words: str) -> None:
    with pytest.raises(JourneymanError) as caught:
        run_rules.check_spec(replace(TRAIN, **changes), SOURCE)  # type: ignore[arg-type]  # test data
    assert caught.value.code is ErrorCode.INVALID_INPUT
    assert words in caught.value.message


def created(spec: RunSpec) -> WorkingSet:
    working = WorkingSet(source=SOURCE)
    draft = Draft(working, 0.0)
    run_rules.create(draft, spec)
    working.apply(draft.batch())
    return working


def refused(working: WorkingSet, task: Task) -> JourneymanError:
    with pytest.raises(JourneymanError) as caught:
        run_rules.submit(Draft(working, 0.0), "r", task)
    return caught.value


def test_creating_a_run_again_returns_it_and_another_spec_is_a_conflict() -> None:
    working = created(TRAIN)
    assert run_rules.create(Draft(working, 0.0), TRAIN) == working.runs["r"]
    with pytest.raises(JourneymanError) as caught:
        run_rules.create(Draft(working, 0.0), replace(TRAIN, seed=2))
    assert caught.value.code is ErrorCode.CONFLICT


TASK = SOURCE.task("math.tool", Split.TRAIN, 1, 5)


def test_tasks_of_clients_are_played_in_order_once_each() -> None:
    working = created(replace(TRAIN, domains=()))
    second = replace(TASK, task_id="second", level=7)
    draft = Draft(working, 0.0)
    assert [run_rules.submit(draft, "r", task) for task in (TASK, second, TASK)] == [True, True, False]
    working.apply(draft.batch())
    draft = Draft(working, 0.0)
    leased = playing.lease(draft, Ask(worker_id="w", max_rollouts=99, loaded=None, is_idle=True))
    working.apply(draft.batch())
    assert [item.group.task for item in leased] == [TASK, second]
    assert not working.queues["r"]
    assert not run_rules.submit(Draft(working, 0.0), "r", TASK)


def test_tasks_that_cannot_be_judged_here_are_refused() -> None:
    working = created(replace(TRAIN, domains=()))
    assert (
        "domain_ref='math.tool@9': this deployment judges by"
        in refused(working, replace(TASK, domain_ref="math.tool@9")).message
    )
    assert "domain='nothing'" in refused(working, replace(TASK, domain="nothing")).message
    assert "level=0" in refused(working, replace(TASK, level=0)).message
    assert "messages" in refused(working, replace(TASK, messages=())).message
    assert "task_id=''" in refused(working, replace(TASK, task_id="")).message
    assert "never trained on" in refused(working, replace(TASK, split=Split.HELDOUT)).message


def test_runs_that_draw_or_are_closed_take_no_tasks() -> None:
    assert refused(created(TRAIN), TASK).code is ErrorCode.PRECONDITION
    working = created(replace(TRAIN, domains=()))
    draft = Draft(working, 0.0)
    run_rules.close(draft, "r", cancels=False)
    working.apply(draft.batch())
    assert working.runs["r"].state is RunState.FINISHED
    assert refused(working, TASK).code is ErrorCode.PRECONDITION
    with pytest.raises(JourneymanError) as caught:
        run_rules.submit(Draft(working, 0.0), "absent", TASK)
    assert caught.value.code is ErrorCode.NOT_FOUND


def test_quarantined_tasks_are_redrawn_in_training_and_dropped_in_evaluation() -> None:
    def first_group(spec: RunSpec, *poisoned: str) -> tuple[str, Run]:
        working = created(spec)
        working.quarantine.update(TaskName(run_id="", task_id=task_id) for task_id in poisoned)
        draft = Draft(working, 0.0)
        leased = playing.lease(draft, Ask(worker_id="w", max_rollouts=1, loaded=None, is_idle=True))
        working.apply(draft.batch())
        return leased[0].group.task.task_id if leased else "", working.runs["r"]

    poisoned, _ = first_group(TRAIN)
    other, run = first_group(TRAIN, poisoned)
    assert other not in ("", poisoned)
    assert (run.num_admitted, run.totals.dropped) == (1, 0)
    evaluation = replace(TRAIN, **EVAL)  # type: ignore[arg-type]  # test data
    poisoned, _ = first_group(evaluation)
    nothing, run = first_group(evaluation, poisoned)
    assert (nothing, run.num_admitted, run.totals.dropped, run.state) == ("", 1, 1, RunState.FINISHED)
