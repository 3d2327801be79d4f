"""The one tool, `calc EXPRESSION`."""

from journeyman.boxes.port import Box
from journeyman.packs.arithmetic import evaluate
from journeyman.packs.calls import BAD_CALL, read_arguments
from journeyman.packs.port import ToolResult
from journeyman.records import Task, TaskFile, ToolCall


class Calculator:
    """Tools of one episode."""

    async def call(self, call: ToolCall) -> ToolResult:
        arguments = read_arguments(call, "expression")
        if arguments is None:
            return BAD_CALL
        value = evaluate(arguments[0])
        return ToolResult(observation="error" if value is None else str(value))

    async def final_files(self) -> tuple[TaskFile, ...]:
        return ()


def open_tools(task: Task, box: Box | None) -> Calculator:
    """Tools of a new episode."""
    return Calculator()
