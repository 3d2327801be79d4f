"""The tool-call text of small models: `<|call|>NAME ARG1 ARG2 ...`, or a plain final message that ends the episode.

Called by episodes (parse) and demonstrations (render_call). Arguments are positional in the order of the schema's properties and
separated by white space; the last one takes the rest of the line. parse(render_call(c)) == c for arguments without white space,
except in the last one.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from journeyman.records import ToolCall, ToolSpec

CALL = "<|call|>"

_INTEGER = re.compile(r"[+-]?[0-9]{1,18}")


@dataclass(frozen=True, slots=True, kw_only=True)
class FinalMessage:
    """The model is done; text is its response."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Malformed:
    """A call was begun but none of the tools can take it."""

    reason: str


def parse(text: str, tools: Sequence[ToolSpec]) -> ToolCall | FinalMessage | Malformed:
    """Reads one assistant turn, given without its closing <|end|>."""
    stripped = text.strip()
    if not stripped.startswith(CALL):
        return Malformed(reason="call inside a message") if CALL in stripped else FinalMessage(text=stripped)
    body = stripped[len(CALL) :].strip()
    if CALL in body:
        return Malformed(reason="two calls in one turn")
    name, _, rest = body.partition(" ")
    tool = next((tool for tool in tools if tool.name == name), None)
    if tool is None:
        return Malformed(reason="unknown tool")
    arguments = _read_arguments(rest, _parameters(tool.parameters_json))
    if arguments is None:
        return Malformed(reason="wrong arguments")
    return ToolCall(name=name, arguments_json=json.dumps(arguments))


def render_call(call: ToolCall, tools: Sequence[ToolSpec]) -> str:
    """The text that parses into the call. KeyError for a tool that is not on offer or an argument that is missing."""
    by_name = {tool.name: tool for tool in tools}
    arguments: dict[str, object] = json.loads(call.arguments_json)
    words = [call.name]
    words.extend(str(arguments[name]) for name, _ in _parameters(by_name[call.name].parameters_json))
    return CALL + " ".join(words)


@lru_cache(maxsize=1024)
def _parameters(parameters_json: str) -> tuple[tuple[str, str], ...]:
    """(name, JSON type) of each argument, in positional order."""
    schema = json.loads(parameters_json)
    return tuple((name, str(item.get("type", "string"))) for name, item in schema.get("properties", {}).items())


def _read_arguments(rest: str, parameters: tuple[tuple[str, str], ...]) -> dict[str, str | int] | None:
    """None where their number or a type is wrong."""
    words = rest.split(None, len(parameters) - 1) if parameters else rest.split()
    if len(words) != len(parameters):
        return None
    arguments: dict[str, str | int] = {}
    for word, (name, kind) in zip(words, parameters, strict=True):
        if kind == "integer":
            if not _INTEGER.fullmatch(word):
                return None
            arguments[name] = int(word)
        else:
            arguments[name] = word.strip()
    return arguments
