"""What the rollout worker needs from outside, named by need. Implementations are in engines/ and adapters/."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from journeyman.boxes.port import Box
from journeyman.records import Attribution, Message, PolicyRef, TaskFile
from rollout_service.core.records import Attempt, Grant, GroupLease, Outcome
from rollout_service.core.turns import FinishedTurn, NewSequence


class Chat(Protocol):
    """How a policy's conversations become tokens; journeyman.chat.tokenizer.ChatTokenizer is one."""

    end_id: int

    def encode_prompt(self, messages: Sequence[Message]) -> list[int]: ...

    def encode_observation(self, text: str) -> list[int]: ...

    def decode(self, ids: Sequence[int]) -> str: ...


class EngineFailure(Exception):
    """The engine failed: no evidence about the model. Ends the rollout with Attribution.ENGINE."""


class PolicyRefused(Exception):
    """The weights are not what their manifest says; the engine serves nothing for them. The message says which check failed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineFigures:
    """How the engine is doing."""

    sampled_tokens: int
    """Since the process started."""
    tokens_per_s: float
    """Sampled, over the last five seconds."""
    entropy: float
    """Mean of the sampling distribution over the last five seconds, nats; 0 before any."""


class Engine(Protocol):
    """Generates turns for many sequences at once. Called from the event loop; futures resolve there, those of one tick together."""

    @property
    def chat(self) -> Chat:
        """Of the policy that is loaded; PRECONDITION before the first."""
        ...

    @property
    def max_tokens(self) -> int:
        """Longest sequence it can hold."""
        ...

    async def load(self, policy: PolicyRef, *, is_pinned: bool) -> float:
        """Verifies the policy and swaps to it between two ticks; open sequences go on with the new weights. Returns for how many seconds
        generation stood still. is_pinned says that nothing trains meanwhile. PolicyRefused when a check fails, JourneymanError when the
        store does."""
        ...

    def open(self, sequences: Sequence[NewSequence]) -> list[asyncio.Future[FinishedTurn]]:
        """Starts sequences; each future gives the first turn or EngineFailure."""
        ...

    def go_on(self, sequence_id: int, ids: Sequence[int]) -> asyncio.Future[FinishedTurn]:
        """Appends ids (an observation) to a sequence whose turn has ended and starts its next turn."""
        ...

    def leave(self, sequence_ids: Sequence[int]) -> None:
        """Forgets sequences, in whatever state; unknown ones are ignored."""
        ...

    def figures(self) -> EngineFigures: ...

    async def close(self) -> None:
        """Stops generating; open futures fail."""
        ...


class Leases(Protocol):
    """The scheduler, as a worker sees it."""

    async def lease(
        self, *, max_rollouts: int, loaded: PolicyRef | None, is_idle: bool, slot_seconds: Mapping[str, float]
    ) -> Grant: ...

    async def renew(self, attempts: Sequence[Attempt]) -> tuple[Attempt, ...]:
        """Extends leases; returns those that are no longer this worker's."""
        ...

    async def give_back(self, attempts: Sequence[Attempt], attribution: Attribution | None, detail: str) -> None:
        """Returns leases; attribution None means unplayed, which costs no retry."""
        ...


class BoxSource(Protocol):
    """Where boxes come from."""

    @property
    def isolation(self) -> str:
        """What the sandbox reported; empty before the first box."""
        ...

    async def open_group(self, files: Sequence[TaskFile], count: int, *, key: str) -> "Sequence[Box]":
        """count equal boxes that hold the files. BoxFailure when there are none to be had."""
        ...

    async def destroy(self, boxes: "Sequence[Box]") -> None:
        """Gives boxes back; failures are left to their time to live."""
        ...


class PolicySource(Protocol):
    """Which policies have been published."""

    def newest(self, run_id: str) -> PolicyRef | None: ...

    async def changed(self) -> None:
        """Returns after the next publication of any run."""
        ...


class Recorder(Protocol):
    """Where results go."""

    async def record(self, lease: GroupLease, outcomes: Sequence[Outcome]) -> None:
        """Stores the trajectories in one object, then publishes one fact about all members. Repeating it repeats the same fact."""
        ...

    async def alert(self, name: str, text: str) -> None:
        """Says that a promise was broken."""
        ...
