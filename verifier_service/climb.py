"""Takes one trajectory up its pack's ladder, tier by tier, until one decides. Runs in grader processes without a box, and in the service with one.

Tiers named in BOX_TIERS run programs and get a fresh box; the others never do. What a tier raises is data (state FAILED), except for
BoxFailure, which says nothing about the trajectory and passes through.
"""

import logging
import time
from dataclasses import replace

from journeyman.boxes.port import Box, BoxFailure
from journeyman.packs.port import DomainPack, TierContext, UnjudgeableTask
from journeyman.records import Trajectory
from verifier_service.core.grading import Climb, ClimbState

log = logging.getLogger(__name__)

BOX_TIERS = frozenset({"execute", "cross_check"})


async def climb(pack: DomainPack, trajectory: Trajectory, so_far: Climb | None = None, box: Box | None = None) -> Climb:
    """Goes on from so_far. Without a box it stops before the first tier that needs one."""
    results = list(so_far.results) if so_far is not None else []
    partial = so_far.partial if so_far is not None else 0.0
    context = TierContext(box=box)
    for tier in pack.spec.tiers[len(results) :]:
        if tier in BOX_TIERS and box is None:
            return Climb(state=ClimbState.NEEDS_BOX, results=tuple(results), partial=partial)
        started_s = time.perf_counter()
        try:
            judgement = await pack.judge(tier, trajectory.task, trajectory, context)
        except UnjudgeableTask as error:
            return Climb(state=ClimbState.BAD_TASK, results=tuple(results), reason=f"{tier}: {error}")
        except BoxFailure:
            raise
        except Exception as error:  # a pack's code may raise anything; it becomes a failed climb and is never lost
            log.warning("tier raised", exc_info=error, extra={"tier": tier, "domain": pack.spec.name})
            reason = f"{tier} raised {type(error).__name__}: {error}"[:200]
            return Climb(state=ClimbState.FAILED, results=tuple(results), reason=reason)
        results.append(replace(judgement.result, cost_s=time.perf_counter() - started_s))
        partial = judgement.partial
        if judgement.result.decided:
            break
    return Climb(state=ClimbState.DECIDED, results=tuple(results), partial=partial)
