"""The one tool, `grep KEY`: searches the text of the prompt."""

from journeyman.boxes.port import Box
from journeyman.packs.calls import BAD_CALL, read_arguments
from journeyman.packs.port import ToolResult
from journeyman.records import Task, TaskFile, ToolCall

from .tasks import read_pairs


class SearchTools:
    """Tools of one episode."""

    def __init__(self, task: Task) -> None:
        self._pairs = read_pairs(task)

    async def call(self, call: ToolCall) -> ToolResult:
        arguments = read_arguments(call, "key")
        if arguments is None:
            return BAD_CALL
        value = self._pairs.get(arguments[0])
        return ToolResult(observation="none" if value is None else str(value))

    async def final_files(self) -> tuple[TaskFile, ...]:
        return ()


def open_tools(task: Task, box: Box | None) -> SearchTools:
    """Tools of a new episode."""
    return SearchTools(task)
