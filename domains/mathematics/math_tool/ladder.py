"""format: the final message is one whole number. rule: it is the value of the gold expression."""

import json

from journeyman.packs.arithmetic import evaluate
from journeyman.packs.calls import calls_of
from journeyman.packs.judgement import IntegerFormat, compare_answer
from journeyman.packs.port import Judgement, TierContext, UnjudgeableTask
from journeyman.records import Task, Trajectory


def gold(task: Task) -> int:
    """The right answer."""
    value = evaluate(json.loads(task.verification_json)["expression"])
    if value is None:
        raise UnjudgeableTask("the gold expression has no value")
    return value


def partial(task: Task, trajectory: Trajectory) -> float:
    """0.1 for using the calculator, 0.3 more for having computed the right value."""
    values = [evaluate(expression) for (expression,) in calls_of(trajectory, "calc", "expression")]
    return 0.4 if gold(task) in values else 0.1 if values else 0.0


async def check_rule(task: Task, trajectory: Trajectory, context: TierContext) -> Judgement:
    """Compares."""
    return compare_answer("rule", trajectory, gold(task), partial(task, trajectory))


TIERS = {"format": IntegerFormat(partial), "rule": check_rule}
