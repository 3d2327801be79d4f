"""What becomes a verdict: alike members share one, and nothing but a decided climb is ever a score."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from journeyman.packs.load import load_pack
from journeyman.records import Attribution, Split, Step, TaskFile, TierResult, ToolCall, Trajectory, VerdictStatus
from journeyman.testing.played import played
from verifier_service.core.alike import number_alike
from verifier_service.core.grading import Climb, ClimbState, Member, blamed_on_answer
from verifier_service.core.verdicts import FINAL, ungraded, verdict_of

TASK = next(load_pack("math.tool").tasks(Split.TRAIN, 1, 0))
CALL = ToolCall(name="calc", arguments_json='{"expression": "1"}')
BASE = played(TASK, [("calc 1", CALL, "1")], response="1", index=0)


def member(attribution: Attribution = Attribution.POLICY) -> Member:
    return Member(index=3, attempt=2, attribution=attribution, num_turns=4, num_sampled_tokens=9, climb=0)


def variations(trajectory: Trajectory) -> list[Trajectory]:
    """Differ from it in one thing that a ladder may look at."""
    step = trajectory.steps[0]
    other_step = [
        replace(step, text="calc  1"),
        replace(step, call=ToolCall(name="calc", arguments_json='{"expression": "2"}')),
        replace(step, observation="2"),
    ]
    return [
        *(replace(trajectory, steps=(changed,)) for changed in other_step),
        replace(trajectory, response="2"),
        replace(trajectory, response=None),
        replace(trajectory, final_files=(TaskFile(path="a", content=b""),)),
        replace(trajectory, ending="turns_spent", attribution=Attribution.BUDGET),
    ]


def test_members_that_differ_in_evidence_are_judged_apart() -> None:
    members = [BASE, *variations(BASE)]
    kinds, firsts = number_alike(members)
    assert kinds == list(range(len(members))) == firsts


def test_tokens_and_times_make_no_difference() -> None:
    slow = replace(BASE.steps[0], tool_s=9.0)
    same = [replace(BASE, index=1, attempt=3, token_ids=(9,), wall_s=5.0), replace(BASE, steps=(slow,))]
    assert number_alike([BASE, *same]) == ([0, 0, 0], [0])


@given(st.lists(st.integers(0, 3), max_size=16))
def test_kinds_are_numbered_by_first_appearance(choice: list[int]) -> None:
    pool = variations(BASE)
    kinds, firsts = number_alike([pool[number] for number in choice])
    assert [choice[first] for first in firsts] == list(dict.fromkeys(choice))
    assert all(choice[firsts[kind]] == number for kind, number in zip(kinds, choice, strict=True))


def test_a_decided_climb_is_a_score_with_the_recorded_attribution() -> None:
    passed = TierResult(tier="rule", score=1.0, decided=True, evidence="right")
    verdict = verdict_of(member(Attribution.BUDGET), Climb(state=ClimbState.DECIDED, results=(passed,), partial=1.0))
    assert (verdict.status, verdict.score, verdict.passed) == (VerdictStatus.GRADED, 1.0, True)
    assert (verdict.attribution, verdict.tier, verdict.reason) == (Attribution.BUDGET, "rule", "right")
    assert (verdict.index, verdict.attempt, verdict.num_turns, verdict.num_sampled_tokens) == (3, 2, 4, 9)


@given(
    st.sampled_from([ClimbState.FAILED, ClimbState.NEEDS_BOX, ClimbState.BAD_TASK]),
    st.booleans(),
    st.floats(0, 1),
    st.booleans(),
)
def test_nothing_else_is_a_score(state: ClimbState, has_timed_out: bool, score: float, has_results: bool) -> None:
    results = (TierResult(tier="format", score=score, decided=True, evidence=""),) if has_results else ()
    climb = Climb(state=state, results=results, partial=score, reason="why", has_timed_out=has_timed_out)
    verdict = verdict_of(member(), climb)
    assert verdict.status is not VerdictStatus.GRADED
    assert (verdict.score, verdict.passed, verdict.partial) == (0.0, False, 0.0)
    assert verdict.attribution in (Attribution.VERIFIER, Attribution.BAD_TASK)
    assert (verdict.status in FINAL) == (state is ClimbState.BAD_TASK)
    assert verdict.reason == "why"


def test_an_answer_that_kills_its_grader_scores_below_nothing() -> None:
    verdict = verdict_of(member(), blamed_on_answer("died"))
    assert (verdict.status, verdict.score, verdict.passed, verdict.partial) == (VerdictStatus.GRADED, 0.0, False, 0.0)
    assert verdict.attribution is Attribution.POLICY


def test_an_object_that_cannot_be_judged_is_the_verifiers() -> None:
    verdict = ungraded(1, 2, 3, 4, "gone")
    assert (verdict.status, verdict.attribution) == (VerdictStatus.VERIFIER_ERROR, Attribution.VERIFIER)


def test_steps_are_compared_whole() -> None:
    longer = replace(BASE, steps=(*BASE.steps, Step(start=0, end=0, text="", call=None, observation=None, tool_s=0)))
    assert number_alike([BASE, longer])[0] == [0, 1]
