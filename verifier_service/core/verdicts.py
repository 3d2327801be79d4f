"""Verdicts from gradings. Only a climb that was decided becomes a score; nothing else ever does."""

from typing import assert_never

from journeyman.records import Attribution, Verdict, VerdictStatus
from verifier_service.core.grading import Climb, ClimbState, Grading, Member

FINAL = (VerdictStatus.GRADED, VerdictStatus.BAD_TASK)
"""Statuses that judging again would not change; only these are stored."""


def verdicts_of(grading: Grading) -> list[Verdict]:
    """One verdict a member, in the members' order."""
    return [verdict_of(member, grading.climbs[member.climb]) for member in grading.members]


def verdict_of(member: Member, climb: Climb) -> Verdict:
    """The verdict on one member."""
    status = _status(climb)
    last = climb.results[-1] if climb.results else None
    is_graded = status is VerdictStatus.GRADED and last is not None
    score = last.score if is_graded and last is not None else 0.0
    return Verdict(
        index=member.index,
        attempt=member.attempt,
        status=status,
        score=score,
        passed=is_graded and score >= 1.0,
        partial=climb.partial if is_graded else 0.0,
        attribution=member.attribution if is_graded else _blame(status),
        tier=last.tier if last is not None else "",
        reason=climb.reason or (last.evidence if last is not None else ""),
        tiers=climb.results,
        num_turns=member.num_turns,
        num_sampled_tokens=member.num_sampled_tokens,
    )


def ungraded(index: int, attempt: int, num_turns: int, num_sampled_tokens: int, reason: str) -> Verdict:
    """The verdict on a member whose object could not be judged at all."""
    return Verdict(
        index=index,
        attempt=attempt,
        status=VerdictStatus.VERIFIER_ERROR,
        score=0.0,
        passed=False,
        partial=0.0,
        attribution=Attribution.VERIFIER,
        tier="",
        reason=reason,
        tiers=(),
        num_turns=num_turns,
        num_sampled_tokens=num_sampled_tokens,
    )


def _status(climb: Climb) -> VerdictStatus:
    match climb.state:
        case ClimbState.DECIDED:
            return VerdictStatus.GRADED
        case ClimbState.BAD_TASK:
            return VerdictStatus.BAD_TASK
        case ClimbState.FAILED | ClimbState.NEEDS_BOX:
            return VerdictStatus.TIMED_OUT if climb.has_timed_out else VerdictStatus.VERIFIER_ERROR
        case _:
            assert_never(climb.state)


def _blame(status: VerdictStatus) -> Attribution:
    return Attribution.BAD_TASK if status is VerdictStatus.BAD_TASK else Attribution.VERIFIER
