"""format: the final message is one whole number. rule: it is the figure, computed here from the statement itself."""

import json

from journeyman.packs.arithmetic import evaluate
from journeyman.packs.calls import calls_of
from journeyman.packs.judgement import IntegerFormat, compare_answer
from journeyman.packs.port import Judgement, TierContext, UnjudgeableTask
from journeyman.records import Task, Trajectory

from .tasks import read_table


def asked_cells(task: Task) -> list[tuple[str, str]]:
    """The two cells of the question, in order."""
    return [(row, quarter) for row, quarter in json.loads(task.verification_json)["cells"]]


def gold(task: Task) -> int:
    """The right figure."""
    table = read_table(task)
    try:
        first, second = (table[cell] for cell in asked_cells(task))
    except KeyError as error:
        raise UnjudgeableTask(f"the statement has no cell {error}") from error
    return first + second if json.loads(task.verification_json)["operation"] == "sum" else first - second


def partial(task: Task, trajectory: Trajectory) -> float:
    """0.1 for each of the two cells looked up; 0.5 where the right figure was computed."""
    figure = gold(task)
    values = [evaluate(expression) for (expression,) in calls_of(trajectory, "calc", "expression")]
    if figure in values:
        return 0.5
    return 0.1 * len(set(calls_of(trajectory, "get", "row", "quarter")) & set(asked_cells(task)))


async def check_rule(task: Task, trajectory: Trajectory, context: TierContext) -> Judgement:
    """Compares."""
    return compare_answer("rule", trajectory, gold(task), partial(task, trajectory))


TIERS = {"format": IntegerFormat(partial), "rule": check_rule}
