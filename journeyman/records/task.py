"""Task: one verifiable piece of work, made by a domain pack or a client, immutable."""

from dataclasses import dataclass
from enum import StrEnum


class Split(StrEnum):
    """Which pool of instances a task was drawn from; the pools of a domain never overlap."""

    TRAIN = "train"
    HELDOUT = "heldout"


class Role(StrEnum):
    """Who said a message."""

    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One message of a conversation."""

    role: Role
    content: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSpec:
    """A tool that the model may call."""

    name: str
    description: str
    parameters_json: str
    """JSON Schema of the arguments (an object schema); the order of its properties is the positional order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskFile:
    """A file that the episode starts with."""

    path: str
    """Relative, forward slashes, no "..". """
    content: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What the model may spend on one rollout; spending it is evidence about the model."""

    max_turns: int
    max_turn_tokens: int
    """Sampled tokens in one assistant turn."""
    max_tokens: int
    """Prompt, sampled and observation tokens of the whole rollout."""
    tool_cpu_s: float
    """CPU seconds of all tool calls together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One verifiable piece of work."""

    task_id: str
    """domain/split/level/seed for procedural tasks, else the submitter's; unique in a run."""
    domain: str
    domain_ref: str
    """name@version+digest of the pack that made it; a service holding another one refuses the task."""
    split: Split
    level: int
    """1 is the easiest."""
    seed: int
    messages: tuple[Message, ...]
    tools: tuple[ToolSpec, ...]
    files: tuple[TaskFile, ...]
    limits: Limits
    verification_json: str
    """Gold and checks, a JSON document owned by the domain's ladder and tools; never shown to the model."""
    tags: tuple[str, ...] = ()
