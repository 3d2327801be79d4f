"""The compact call format: what is rendered is parsed back; everything else is a message or a malformed call, never an exception."""

import json

from hypothesis import given
from hypothesis import strategies as st

from journeyman.chat.compact import CALL, FinalMessage, Malformed, parse, render_call
from journeyman.packs.procedural import tool
from journeyman.records import ToolCall

TOOLS = (
    tool("check", ""),
    tool("calc", "", expression="string"),
    tool("set", "", file="string", key="string", value="integer"),
)
words = st.text(st.characters(codec="ascii", categories=("L", "N", "P", "S")), min_size=1).filter(
    lambda word: CALL not in word
)


@given(file=words, key=words, value=st.integers(-(10**17), 10**17))
def test_a_rendered_call_is_parsed_back(file: str, key: str, value: int) -> None:
    call = ToolCall(name="set", arguments_json=json.dumps({"file": file, "key": key, "value": value}))
    assert parse(render_call(call, TOOLS), TOOLS) == call


@given(st.lists(words, min_size=1).map(" ".join))
def test_the_last_argument_takes_the_rest(expression: str) -> None:
    call = ToolCall(name="calc", arguments_json=json.dumps({"expression": expression}))
    assert render_call(call, TOOLS) == f"{CALL}calc {expression}"
    assert parse(render_call(call, TOOLS), TOOLS) == call


@given(st.text())
def test_any_text_is_something(text: str) -> None:
    parsed = parse(text, TOOLS)
    assert isinstance(parsed, FinalMessage | ToolCall | Malformed)
    assert isinstance(parse(CALL + text, TOOLS), ToolCall | Malformed)
    if CALL not in text:
        assert parsed == FinalMessage(text=text.strip())


def test_wrong_calls_are_malformed() -> None:
    wrong = [
        "",
        "nothing",
        "calc",
        "check now",
        "set a b",
        "set a b c",
        "set a b 1 2",
        "calc 1<|call|>calc 2",
        "Calc 1",
    ]
    for text in wrong:
        assert isinstance(parse(CALL + text, TOOLS), Malformed), text
    assert isinstance(parse(f"well {CALL}calc 1", TOOLS), Malformed)


def test_white_space_around_arguments_does_not_count() -> None:
    assert parse(f" {CALL} calc   1 + 2 \n", TOOLS) == ToolCall(name="calc", arguments_json='{"expression": "1 + 2"}')
    assert parse(f"{CALL}check ", TOOLS) == ToolCall(name="check", arguments_json="{}")
