"""What grading knows of an object: its members, which of them are alike, and how far each distinct one got up the ladder.

Plain records that pass between the grader process and the app. The climbs of a grading are in the order of its members' `climb` numbers.
"""

from dataclasses import dataclass, replace
from enum import StrEnum

from journeyman.records import Attribution, TierResult, Trajectory


class ClimbState(StrEnum):
    """Where a climb stands."""

    DECIDED = "decided"
    """A tier settled it, or the ladder ended."""
    NEEDS_BOX = "needs_box"
    """The next tier runs programs."""
    BAD_TASK = "bad_task"
    """The task cannot be judged, whatever the answer."""
    FAILED = "failed"
    """The grader raised, died or ran out of time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Climb:
    """How far one distinct answer got."""

    state: ClimbState
    results: tuple[TierResult, ...] = ()
    """What each tier said so far, cheapest first."""
    partial: float = 0.0
    """Partial credit of the last tier that gave one."""
    reason: str = ""
    """Why, where the state is BAD_TASK or FAILED."""
    has_timed_out: bool = False
    """Where FAILED: whether time ran out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """One distinct member whose next tier runs programs."""

    trajectory: Trajectory
    so_far: Climb


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """One trajectory of the object, without its tokens."""

    index: int
    attempt: int
    attribution: Attribution
    num_turns: int
    num_sampled_tokens: int
    climb: int
    """Number of its climb; alike members share one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Grading:
    """One recorded object."""

    domain: str
    domain_ref: str
    members: tuple[Member, ...]
    positions: tuple[int, ...]
    """For each climb, a member's place in the object that stands for it."""
    climbs: tuple[Climb, ...]
    """Empty where the object was only read."""

    def with_climbs(self, climbs: dict[int, Climb]) -> "Grading":
        """The same with some climbs replaced, by number."""
        return replace(self, climbs=tuple(climbs.get(number, climb) for number, climb in enumerate(self.climbs)))


def blamed_on_answer(reason: str) -> Climb:
    """An answer that kills its grader twice, while a known good control passes, is wrong."""
    result = TierResult(tier="grader", score=0.0, decided=True, evidence=reason)
    return Climb(state=ClimbState.DECIDED, results=(result,))
