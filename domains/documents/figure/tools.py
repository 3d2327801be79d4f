"""`get ROW QUARTER` reads a cell of the statement; `calc EXPRESSION` computes."""

from journeyman.boxes.port import Box
from journeyman.packs.arithmetic import evaluate
from journeyman.packs.calls import BAD_CALL, read_arguments
from journeyman.packs.port import ToolResult
from journeyman.records import Task, TaskFile, ToolCall

from .tasks import read_table


class StatementTools:
    """Tools of one episode."""

    def __init__(self, task: Task) -> None:
        self._table = read_table(task)

    async def call(self, call: ToolCall) -> ToolResult:
        if call.name == "get" and (cell := read_arguments(call, "row", "quarter")):
            row, quarter = cell
            value = self._table.get((row, quarter))
            return ToolResult(observation="no cell" if value is None else str(value))
        if call.name == "calc" and (arguments := read_arguments(call, "expression")):
            result = evaluate(arguments[0])
            return ToolResult(observation="error" if result is None else str(result))
        return BAD_CALL

    async def final_files(self) -> tuple[TaskFile, ...]:
        return ()


def open_tools(task: Task, box: Box | None) -> StatementTools:
    """Tools of a new episode."""
    return StatementTools(task)
