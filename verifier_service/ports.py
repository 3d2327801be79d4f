"""What the verifier needs from outside."""

from collections.abc import Mapping, Sequence
from typing import Protocol, TypeVar

from journeyman.boxes.port import Box
from journeyman.packs.port import DomainPack
from verifier_service.core.grading import Candidate, Climb, Grading

B = TypeVar("B", bound=Box)


class GraderLost(Exception):
    """The grader process died or ran out of time and was killed; the next question gets a fresh one."""

    def __init__(self, reason: str, *, has_timed_out: bool) -> None:
        super().__init__(reason)
        self.reason = reason
        self.has_timed_out = has_timed_out


class Grader(Protocol):
    """Judges recorded objects by the tiers that need no box. Each method may raise GraderLost, and JourneymanError where the object is
    damaged or belongs to another pack."""

    async def grade(self, data: bytes) -> Grading:
        """Every distinct member."""
        ...

    async def read(self, data: bytes) -> Grading:
        """The members only; no climbs."""
        ...

    async def grade_one(self, data: bytes, place: int) -> Climb:
        """The member at this place of the object, on a fresh process."""
        ...

    async def control(self, data: bytes) -> Climb:
        """An empty answer to the object's task, which every working grader can judge."""
        ...


class FreshBoxes(Protocol[B]):
    """Where programs of answers run. Methods raise BoxFailure, or JourneymanError where the sandbox cannot be reached."""

    async def open_group(self, files: Mapping[str, bytes], count: int, *, key: str, lease_s: float) -> list[B]:
        """As many boxes with these files."""
        ...

    async def destroy(self, boxes: Sequence[B]) -> None:
        """Ends them."""
        ...


class ProgramTiers(Protocol):
    """Finishes climbs whose next tier runs programs."""

    async def finish(self, pack: DomainPack, candidates: Mapping[int, Candidate], key: str) -> dict[int, Climb]:
        """The finished climb of each candidate, by its number; never a score that rests on a sandbox's failure."""
        ...
