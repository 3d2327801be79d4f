"""format: every configuration file is there and reads as KEY=VALUE. rule: only the wanted key changed. execute: a check of its own, in a fresh
box, reads the wanted value from the files there.

The wanted value is compared outside the box, and the check's own file comes from the task, never from the episode.
"""

import json

from journeyman.packs.calls import calls_of, stdout_of
from journeyman.packs.judgement import fail, solved, undecided
from journeyman.packs.port import Judgement, TierContext
from journeyman.records import Task, TaskFile, Trajectory

from .tools import read_verification

READ_VALUE = """
import json, sys
with open(sys.argv[1], encoding="utf-8") as file:
    pairs = [line.strip().partition("=") for line in file]
print(json.dumps([value for key, _, value in pairs if key == sys.argv[2]]))
"""
MAX_FILE_BYTES = 1000

Configs = dict[str, dict[str, str]]


async def check_format(task: Task, trajectory: Trajectory, context: TierContext) -> Judgement:
    """Reads the files of the outcome."""
    if set(_read(trajectory.final_files)) != set(_read(task.files)):
        return fail("format", "a configuration file is missing or cannot be read", _partial(task, trajectory))
    return undecided("format", "all files read")


async def check_rule(task: Task, trajectory: Trajectory, context: TierContext) -> Judgement:
    """Compares before and after."""
    verification = read_verification(task)
    before, after = _read(task.files), _read(trajectory.final_files)
    place = f"{verification['file']}.cfg"
    if before == after:
        return fail("rule", "nothing was changed", _partial(task, trajectory))
    before.get(place, {}).pop(verification["key"], None)
    after.get(place, {}).pop(verification["key"], None)
    if before != after:
        return fail("rule", "something else was changed", _partial(task, trajectory))
    return undecided("rule", "only the wanted key was changed")


async def check_execution(task: Task, trajectory: Trajectory, context: TierContext) -> Judgement:
    """Reads the value in a fresh box."""
    if context.box is None:
        raise ValueError("terminal.shell: execute needs a box")
    verification = read_verification(task)
    result = await context.box.run_python(READ_VALUE, [f"{verification['file']}.cfg", verification["key"]])
    stdout = stdout_of(result)
    if stdout is not None and stdout.strip() == json.dumps([str(verification["want"])]):
        return solved("execute", f"{verification['key']} is {verification['want']}")
    return fail("execute", f"the check read {(stdout or '').strip()[:40]}", _partial(task, trajectory))


TIERS = {"format": check_format, "rule": check_rule, "execute": check_execution}


def _read(files: tuple[TaskFile, ...]) -> Configs:
    """Pairs of each configuration file that can be read."""
    configs: Configs = {}
    for file in files:
        if not file.path.endswith(".cfg") or len(file.content) > MAX_FILE_BYTES:
            continue
        lines = file.content.decode("utf-8", "replace").splitlines()
        if all("=" in line for line in lines):
            configs[file.path] = dict(line.split("=", 1) for line in lines)
    return configs


def _partial(task: Task, trajectory: Trajectory) -> float:
    """0.1 for running the check, 0.2 for setting the right key, 0.25 for finding it."""
    key = read_verification(task)["key"]
    if (key,) in calls_of(trajectory, "grep", "key"):
        return 0.25
    if any(call[0] == key for call in calls_of(trajectory, "set", "key")):
        return 0.2
    return 0.1 if calls_of(trajectory, "test") else 0.0
