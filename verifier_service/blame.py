"""Grading that survives its graders, and says whose fault a lost one was. Called by the app.

A grader that raises, dies or runs out of time is tried again with each distinct member alone on a fresh process. A member that fails again there,
while an empty answer to the same task is judged without trouble, is wrong: score 0. If the control fails too, the verifier is at fault
and nobody gets a score.
"""

import logging
from dataclasses import replace

from verifier_service.core.grading import Climb, ClimbState, Grading, blamed_on_answer
from verifier_service.ports import Grader, GraderLost

log = logging.getLogger(__name__)


async def grade_surely(grader: Grader, data: bytes) -> Grading:
    """A grading in which every climb is decided, needs a box, is a bad task, or failed by the verifier's fault."""
    try:
        grading = await grader.grade(data)
    except GraderLost as error:
        log.warning("grader lost", extra={"reason": error.reason})
        grading = await _read_surely(grader, data)
        grading = replace(grading, climbs=(Climb(state=ClimbState.FAILED),) * len(grading.positions))
    again = {
        number: await _grade_alone(grader, data, grading.positions[number])
        for number, climb in enumerate(grading.climbs)
        if climb.state is ClimbState.FAILED
    }
    return grading.with_climbs(again) if again else grading


async def _read_surely(grader: Grader, data: bytes) -> Grading:
    """Reading runs nothing of an answer, so a second loss is the machine's and passes on."""
    try:
        return await grader.read(data)
    except GraderLost:
        return await grader.read(data)


async def _grade_alone(grader: Grader, data: bytes, place: int) -> Climb:
    first = await _try(grader, data, place)
    if first.state is not ClimbState.FAILED:
        return first
    second = await _try(grader, data, place)
    if second.state is not ClimbState.FAILED:
        return second
    if await _control_passes(grader, data):
        return blamed_on_answer(f"the answer fails its grader ({second.reason}) while a control passes")
    return second


async def _try(grader: Grader, data: bytes, place: int) -> Climb:
    try:
        return await grader.grade_one(data, place)
    except GraderLost as error:
        return Climb(state=ClimbState.FAILED, reason=error.reason, has_timed_out=error.has_timed_out)


async def _control_passes(grader: Grader, data: bytes) -> bool:
    try:
        climb = await grader.control(data)
    except GraderLost:
        return False
    return climb.state in (ClimbState.DECIDED, ClimbState.NEEDS_BOX)
