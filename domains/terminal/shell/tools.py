"""`ls`, `test`, `grep KEY` and `set FILE KEY VALUE`: each runs one program in the box, on the real files there.

Names of files are only ever looked up in the folder's listing, so no argument can lead out of it or to the check's own file.
"""

import json
from typing import TypedDict

from journeyman.boxes.port import Box
from journeyman.packs.calls import BAD_CALL, read_arguments, stdout_of, why_it_ended
from journeyman.packs.port import ToolResult
from journeyman.records import Task, TaskFile, ToolCall

SHELL = """
import os, sys

def names():
    return sorted(name[:-4] for name in os.listdir(".") if name.endswith(".cfg"))

def read(name):
    with open(name + ".cfg", encoding="utf-8") as file:
        return dict(line.rstrip("\\n").split("=", 1) for line in file)

def test():
    with open("expected.txt", encoding="utf-8") as file:
        name, key, want, names_file = file.read().split()
    if read(name).get(key) == want:
        return "pass"
    return "fail " + key + " want " + want + (" in " + name if names_file == "1" else "")

def grep(key):
    found = [name + " " + key + " " + config[key] for name in names() if key in (config := read(name))]
    return found[0] if found else "none"

def set_value(name, key, value):
    if name not in names() or key not in (config := read(name)):
        return "no key"
    config[key] = value
    with open(name + ".cfg", "w", encoding="utf-8") as file:
        file.writelines(key + "=" + value + "\\n" for key, value in config.items())
    return test()

verbs = {"ls": lambda: " ".join(names()), "test": test, "grep": grep, "set": set_value}
print(verbs[sys.argv[1]](*sys.argv[2:]))
"""

_ARGUMENTS: dict[str, tuple[str, ...]] = {"ls": (), "test": (), "grep": ("key",), "set": ("file", "key", "value")}


class Verification(TypedDict):
    """verification_json."""

    file: str
    key: str
    want: int
    files: list[str]
    names_file: bool


class ShellTools:
    """Tools of one episode."""

    def __init__(self, task: Task, box: Box) -> None:
        self._configs = tuple(file for file in task.files if file.path.endswith(".cfg"))
        self._box = box
        self._has_written = False

    async def call(self, call: ToolCall) -> ToolResult:
        arguments = read_arguments(call, *_ARGUMENTS[call.name])
        if arguments is None or any("\0" in argument for argument in arguments):
            return BAD_CALL
        self._has_written |= call.name == "set"
        result = await self._box.run_python(SHELL, [call.name, *arguments])
        stdout = stdout_of(result)
        line = stdout.strip() if stdout is not None else why_it_ended(result)
        return ToolResult(observation=line, ends_episode=call.name == "set" and line == "pass", cpu_s=result.cpu_s)

    async def final_files(self) -> tuple[TaskFile, ...]:
        if not self._has_written:
            return self._configs
        found = await self._box.read_files([file.path for file in self._configs])
        return tuple(TaskFile(path=path, content=content) for path, content in sorted(found.items()))


def open_tools(task: Task, box: Box | None) -> ShellTools:
    """Tools of a new episode."""
    if box is None:
        raise ValueError("terminal.shell needs a box")
    return ShellTools(task, box)


def read_verification(task: Task) -> Verification:
    """The task's verification."""
    verification: Verification = json.loads(task.verification_json)
    return verification
