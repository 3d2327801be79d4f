"""format: the final message is one whole number. rule: it is the value beside the key asked for."""

import json

from journeyman.packs.calls import calls_of
from journeyman.packs.judgement import IntegerFormat, compare_answer
from journeyman.packs.port import Judgement, TierContext, UnjudgeableTask
from journeyman.records import Task, Trajectory

from .tasks import read_pairs


def asked_key(task: Task) -> str:
    """The key of the question."""
    return str(json.loads(task.verification_json)["key"])


def gold(task: Task) -> int:
    """The right answer."""
    try:
        return read_pairs(task)[asked_key(task)]
    except (KeyError, ValueError) as error:
        raise UnjudgeableTask("the text does not hold the key") from error


def partial(task: Task, trajectory: Trajectory) -> float:
    """0.1 for searching, 0.2 more for searching the right key."""
    keys = [key for (key,) in calls_of(trajectory, "grep", "key")]
    return 0.3 if asked_key(task) in keys else 0.1 if keys else 0.0


async def check_rule(task: Task, trajectory: Trajectory, context: TierContext) -> Judgement:
    """Compares."""
    return compare_answer("rule", trajectory, gold(task), partial(task, trajectory))


TIERS = {"format": IntegerFormat(partial), "rule": check_rule}
