"""ScriptedEngine: the engine port without a model: every sequence is played by a script. For tests of everything around the model.

Its tokens are real where the policy has a tokenizer, its log-probabilities are made up. Repeatable under (task, seed).
"""

import asyncio
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from journeyman.chat.compact import render_call
from journeyman.chat.tokenizer import ChatTokenizer
from journeyman.errors import ErrorCode, JourneymanError
from journeyman.objects.port import Objects
from journeyman.packs.load import load_pack
from journeyman.records import PolicyRef, Task
from rollout_service.core.turns import FinishedTurn, NewSequence, Stop
from rollout_service.engines.rate import Rate
from rollout_service.ports import Chat, EngineFailure, EngineFigures

LOGPROB = -0.5
END = "<|end|>"
TOOL = "<|tool|>"


class Player(Protocol):
    """Says something for each observation (None at the start), in the compact call format. May raise EngineFailure."""

    def __call__(self, observation: str | None) -> str: ...


def demonstrator(task: Task, seed: int) -> Player:
    """The scripted player that the task's domain ships."""
    script = load_pack(task.domain).demonstrator(task, random.Random(f"{task.task_id}/{seed}"))

    def say(observation: str | None) -> str:
        move = script.act(observation)
        return move if isinstance(move, str) else render_call(move, task.tools)

    return say


@dataclass(slots=True, kw_only=True)
class Script:
    """One sequence in play."""

    sequence: NewSequence
    say: Player
    length: int


class ScriptedEngine:
    """See the Engine port. turn_s is how long each turn takes."""

    def __init__(
        self,
        objects: Objects,
        *,
        max_tokens: int,
        turn_s: float,
        players: Callable[[Task, int], Player] = demonstrator,
    ) -> None:
        self._objects, self._max_tokens, self._turn_s, self._players = objects, max_tokens, turn_s, players
        self._scripts: dict[int, Script] = {}
        self._futures: dict[int, asyncio.Future[FinishedTurn]] = {}
        self._rate = Rate()
        self._chat: ChatTokenizer | None = None
        self._version = 0

    @property
    def chat(self) -> Chat:
        """Tokenizer of the policy that is loaded."""
        return self._tokenizer()

    @property
    def max_tokens(self) -> int:
        """As set."""
        return self._max_tokens

    async def load(self, policy: PolicyRef, *, is_pinned: bool) -> float:
        """Takes the tokenizer and the version; there are no weights to verify."""
        self._chat = ChatTokenizer.from_json(await self._objects.get(f"{policy.uri}/tokenizer.json"))
        self._version = policy.version.pack()
        return 0.0

    def open(self, sequences: Sequence[NewSequence]) -> list[asyncio.Future[FinishedTurn]]:
        """One script a sequence."""
        futures = []
        for sequence in sequences:
            script = Script(
                sequence=sequence, say=self._players(sequence.task, sequence.seed), length=len(sequence.prompt_ids)
            )
            self._scripts[sequence.sequence_id] = script
            futures.append(self._turn(script, None))
        return futures

    def go_on(self, sequence_id: int, ids: Sequence[int]) -> asyncio.Future[FinishedTurn]:
        """The script reads the observation out of its tokens."""
        script = self._scripts[sequence_id]
        script.length += len(ids)
        shown = self._tokenizer().decode(ids).removeprefix(TOOL).partition(END)[0]
        return self._turn(script, shown)

    def leave(self, sequence_ids: Sequence[int]) -> None:
        """Forgets scripts."""
        for sequence_id in sequence_ids:
            self._scripts.pop(sequence_id, None)
            self._futures.pop(sequence_id, None)

    def figures(self) -> EngineFigures:
        """As of now."""
        return self._rate.figures()

    async def close(self) -> None:
        """Open turns fail."""
        for future in self._futures.values():
            if not future.done():
                future.set_exception(EngineFailure("the engine was closed"))
        self._futures.clear()

    def _turn(self, script: Script, observation: str | None) -> asyncio.Future[FinishedTurn]:
        loop = asyncio.get_running_loop()
        future: asyncio.Future[FinishedTurn] = loop.create_future()
        self._futures[script.sequence.sequence_id] = future
        try:
            turn = self._said(script, script.say(observation))
        except EngineFailure as error:
            future.set_exception(error)
            return future
        script.length += len(turn.ids)
        loop.call_later(self._turn_s, self._deliver, future, turn)
        return future

    def _said(self, script: Script, text: str) -> FinishedTurn:
        sequence = script.sequence
        room = min(sequence.max_turn_tokens, sequence.max_tokens - script.length)
        ids = self._tokenizer().encode_assistant(text)
        stop = Stop.END
        if len(ids) > room:
            stop = Stop.OVERFLOW if room == sequence.max_turn_tokens else Stop.FULL
            ids = ids[:room]
        return FinishedTurn(ids=ids, logprobs=[LOGPROB] * len(ids), versions=[self._version] * len(ids), stop=stop)

    def _deliver(self, future: asyncio.Future[FinishedTurn], turn: FinishedTurn) -> None:
        if not future.done():
            self._rate.add(len(turn.ids), 0.0)
            future.set_result(turn)

    def _tokenizer(self) -> ChatTokenizer:
        if self._chat is None:
            raise JourneymanError(ErrorCode.PRECONDITION, "the engine holds no policy yet")
        return self._chat
