"""What is shown: the panel and the plain lines of one view, and the estimate of time left."""

import io

import pytest
from rich.console import Console

from journeyman.quickstart.journal import Stage
from journeyman.quickstart.recipe import Recipe
from journeyman.quickstart.screen import PlainScreen, clock, draw, one_line, shares
from journeyman.quickstart.view import View, expected_s, time_left_s

VIEW = View(
    stage=Stage.RL,
    elapsed_s=125,
    left_s=61,
    num_done=7,
    num_asked=60,
    unit="steps",
    domains={"math.tool": 0.5, "code.repair": 0.25},
    metrics={"loss": 0.125},
    tokens_per_s=4321,
    num_in_flight=12,
    num_ready=3,
    slot_seconds={"tool": 1.0, "decode": 3.0},
    isolation="ns-root",
    notes=("trainer ended (killed by signal 9) and is started again",),
)


def test_the_panel_shows_stage_steps_domains_and_idle_causes() -> None:
    console = Console(file=io.StringIO(), width=120, force_terminal=False)
    console.print(draw(VIEW))
    text = console.file.getvalue()
    for shown in (
        "7/60 steps",
        "math.tool",
        "50%",
        "decode 75%",
        "12 in flight, 3 ready",
        "4321",
        "2:05",
        "1:01",
        "ns-root",
    ):
        assert shown in text
    assert "killed by signal 9" in text


def test_one_line_says_the_same() -> None:
    line = one_line(VIEW)
    assert line.startswith("2:05 reinforcement learning; 7/60 steps; success 0.38 (math.tool 0.50 code.repair 0.25)")
    assert line.endswith("about 1:01 left")


def test_plain_lines_come_at_stages_and_notes_not_at_every_sample(capsys: pytest.CaptureFixture[str]) -> None:
    screen = PlainScreen(to_stderr=False)
    for _ in range(3):
        screen.show(VIEW)
    screen.show(View(stage=Stage.AFTER, elapsed_s=130))
    assert len(capsys.readouterr().out.splitlines()) == 3


def test_shares_and_clock() -> None:
    assert shares({"decode": 3.0, "tool": 1.0, "none": 0.0}) == {"decode": 0.75, "tool": 0.25}
    assert shares({}) == {}
    assert clock(59.6) == "1:00"


def test_time_left_follows_the_pace_of_what_is_done() -> None:
    expected = expected_s(Recipe())
    spent = {stage: 2 * expected[stage] for stage in (Stage.START, Stage.INIT, Stage.COLD_START, Stage.BEFORE)}
    later_s = expected[Stage.AFTER] + expected[Stage.GATE] + expected[Stage.REPORT]
    left_s = time_left_s(expected, spent, Stage.RL, 50.0, 0.5)
    assert left_s == pytest.approx(50.0 + 2 * later_s)
    assert time_left_s(expected, {}, Stage.START, 0.0, 0.0) == pytest.approx(sum(expected.values()))
