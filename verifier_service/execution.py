"""The tiers that run programs: each distinct member gets a fresh box with the task's files and, over them, the files of its outcome.

Called by the app. A sandbox that fails or cannot be reached is waited for with growing pauses, up to patience_s; then the climbs are
FAILED, which is no score. Nothing here turns a sandbox's trouble into evidence.
"""

import asyncio
import logging
import random
import secrets
from collections.abc import Mapping
from typing import Generic, TypeVar

from journeyman.boxes.port import Box, BoxFailure
from journeyman.errors import JourneymanError
from journeyman.packs.port import DomainPack
from verifier_service.climb import climb
from verifier_service.core.grading import Candidate, Climb, ClimbState
from verifier_service.ports import FreshBoxes

log = logging.getLogger(__name__)

B = TypeVar("B", bound=Box)
FIRST_PAUSE_S = 0.1
LONGEST_PAUSE_S = 3.0


class Execution(Generic[B]):
    """Runs candidates of one group together. Implements ports.ProgramTiers."""

    def __init__(self, boxes: FreshBoxes[B], *, patience_s: float, timeout_s: float, lease_s: float) -> None:
        self._boxes = boxes
        self._patience_s = patience_s
        self._timeout_s = timeout_s
        self._lease_s = lease_s

    async def finish(self, pack: DomainPack, candidates: Mapping[int, Candidate], key: str) -> dict[int, Climb]:
        """The finished climb of each candidate, by its number. key names the group in the boxes' keys; no two calls share a box."""
        key = f"{key}/{secrets.token_hex(8)}"
        deadline_s = asyncio.get_running_loop().time() + self._patience_s
        done: dict[int, Climb] = {}
        attempt, pause_s, trouble = 0, FIRST_PAUSE_S, ""
        while waiting := {number: item for number, item in candidates.items() if number not in done}:
            attempt += 1
            try:
                results = await self._attempt(pack, waiting, f"{key}/{attempt}")
            except (BoxFailure, JourneymanError) as error:
                results, trouble = {}, str(error)
            done.update({number: result for number, result in results.items() if isinstance(result, Climb)})
            failures = [str(result) for result in results.values() if isinstance(result, BoxFailure)]
            trouble = failures[0] if failures else trouble
            if len(done) == len(candidates):
                break
            if asyncio.get_running_loop().time() + pause_s > deadline_s:
                return {
                    **done,
                    **{number: _given_up(item, trouble) for number, item in waiting.items() if number not in done},
                }
            log.warning("sandbox failed, trying again", extra={"attempt": attempt, "reason": trouble})
            await asyncio.sleep(pause_s * (0.5 + random.random()))
            pause_s = min(LONGEST_PAUSE_S, 2 * pause_s)
        return done

    async def _attempt(
        self, pack: DomainPack, candidates: Mapping[int, Candidate], key: str
    ) -> dict[int, Climb | BoxFailure]:
        first = next(iter(candidates.values())).trajectory.task
        files = {file.path: file.content for file in first.files}
        boxes = await self._boxes.open_group(files, len(candidates), key=key, lease_s=self._lease_s)
        try:
            runs = (self._run(pack, item, box) for item, box in zip(candidates.values(), boxes, strict=True))
            return dict(zip(candidates, await asyncio.gather(*runs), strict=True))
        finally:
            await self._discard(boxes)

    async def _run(self, pack: DomainPack, candidate: Candidate, box: B) -> Climb | BoxFailure:
        trajectory = candidate.trajectory
        try:
            async with asyncio.timeout(self._timeout_s):
                if trajectory.final_files:
                    await box.write_files({file.path: file.content for file in trajectory.final_files})
                return await climb(pack, trajectory, candidate.so_far, box)
        except BoxFailure as error:
            return error
        except TimeoutError:
            return BoxFailure(f"no result within {self._timeout_s:.0f} s")

    async def _discard(self, boxes: list[B]) -> None:
        """Boxes have leases, so one that cannot be destroyed now ends by itself."""
        try:
            await self._boxes.destroy(boxes)
        except (BoxFailure, JourneymanError) as error:
            log.warning("boxes left to their leases", extra={"reason": str(error), "num_boxes": len(boxes)})


def _given_up(candidate: Candidate, trouble: str) -> Climb:
    reason = f"sandbox: {trouble or 'no result'}"
    return Climb(state=ClimbState.FAILED, results=candidate.so_far.results, reason=reason)
