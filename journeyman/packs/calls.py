"""Reading tool calls and run results, for tools.py and ladder.py of packs.

Arguments come from the model, so nothing about them is trusted: a wrong shape is None, never an exception.
"""

import json

from journeyman.boxes.port import BoxFailure, Ending, RunResult
from journeyman.packs.port import ToolResult
from journeyman.records import ToolCall, Trajectory

BAD_CALL = ToolResult(observation="bad call")

_TIRED = {
    Ending.CPU_TIMEOUT: "timeout",
    Ending.WALL_TIMEOUT: "timeout",
    Ending.OUT_OF_MEMORY: "out of memory",
    Ending.OUTPUT_LIMIT: "too much output",
    Ending.DISK_FULL: "disk full",
    Ending.TOO_MANY_PROCESSES: "too many processes",
}


def read_arguments(call: ToolCall, *names: str) -> tuple[str, ...] | None:
    """The named arguments as text; None where one is missing or is neither text nor a whole number."""
    try:
        document = json.loads(call.arguments_json)
    except (ValueError, RecursionError):
        return None
    if not isinstance(document, dict):
        return None
    values = tuple(document.get(name) for name in names)
    if any(type(value) not in (str, int) for value in values):
        return None
    return tuple(str(value) for value in values)


def calls_of(trajectory: Trajectory, name: str, *arguments: str) -> list[tuple[str, ...]]:
    """Arguments of every well-formed call of one tool, in order."""
    calls = (step.call for step in trajectory.steps)
    read = (read_arguments(call, *arguments) for call in calls if call is not None and call.name == name)
    return [values for values in read if values is not None]


def stdout_of(result: RunResult) -> str | None:
    """What the program printed; None where it did not exit normally with code 0. A wall time-out on a machine that did not pass its
    control is no evidence about the program: BoxFailure."""
    if result.ending is Ending.INFRA_ERROR:
        raise BoxFailure(result.infra_reason or "infrastructure error")
    if result.ending is Ending.WALL_TIMEOUT and not result.control_passed:
        raise BoxFailure("wall time-out without a passing control")
    if result.ending is not Ending.EXITED or result.exit_code != 0:
        return None
    return result.stdout.decode("utf-8", "replace")


def why_it_ended(result: RunResult) -> str:
    """One or two words for the model about a program that did not finish."""
    return _TIRED.get(result.ending, "crash")
