"""Short ways for a ladder to say what it found. Called by ladder.py of packs."""

from collections.abc import Callable

from journeyman.packs.arithmetic import read_integer
from journeyman.packs.port import Judgement, TierContext
from journeyman.records import Task, TierResult, Trajectory

PartialCredit = Callable[[Task, Trajectory], float]
"""Credit for the way there, 0..1, computed from the calls alone."""


def fail(tier: str, evidence: str, partial: float = 0.0) -> Judgement:
    """Settled: not solved."""
    return Judgement(result=TierResult(tier=tier, score=0.0, decided=True, evidence=evidence), partial=partial)


def solved(tier: str, evidence: str) -> Judgement:
    """Settled: solved."""
    return Judgement(result=TierResult(tier=tier, score=1.0, decided=True, evidence=evidence), partial=1.0)


def undecided(tier: str, evidence: str) -> Judgement:
    """Nothing against it so far; the next tier decides."""
    return Judgement(result=TierResult(tier=tier, score=0.0, decided=False, evidence=evidence))


def compare_answer(tier: str, trajectory: Trajectory, gold: int, partial: float) -> Judgement:
    """The rule of every domain whose answer is one whole number."""
    answer = read_integer(trajectory.response)
    if answer == gold:
        return solved(tier, f"answered {gold}")
    said = "nothing" if trajectory.response is None else repr(trajectory.response[:40])
    return fail(tier, f"answered {said}, right is {gold}", partial)


class IntegerFormat:
    """Tier `format` of those domains: lets a whole number through, and otherwise settles at the partial credit of the calls made."""

    def __init__(self, partial: PartialCredit) -> None:
        self._partial = partial

    async def __call__(self, task: Task, trajectory: Trajectory, context: TierContext) -> Judgement:
        if read_integer(trajectory.response) is None:
            return fail("format", "no whole number as final message", self._partial(task, trajectory))
        return undecided("format", "one whole number")
