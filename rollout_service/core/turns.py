"""What goes into an engine and what comes out: a sequence to continue, a turn as sampled."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from journeyman.records import Task


class Stop(StrEnum):
    """Why an assistant turn ended."""

    END = "end"
    """The policy said `<|end|>`, which is the turn's last token."""
    OVERFLOW = "overflow"
    """Cut at max_turn_tokens."""
    FULL = "full"
    """Cut at max_tokens of the whole sequence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewSequence:
    """A conversation that the engine is to continue."""

    sequence_id: int
    """Unique in the life of the worker."""
    prompt_ids: tuple[int, ...]
    """Sequences opened in one call with equal prompts share the work on it."""
    seed: int
    """Fixes what is sampled, whatever shares the batch."""
    temperature: float
    max_turn_tokens: int
    max_tokens: int
    task: Task
    """For engines that play a script; others ignore it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishedTurn:
    """One assistant turn as sampled. Its three sequences have one length, at least 1."""

    ids: Sequence[int]
    logprobs: Sequence[float]
    """At temperature 1 over the allowed tokens, under the weights that sampled the token."""
    versions: Sequence[int]
    """PolicyVersion.pack() of those weights, token by token."""
    stop: Stop
