"""What a domain pack offers. Services and the one-file loop see domains only through this.

A pack is a folder domains/<family>/<name>/ with domain.toml, tasks.py, tools.py, ladder.py, optionally demos.py, and README.md.
journeyman.packs.load reads it; nothing in a pack imports a service.
"""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from journeyman.boxes.port import Box
from journeyman.records import Limits, Split, Task, TaskFile, TierResult, ToolCall, Trajectory


@dataclass(frozen=True, slots=True, kw_only=True)
class RewardRule:
    """How verdicts of a group become rewards (journeyman.rewards); outcome first, always."""

    turn_cost: float
    """Taken off a passing member's reward for each assistant turn."""
    partial_weight: float
    """Weight of partial credit among failing members; 0..0.5."""
    all_failed_trains: bool
    """Whether partial credit may train a group in which nobody passed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DomainSpec:
    """domain.toml."""

    name: str
    version: int
    family: str
    summary: str
    """One line."""
    levels: tuple[int, ...]
    limits: Limits
    uses_box: bool
    """Whether its tools or ladder run programs in a sandbox."""
    outcome_files: tuple[str, ...]
    """Files stored as the outcome; empty where the response is the outcome."""
    reward: RewardRule
    tiers: tuple[str, ...]
    """Names of the ladder's tiers, cheapest first."""
    observation_chars: int
    """Longest observation shown to the model; the rest is cut."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult:
    """What a tool call gives back."""

    observation: str
    """One compact line or text, from the real output."""
    ends_episode: bool = False
    """True when the work is done (for instance the check passes) and no further turn is wanted."""
    cpu_s: float = 0.0
    """CPU seconds spent in a box, charged to the model's tool budget."""


class ToolSession(Protocol):
    """The tools of one episode, with whatever state they keep."""

    async def call(self, call: ToolCall) -> ToolResult:
        """Runs a call whose name is among the task's tools and whose arguments are a JSON object. Bad arguments are the model's
        doing and come back as an observation ("bad call ..."), never as an exception. BoxFailure passes through."""
        ...

    async def final_files(self) -> tuple[TaskFile, ...]:
        """The spec's outcome_files as they are now (read from the box where it has one)."""
        ...


class Demonstrator(Protocol):
    """A scripted, deliberately imperfect player used for cold start."""

    def act(self, observation: str | None) -> ToolCall | str:
        """Next move after an observation (None at the start): a call, or the text of a final message."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class TierContext:
    """What a tier may use besides the task and the trajectory."""

    box: Box | None
    """A fresh box that already holds the task's files overlaid with the trajectory's final_files; None where the domain uses none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """What a tier returns: its result, and partial credit known so far."""

    result: TierResult
    partial: float = 0.0
    """0..1; orders failures inside a group."""


class UnjudgeableTask(Exception):
    """The task itself cannot be judged (bad gold, flaky test): verdict bad_task, quarantined."""


class DomainPack(Protocol):
    """A loaded pack."""

    @property
    def spec(self) -> DomainSpec: ...

    @property
    def ref(self) -> str:
        """name@version+digest, where digest covers every file of the pack."""
        ...

    def tasks(self, split: Split, level: int, seed: int) -> Iterator[Task]:
        """Endless, repeatable under (split, level, seed); train and held-out never overlap."""
        ...

    def open_tools(self, task: Task, box: Box | None) -> ToolSession:
        """Tools of a new episode; box holds the task's files already, and is None where the domain uses none."""
        ...

    async def judge(self, tier: str, task: Task, trajectory: Trajectory, context: TierContext) -> Judgement:
        """Runs one tier. Raises UnjudgeableTask; any other exception is the verifier's failure."""
        ...

    def demonstrator(self, task: Task, rng: random.Random) -> Demonstrator:
        """A scripted player for the task. NOT_FOUND JourneymanError where the pack has none."""
        ...

    def vocabulary_texts(self) -> Sequence[str]:
        """Texts typical of the domain, for training a tokenizer."""
        ...
