"""The turn protocol: what each kind of turn leads to, and who answers for the ending."""

import json
from collections.abc import Iterator
from dataclasses import replace

import pytest

from journeyman.boxes.port import Box, BoxFailure
from journeyman.chat.compact import CALL
from journeyman.episodes.demonstration import run_now
from journeyman.episodes.episode import Episode, Turn
from journeyman.packs.load import load_pack
from journeyman.packs.port import ToolResult
from journeyman.records import Attribution, Limits, Split, Task, TaskFile, ToolCall


class ScriptedTools:
    """Answers with what the argument asks for."""

    async def call(self, call: ToolCall) -> ToolResult:
        wish = json.loads(call.arguments_json)["expression"]
        if wish == "fail":
            raise BoxFailure("gone")
        cpu_s = 3.0 if wish == "burn" else 0.0
        return ToolResult(observation=f"{wish} {'x' * 100}", ends_episode=wish == "win", cpu_s=cpu_s)

    async def final_files(self) -> tuple[TaskFile, ...]:
        return (TaskFile(path="a", content=b"b"),)


class ScriptedPack:
    """math.tool with other tools."""

    def __init__(self) -> None:
        self.spec = load_pack("math.tool").spec

    def open_tools(self, task: Task, box: Box | None) -> ScriptedTools:
        return ScriptedTools()


@pytest.fixture
def task() -> Iterator[Task]:
    found = next(load_pack("math.tool").tasks(Split.TRAIN, 1, 0))
    return replace(found, limits=Limits(max_turns=3, max_turn_tokens=8, max_tokens=99, tool_cpu_s=5.0))


def episode(task: Task) -> Episode:
    return Episode(ScriptedPack(), task, None)  # type: ignore[arg-type]  # as much of a pack as an episode looks at


def say(played: Episode, text: str | None, overflow: bool = False) -> Turn:
    return run_now(played.advance(text, overflow))


def test_a_call_is_answered_and_cut(task: Task) -> None:
    played = episode(task)
    assert played.prompt_messages == task.messages
    turn = say(played, f"{CALL}calc 1+1")
    assert turn.observation == ("1+1 " + "x" * 100)[:40]
    assert turn.call == ToolCall(name="calc", arguments_json='{"expression": "1+1"}')
    assert (turn.ending, turn.attribution) == (None, None)


def test_a_message_ends_it(task: Task) -> None:
    played = episode(task)
    turn = say(played, " 42 ")
    assert (turn.ending, turn.attribution, turn.observation) == ("answered", Attribution.POLICY, None)
    assert played.response == "42"
    with pytest.raises(RuntimeError):
        say(played, "again")


def test_work_done_ends_it(task: Task) -> None:
    played = episode(task)
    turn = say(played, f"{CALL}calc win")
    assert (turn.ending, turn.attribution, turn.observation) == ("solved", Attribution.POLICY, None)
    assert played.response is None
    assert run_now(played.final_files()) == (TaskFile(path="a", content=b"b"),)


def test_turns_are_a_budget_and_malformed_calls_cost_one(task: Task) -> None:
    played = episode(task)
    assert say(played, f"{CALL}nothing").observation == "bad call"
    assert say(played, f"{CALL}calc").observation == "bad call"
    turn = say(played, f"{CALL}calc 1")
    assert (turn.ending, turn.attribution, turn.observation) == ("turns_spent", Attribution.BUDGET, None)
    assert turn.call is not None
    assert played.num_turns == 3


def test_tool_cpu_is_a_budget(task: Task) -> None:
    played = episode(task)
    assert say(played, f"{CALL}calc burn").ending is None
    turn = say(played, f"{CALL}calc burn")
    assert (turn.ending, turn.attribution) == ("tool_cpu_spent", Attribution.BUDGET)


def test_a_turn_too_long_is_the_models_doing(task: Task) -> None:
    turn = say(episode(task), f"{CALL}calc 1", overflow=True)
    assert (turn.ending, turn.attribution, turn.call) == ("turn_overflow", Attribution.POLICY, None)


def test_a_box_failure_is_no_ending(task: Task) -> None:
    with pytest.raises(BoxFailure):
        say(episode(task), f"{CALL}calc fail")
