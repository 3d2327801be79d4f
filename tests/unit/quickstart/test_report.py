"""Journal, series, result and report on canned samples."""

import json
from pathlib import Path

import pytest
from jm.events.v1 import events_pb2 as events
from jm.registry.v1 import registry_pb2 as registry
from jm.scheduler.v1 import scheduler_pb2 as scheduler

from journeyman.quickstart.finish import finish
from journeyman.quickstart.folder import RunFolder
from journeyman.quickstart.journal import Journal, Stage, read_journal, stage_costs
from journeyman.quickstart.pipeline import Outcome
from journeyman.quickstart.recipe import SMOKE, Recipe
from journeyman.quickstart.report import SMOKE_MEANS, WHAT_IT_MEANS
from journeyman.quickstart.series import build_series

KEYS = {
    "seed",
    "domains",
    "seconds",
    "groups",
    "requeued_rollouts",
    "trajectories",
    "tokens",
    "lost_groups",
    "infra_failures_in_advantages",
    "out",
}


def entry(at: float, kind: str, **fields: object) -> str:
    return json.dumps({"at": at, "kind": kind, **fields})


def sample(at: float, step: int, **fields: object) -> str:
    return entry(at, "sample", stage="rl", done=step, domains={"math.tool": step / 10}, cpu_s=at, **fields)


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    path = tmp_path / "quickstart.jsonl"
    lines = [
        entry(100, "sitting", max_s=None),
        entry(100, "stage_started", stage="rl", cpu_s=0),
        sample(101, 0, metrics={}, tokens_per_s=0, entropy=0.0, slot_seconds={"decode": 5}),
        sample(102, 1, metrics={"reward": 0.2, "entropy": 0.4}, tokens_per_s=50, slot_seconds={"decode": 9, "tool": 1}),
        sample(103, 1, metrics={"reward": 0.25}, tokens_per_s=60, entropy=0.3, slot_seconds={"decode": 10, "tool": 2}),
        sample(104, 2, metrics={"reward": 0.5}, tokens_per_s=70, entropy=0.2, slot_seconds={"decode": 12, "tool": 2}),
        entry(200, "sitting", max_s=None),
        entry(200, "stage_started", stage="rl", cpu_s=0),
        entry(207, "stage_ended", stage="rl", cpu_s=9.5),
        '{"at": 208, "kind": "sam',
    ]
    path.write_text("\n".join(lines))
    return path


def score(domain: str, graded: int, passed: int) -> registry.DomainScore:
    return registry.DomainScore(domain=domain, num_graded=graded, num_passed=passed)


def run(run_id: str, **groups: int) -> scheduler.Run:
    return scheduler.Run(
        spec=scheduler.RunSpec(run_id=run_id),
        groups=scheduler.GroupCounts(**groups),
        drops=[scheduler.DropCount(reason=events.DROP_REASON_ZERO_VARIANCE, count=groups.get("dropped", 0))],
        requeued_rollouts=1,
        trajectories=10,
        sampled_tokens=100,
        lost_groups=1,
        infra_failures_in_advantages=2,
    )


def outcome() -> Outcome:
    return Outcome(
        before=registry.Evaluation(domains=[score("code.repair", 0, 0), score("math.tool", 12, 3)]),
        after=registry.Evaluation(domains=[score("code.repair", 4, 1), score("math.tool", 10, 9)]),
        decision=registry.RunGateResponse(promoted=True, reason="no domain is worse <by> 0.05 or more"),
        runs=(run("before", admitted=6, closed=6), run("rl", admitted=9, committed=4, dropped=5)),
        num_steps=2,
    )


def test_a_stage_cut_short_by_a_kill_ends_with_the_last_sample_of_its_sitting(journal: Path) -> None:
    costs = stage_costs(read_journal(journal))
    assert costs[Stage.RL].wall_s == pytest.approx(4 + 7)
    assert costs[Stage.RL].cpu_s == pytest.approx(104 + 9.5)


def test_curves_have_one_point_a_step_and_slot_time_starts_at_nothing(journal: Path) -> None:
    series = build_series(read_journal(journal))
    assert series.domains["math.tool"].x == (1.0, 2.0)
    assert series.reward.y == (0.25, 0.5)
    assert series.entropy.y == (0.3, 0.2)
    assert series.tokens.x == (0.0, 1.0, 2.0, 3.0)
    assert series.slots["decode"].y == (0.0, 4.0, 5.0, 7.0)
    assert series.slots["tool"].y == (0.0, 1.0, 2.0, 2.0)


def test_an_empty_journal_gives_empty_curves() -> None:
    series = build_series([])
    assert series.domains == {}
    assert series.tokens.x == ()


def test_everything_is_written_and_the_counters_are_sums_over_all_runs(tmp_path: Path, journal: Path) -> None:
    folder = RunFolder(tmp_path / "out")
    folder.create("", needed_bytes=0)
    folder.journal.write_text(journal.read_text().rpartition("\n")[0] + "\n")
    result = finish(folder, SMOKE, outcome())
    assert set(result) == KEYS
    assert json.loads(folder.result.read_text()) == result
    assert result["domains"] == {
        "code.repair": {"before": None, "after": 0.25, "n": 0},
        "math.tool": {"before": 0.25, "after": 0.9, "n": 10},
    }
    assert result["groups"] == {"admitted": 15, "committed": 4, "closed": 6, "dropped": 5}
    assert (result["requeued_rollouts"], result["trajectories"], result["tokens"]) == (2, 20, 200)
    assert (result["lost_groups"], result["infra_failures_in_advantages"]) == (2, 4)
    assert set(result["seconds"]) == {"rl", "report"}
    page = folder.report.read_text()
    assert page.count("data:image/png;base64,") == len(list(folder.plots.glob("*.png"))) == 6
    assert "&lt;by&gt;" in page
    assert "http" not in page
    assert SMOKE_MEANS in page
    assert "dropped: zero variance" in page


def test_a_full_run_says_what_its_numbers_mean(tmp_path: Path, journal: Path) -> None:
    folder = RunFolder(tmp_path / "out")
    folder.create("", needed_bytes=0)
    folder.journal.write_text(journal.read_text().rpartition("\n")[0] + "\n")
    finish(folder, Recipe(), outcome())
    assert WHAT_IT_MEANS in folder.report.read_text()


def test_the_journal_is_appended_to(tmp_path: Path) -> None:
    for _ in range(2):
        journal = Journal(tmp_path / "j.jsonl")
        journal.append("note", text="a\nb")
        journal.close()
    assert [entry["text"] for entry in read_journal(tmp_path / "j.jsonl")] == ["a\nb", "a\nb"]
