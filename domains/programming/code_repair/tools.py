"""The one tool, `edit EXPRESSION`: writes solution.py in the box and runs the shown tests on it there.

The program in the box only says what f returned; whether that is right is decided outside, where the expected values are.
"""

import json
from dataclasses import dataclass
from typing import TypedDict

from journeyman.boxes.port import Box, RunResult
from journeyman.packs.calls import BAD_CALL, read_arguments, stdout_of, why_it_ended
from journeyman.packs.port import ToolResult
from journeyman.records import Task, TaskFile, ToolCall

from .tasks import NUM_SHOWN, failing_line, source

SOLUTION = "solution.py"
MAX_EXPRESSION_CHARS = 60

RUN_CASES = """
import json, sys

def outcome(function, arguments):
    try:
        value = function(*arguments)
        return ["value", value] if type(value) is int and abs(value) < 10**15 else ["other", repr(value)[:12]]
    except NameError as error:
        return ["error", "NameError " + str(error.name)]
    except Exception as error:
        return ["error", type(error).__name__]

def outcomes(all_arguments):
    try:
        with open("solution.py", encoding="utf-8") as file:
            text = file.read()
        namespace = {}
        exec(text, namespace)
        function = namespace["f"]
    except Exception as error:
        return [["error", type(error).__name__] for _ in all_arguments]
    return [outcome(function, arguments) for arguments in all_arguments]

if len(sys.argv) > 2:
    with open("solution.py", "w", encoding="utf-8") as file:
        file.write(sys.argv[2])
print(json.dumps(outcomes(json.loads(sys.argv[1]))))
"""


class Verification(TypedDict):
    """verification_json."""

    parameters: str
    good: str
    bug: str
    cases: list[tuple[list[int], int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseOutcome:
    """What f did with the arguments of one case."""

    is_right: bool
    line: str
    """As shown to the model where wrong."""


def read_outcomes(cases: list[tuple[list[int], int]], result: RunResult) -> list[CaseOutcome]:
    """Compares what the program printed with what is expected. Output that the program was made to garble counts as wrong."""
    stdout = stdout_of(result)
    said = _read(stdout, len(cases)) if stdout is not None else [("error", why_it_ended(result))] * len(cases)
    outcomes = []
    for (arguments, expected), (kind, value) in zip(cases, said, strict=True):
        is_right = kind == "value" and type(value) is int and value == expected
        got = str(value) if kind == "error" else f"got {value}"
        outcomes.append(CaseOutcome(is_right=is_right, line=failing_line(arguments, expected, got)))
    return outcomes


def _read(stdout: str, count: int) -> list[tuple[object, object]]:
    try:
        document = json.loads(stdout)
        pairs = [(kind, value) for kind, value in document]
    except (ValueError, TypeError, RecursionError):
        pairs = []
    return pairs if len(pairs) == count else [("error", "bad output")] * count


class RepairTools:
    """Tools of one episode."""

    def __init__(self, task: Task, box: Box) -> None:
        self._task = task
        self._box = box
        verification: Verification = json.loads(task.verification_json)
        self._parameters = verification["parameters"]
        self._cases = verification["cases"][:NUM_SHOWN]
        self._arguments = json.dumps([arguments for arguments, _ in self._cases])
        self._has_edited = False

    async def call(self, call: ToolCall) -> ToolResult:
        arguments = read_arguments(call, "expression")
        if arguments is None:
            return BAD_CALL
        if len(arguments[0]) > MAX_EXPRESSION_CHARS or "\0" in arguments[0]:
            return ToolResult(observation="too long")
        self._has_edited = True
        text = source(self._parameters, arguments[0])
        result = await self._box.run_python(RUN_CASES, [self._arguments, text])
        wrong = [outcome.line for outcome in read_outcomes(self._cases, result) if not outcome.is_right]
        return ToolResult(observation=wrong[0] if wrong else "ok", ends_episode=not wrong, cpu_s=result.cpu_s)

    async def final_files(self) -> tuple[TaskFile, ...]:
        if not self._has_edited:
            return self._task.files
        found = await self._box.read_files([SOLUTION])
        return tuple(TaskFile(path=path, content=content) for path, content in found.items())


def open_tools(task: Task, box: Box | None) -> RepairTools:
    """Tools of a new episode."""
    if box is None:
        raise ValueError("code.repair needs a box")
    return RepairTools(task, box)
