"""TorchEngine: the engine port on the in-process decoder. Verifies policies, hands work to the decode loop, resolves futures.

Built by __main__; every method is called from the event loop. Fails closed: without a verified policy it opens nothing.
"""

import asyncio
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVarTuple

from journeyman.artefacts import LoadedPolicy, read_policy
from journeyman.errors import ErrorCode, JourneymanError
from journeyman.objects.port import Objects
from journeyman.records import PolicyRef
from rollout_service.core.turns import FinishedTurn, NewSequence
from rollout_service.engines.decode_loop import DecodeLoop, GoOn, Halt, Leave, Open, Swap
from rollout_service.engines.rate import Rate
from rollout_service.ports import Chat, EngineFailure, EngineFigures, PolicyRefused

Arguments = TypeVarTuple("Arguments")

SWITCH_INTERVAL_S = 0.0005
"""The decode thread takes the interpreter's lock back about a hundred times a tick; at the default of 5 ms it would wait for the event
loop each time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TorchEngineOptions:
    """Sizes and threads."""

    num_slots: int
    max_tokens: int
    num_threads: int
    """Threads of a tensor operation."""
    num_threads_pinned: int
    """The same while a pinned policy is played (evaluation): the trainer is idle then."""
    recompute_on_swap: bool
    """Whether sequences in flight get their cache recomputed under new weights; else they go on with what the old ones made."""


class TorchEngine:
    """See the Engine port."""

    def __init__(self, objects: Objects, options: TorchEngineOptions) -> None:
        sys.setswitchinterval(SWITCH_INTERVAL_S)
        self._objects, self._options = objects, options
        self._rate = Rate()
        self._event_loop = asyncio.get_running_loop()
        self._futures: dict[int, asyncio.Future[FinishedTurn]] = {}
        self._chat: Chat | None = None
        self._loop = DecodeLoop(
            num_slots=options.num_slots,
            max_tokens=options.max_tokens,
            recompute_on_swap=options.recompute_on_swap,
            deliver=lambda turns: self._to_event_loop(self._resolve, turns),
            fail=lambda ids, why: self._to_event_loop(self._reject, ids, why),
            rate=self._rate,
        )
        self._loop.start()

    @property
    def chat(self) -> Chat:
        """Tokenizer of the policy that is loaded."""
        if self._chat is None:
            raise JourneymanError(ErrorCode.PRECONDITION, "the engine holds no policy yet")
        return self._chat

    @property
    def max_tokens(self) -> int:
        """Longest sequence that fits a slot."""
        return self._options.max_tokens

    async def load(self, policy: PolicyRef, *, is_pinned: bool) -> float:
        """Reads and verifies beside the decode loop, then swaps inside it and verifies what it holds."""
        try:
            loaded = await read_policy(self._objects, policy)
            pause_s = await self._swap(
                loaded, self._options.num_threads_pinned if is_pinned else self._options.num_threads
            )
        except JourneymanError as error:
            if error.code is ErrorCode.CORRUPT:
                raise PolicyRefused(error.message) from error
            raise
        self._chat = loaded.tokenizer
        return pause_s

    def open(self, sequences: Sequence[NewSequence]) -> list[asyncio.Future[FinishedTurn]]:
        """One future a sequence."""
        futures = [self._expect(sequence.sequence_id) for sequence in sequences]
        self._loop.post(Open(sequences=sequences))
        return futures

    def go_on(self, sequence_id: int, ids: Sequence[int]) -> asyncio.Future[FinishedTurn]:
        """The next turn."""
        future = self._expect(sequence_id)
        self._loop.post(GoOn(sequence_id=sequence_id, ids=ids))
        return future

    def leave(self, sequence_ids: Sequence[int]) -> None:
        """Frees their slots at the next tick."""
        for sequence_id in sequence_ids:
            self._futures.pop(sequence_id, None)
        self._loop.post(Leave(sequence_ids=sequence_ids))

    def figures(self) -> EngineFigures:
        """As of now."""
        return self._rate.figures()

    async def close(self) -> None:
        """Ends the thread."""
        self._loop.post(Halt())
        await asyncio.to_thread(self._loop.join)

    async def _swap(self, policy: LoadedPolicy, num_threads: int) -> float:
        done: asyncio.Future[JourneymanError | float] = self._event_loop.create_future()
        self._loop.post(
            Swap(
                policy=policy,
                num_threads=num_threads,
                done=lambda outcome: self._to_event_loop(_settle, done, outcome),
            )
        )
        outcome = await done
        if isinstance(outcome, JourneymanError):
            raise outcome
        return outcome

    def _expect(self, sequence_id: int) -> asyncio.Future[FinishedTurn]:
        future: asyncio.Future[FinishedTurn] = self._event_loop.create_future()
        self._futures[sequence_id] = future
        return future

    def _resolve(self, turns: Sequence[tuple[int, FinishedTurn]]) -> None:
        for sequence_id, turn in turns:
            future = self._futures.pop(sequence_id, None)
            if future is not None and not future.done():
                future.set_result(turn)

    def _reject(self, sequence_ids: Sequence[int], why: str) -> None:
        for sequence_id in sequence_ids:
            future = self._futures.pop(sequence_id, None)
            if future is not None and not future.done():
                future.set_exception(EngineFailure(why))

    def _to_event_loop(self, call: Callable[[*Arguments], None], *arguments: *Arguments) -> None:
        """From the decode thread. Silent once the event loop is gone: nobody waits any more."""
        if not self._event_loop.is_closed():
            self._event_loop.call_soon_threadsafe(call, *arguments)


def _settle(done: asyncio.Future[JourneymanError | float], outcome: JourneymanError | float) -> None:
    if not done.done():
        done.set_result(outcome)
