"""Who is blamed when a grader is lost: the answer only if it fails twice on fresh graders while a control passes."""

import asyncio

import pytest

from journeyman.records import Attribution, TierResult
from verifier_service.blame import grade_surely
from verifier_service.core.grading import Climb, ClimbState, Grading, Member
from verifier_service.ports import GraderLost

GOOD = Climb(
    state=ClimbState.DECIDED, results=(TierResult(tier="rule", score=1.0, decided=True, evidence="right"),), partial=1.0
)
FAILED = Climb(state=ClimbState.FAILED, reason="rule raised ValueError")
LOST = GraderLost("ended with status -9", has_timed_out=False)
SLOW = GraderLost("no answer within 1 s", has_timed_out=True)


class ScriptedGrader:
    """Answers from scripts: a climb is given back, a GraderLost is raised. Members 0 and 1 are of different kinds."""

    def __init__(
        self, whole: GraderLost | list[Climb], alone: dict[int, list[Climb | GraderLost]], control: Climb | GraderLost
    ) -> None:
        self._whole, self._alone, self._control = whole, alone, control
        self.asked: list[str] = []

    async def grade(self, data: bytes) -> Grading:
        self.asked.append("all")
        if isinstance(self._whole, GraderLost):
            raise self._whole
        return grading(tuple(self._whole))

    async def read(self, data: bytes) -> Grading:
        self.asked.append("read")
        return grading(())

    async def grade_one(self, data: bytes, place: int) -> Climb:
        self.asked.append(f"one {place}")
        return give(self._alone[place].pop(0))

    async def control(self, data: bytes) -> Climb:
        self.asked.append("control")
        return give(self._control)


def give(scripted: Climb | GraderLost) -> Climb:
    if isinstance(scripted, GraderLost):
        raise scripted
    return scripted


def grading(climbs: tuple[Climb, ...]) -> Grading:
    members = tuple(
        Member(index=i, attempt=1, attribution=Attribution.POLICY, num_turns=1, num_sampled_tokens=1, climb=i)
        for i in range(2)
    )
    return Grading(domain="d", domain_ref="d@1+x", members=members, positions=(0, 1), climbs=climbs)


def surely(grader: ScriptedGrader) -> tuple[Climb, ...]:
    return asyncio.run(grade_surely(grader, b"")).climbs


def test_a_healthy_grader_is_asked_once() -> None:
    grader = ScriptedGrader([GOOD, GOOD], {}, GOOD)
    assert surely(grader) == (GOOD, GOOD)
    assert grader.asked == ["all"]


def test_a_lost_grader_costs_nobody_their_score() -> None:
    grader = ScriptedGrader(LOST, {0: [GOOD], 1: [GOOD]}, GOOD)
    assert surely(grader) == (GOOD, GOOD)
    assert grader.asked == ["all", "read", "one 0", "one 1"]


@pytest.mark.parametrize("loss", [LOST, SLOW, FAILED])
def test_an_answer_that_repeats_it_is_wrong_when_the_control_passes(loss: Climb | GraderLost) -> None:
    grader = ScriptedGrader(LOST, {0: [GOOD], 1: [loss, loss]}, GOOD)
    right, wrong = surely(grader)
    assert right == GOOD
    assert (wrong.state, wrong.results[-1].score, wrong.partial) == (ClimbState.DECIDED, 0.0, 0.0)


@pytest.mark.parametrize("control", [LOST, FAILED, Climb(state=ClimbState.BAD_TASK)])
def test_nobody_is_blamed_when_the_control_fails(control: Climb | GraderLost) -> None:
    grader = ScriptedGrader(LOST, {0: [GOOD], 1: [SLOW, SLOW]}, control)
    right, unknown = surely(grader)
    assert right == GOOD
    assert (unknown.state, unknown.has_timed_out) == (ClimbState.FAILED, True)


def test_a_second_try_that_works_counts() -> None:
    grader = ScriptedGrader([GOOD, FAILED], {1: [LOST, GOOD]}, GOOD)
    assert surely(grader) == (GOOD, GOOD)
    assert grader.asked == ["all", "one 1", "one 1"]


def test_a_control_that_would_go_on_in_a_box_passes() -> None:
    grader = ScriptedGrader(LOST, {0: [LOST, LOST], 1: [GOOD]}, Climb(state=ClimbState.NEEDS_BOX))
    assert surely(grader)[0].state is ClimbState.DECIDED
