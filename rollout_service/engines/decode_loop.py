"""DecodeLoop: continuous batching over one slot cache, in a thread of its own, away from the event loop.

Driven by torch_engine through commands that take effect between two ticks; everything here runs in the loop's thread. A tick feeds one
token to each row and samples those whose known tokens are used up; observations are forced through the same ticks. The rows [0, n) of
the cache are dense. A row whose turn has ended stays in them for a few ticks, being fed its last token again, which changes nothing; if
its tool takes longer it is moved to the parking slots behind, where it costs nothing.
"""

import logging
import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch

from journeyman.artefacts import LoadedPolicy
from journeyman.artefacts.policy_read import check_loaded
from journeyman.errors import ErrorCode, JourneymanError
from journeyman.model.decoder import Decoder
from journeyman.model.sampling import sample, uniforms
from rollout_service.core.turns import FinishedTurn, NewSequence, Stop
from rollout_service.engines.rate import Rate
from rollout_service.engines.rows import FREE, Rows

log = logging.getLogger(__name__)

PARK_AFTER_TICKS = 4
"""Moving a row out and in again costs about as much as feeding it in vain for so many ticks."""
RECOMPUTE_ROWS = 64
"""Rows recomputed in one forward pass after a swap."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Open:
    """Start sequences."""

    sequences: Sequence[NewSequence]


@dataclass(frozen=True, slots=True, kw_only=True)
class GoOn:
    """Force ids, then sample a turn."""

    sequence_id: int
    ids: Sequence[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Leave:
    """Forget sequences."""

    sequence_ids: Sequence[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Swap:
    """Take a policy. done gets the seconds it took, or what is wrong with it."""

    policy: LoadedPolicy
    num_threads: int
    done: Callable[[JourneymanError | float], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Halt:
    """End the thread."""


Command = Open | GoOn | Leave | Swap | Halt
Deliver = Callable[[Sequence[tuple[int, FinishedTurn]]], None]
Fail = Callable[[Sequence[int], str], None]


class DecodeLoop:
    """Owns the decoder. deliver gets the finished turns of one tick together; fail gets sequences that were lost, and why."""

    def __init__(
        self, *, num_slots: int, max_tokens: int, recompute_on_swap: bool, deliver: Deliver, fail: Fail, rate: Rate
    ) -> None:
        self._num_slots, self._max_tokens, self._recompute = num_slots, max_tokens, recompute_on_swap
        self._deliver, self._fail, self._rate = deliver, fail, rate
        self._commands: queue.SimpleQueue[Command] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="decode", daemon=True)
        self._decoder: Decoder | None = None
        self._rows = Rows(2 * num_slots, max_tokens)
        self._slot_of: dict[int, int] = {}
        self._parking = list(range(num_slots, 2 * num_slots))
        self._num_rows = 0
        self._backlog: deque[Command] = deque()
        self._arrivals: list[NewSequence] = []
        self._tick_number = 0
        self._indices = np.arange(2 * num_slots)
        self._version = 0
        self._end_id = 0
        self._forbidden: tuple[int, ...] = ()

    def start(self) -> None:
        """Starts the thread."""
        self._thread.start()

    def post(self, command: Command) -> None:
        """From any thread."""
        self._commands.put(command)

    def join(self) -> None:
        """Waits for the thread to end after Halt."""
        self._thread.join()

    def _run(self) -> None:
        is_running = True
        while is_running:
            try:
                self._gather()
                is_running = self._obey()
                if not self._is_idle():
                    self._tick()
            except Exception as error:  # whatever it is, the sequences are lost and their owners must hear of it
                log.exception("engine failed")
                self._lose_all(f"{type(error).__name__}: {error}")
        self._lose_all("the engine was closed")

    def _is_idle(self) -> bool:
        return not self._num_rows or bool(self._rows.is_parked_S[: self._num_rows].all())

    def _gather(self) -> None:
        """Takes the commands posted so far; waits for one where there is nothing to generate."""
        if not self._backlog and self._is_idle():
            self._backlog.append(self._commands.get())
        while not self._commands.empty():
            self._backlog.append(self._commands.get())

    def _obey(self) -> bool:
        """Carries out the backlog, then opens what arrived with it in one prefill; False on Halt."""
        while self._backlog:
            command = self._backlog.popleft()
            match command:
                case Open():
                    self._arrivals += command.sequences
                case GoOn():
                    self._go_on(command)
                case Leave():
                    self._leave(command.sequence_ids)
                case Swap():
                    self._swap(command)
                case Halt():
                    return False
        if self._arrivals:
            self._open(self._arrivals)
            self._arrivals = []
        return True

    def _open(self, sequences: Sequence[NewSequence]) -> None:
        accepted = sequences if self._decoder else []
        accepted = accepted[: self._num_slots - len(self._slot_of)]
        if refused := sequences[len(accepted) :]:
            self._fail([sequence.sequence_id for sequence in refused], "no policy is loaded or no slot is free")
        slots_by_prompt: dict[tuple[int, ...], list[int]] = {}
        for sequence in accepted:
            slot, self._num_rows = self._num_rows, self._num_rows + 1
            self._rows.fill(slot, sequence)
            self._slot_of[sequence.sequence_id] = slot
            slots_by_prompt.setdefault(sequence.prompt_ids, []).append(slot)
        if self._decoder and slots_by_prompt:
            self._decoder.prefill(list(slots_by_prompt), list(slots_by_prompt.values()))

    def _go_on(self, command: GoOn) -> None:
        slot = self._slot_of.get(command.sequence_id)
        if slot is None:
            return
        if self._rows.length_S[slot] + len(command.ids) >= self._rows.max_tokens_S[slot]:
            self._leave([command.sequence_id])
            self._fail([command.sequence_id], "the observation leaves no room for a turn")
            return
        if slot >= self._num_slots:
            self._move(slot, self._num_rows)
            self._parking.append(slot)
            slot, self._num_rows = self._num_rows, self._num_rows + 1
        self._rows.append(slot, np.asarray(command.ids, np.int64))

    def _leave(self, sequence_ids: Sequence[int]) -> None:
        gone = set(sequence_ids)
        self._arrivals = [sequence for sequence in self._arrivals if sequence.sequence_id not in gone]
        for slot in (self._slot_of.pop(sequence_id, None) for sequence_id in sequence_ids):
            if slot is None:
                continue
            self._rows.sequence_S[slot] = FREE
            if slot >= self._num_slots:
                self._parking.append(slot)
            else:
                self._close_gap(slot)

    def _close_gap(self, slot: int) -> None:
        """Keeps the rows dense after the one at slot has gone."""
        self._num_rows -= 1
        if slot != self._num_rows:
            self._move(self._num_rows, slot)

    def _move(self, source: int, target: int) -> None:
        if self._decoder:
            self._decoder.move(source, target)
        self._rows.move(source, target)
        self._rows.sequence_S[source] = FREE
        self._slot_of[int(self._rows.sequence_S[target])] = target

    def _tick(self) -> None:
        assert self._decoder is not None
        rows, n = self._rows, self._num_rows
        positions_N, parked_N = rows.position_S[:n], rows.is_parked_S[:n]
        tokens_N = torch.from_numpy(rows.tokens_ST[self._indices[:n], positions_N])
        logits_NV = self._decoder.step(tokens_N, torch.from_numpy(positions_N), n)
        sampling = np.flatnonzero((rows.length_S[:n] == positions_N + 1) & ~parked_N)
        if len(sampling):
            self._sample(logits_NV if len(sampling) == n else logits_NV[torch.from_numpy(sampling)], sampling)
        positions_N += ~parked_N
        self._tick_number += 1
        if len(sampling):
            self._finish_turns(sampling)
        self._park()

    def _sample(self, logits_NV: torch.Tensor, sampling: npt.NDArray[np.int64]) -> None:
        """Draws the next token of the rows at these slots."""
        rows = self._rows
        lengths, temperatures = rows.length_S[sampling], rows.temperature_S[sampling]
        draws_N = uniforms(rows.seed_S[sampling], lengths)
        entropy = 0.0
        for temperature in np.unique(temperatures):
            which = np.flatnonzero(temperatures == temperature)
            is_all = len(which) == len(sampling)
            which_t = torch.from_numpy(which)
            drawn = sample(
                logits_NV if is_all else logits_NV[which_t],
                draws_N if is_all else draws_N[which_t],
                forbidden_ids=self._forbidden,
                temperature=float(temperature),
            )
            slots, at = sampling[which], lengths[which]
            rows.tokens_ST[slots, at] = drawn.ids_N.numpy()
            rows.logprobs_ST[slots, at] = drawn.logp_N.numpy()
            rows.versions_ST[slots, at] = self._version
            entropy += float(drawn.entropy_N.sum())
        rows.length_S[sampling] = lengths + 1
        self._rate.add(len(sampling), entropy)

    def _finish_turns(self, sampling: npt.NDArray[np.int64]) -> None:
        """Parks and delivers the rows among these whose turn ended with the token just sampled."""
        rows = self._rows
        lengths = rows.length_S[sampling]
        said_end = rows.tokens_ST[sampling, lengths - 1] == self._end_id
        ended = sampling[said_end | (lengths >= rows.turn_end_S[sampling])]
        if not len(ended):
            return
        rows.is_parked_S[ended] = True
        rows.parked_at_S[ended] = self._tick_number
        self._deliver([(int(rows.sequence_S[slot]), self._turn(slot)) for slot in ended.tolist()])

    def _turn(self, slot: int) -> FinishedTurn:
        rows = self._rows
        start, end = int(rows.turn_start_S[slot]), int(rows.length_S[slot])
        ids: list[int] = rows.tokens_ST[slot, start:end].tolist()
        cut = Stop.OVERFLOW if end - start >= rows.max_turn_S[slot] else Stop.FULL
        return FinishedTurn(
            ids=ids,
            logprobs=rows.logprobs_ST[slot, start:end].tolist(),
            versions=rows.versions_ST[slot, start:end].tolist(),
            stop=Stop.END if ids[-1] == self._end_id else cut,
        )

    def _park(self) -> None:
        """Moves rows out of the way whose tools take long."""
        rows, n = self._rows, self._num_rows
        old = self._tick_number - PARK_AFTER_TICKS
        late = np.flatnonzero(rows.is_parked_S[:n] & (rows.parked_at_S[:n] <= old))
        for slot in late[::-1].tolist():  # from the end, so that closing a gap moves no row that is still to be parked
            self._move(slot, self._parking.pop())
            self._close_gap(slot)

    def _swap(self, command: Swap) -> None:
        started_s = time.monotonic()
        torch.set_num_threads(command.num_threads)
        try:
            self._take(command.policy)
        except (JourneymanError, KeyError, RuntimeError) as error:
            self._decoder = None
            self._lose_all(f"the engine holds no verified weights: {error}")
            command.done(error if isinstance(error, JourneymanError) else refused(command.policy, error))
            return
        command.done(time.monotonic() - started_s)

    def _take(self, policy: LoadedPolicy) -> None:
        """Puts the weights into the decoder and checks what is there then."""
        if self._decoder is not None and self._decoder.model.config == policy.model.config:
            self._decoder.load(policy.weights)
            if self._recompute:
                self._recompute_cache()
        else:
            if self._slot_of:
                self._lose_all("a model of another shape was loaded")
            max_tokens = min(self._max_tokens, policy.model.config.max_position_embeddings)
            self._decoder = Decoder(policy.model, 2 * self._num_slots, max_tokens)
        check_loaded(policy.ref, policy.manifest, self._decoder.model)
        self._version = policy.ref.version.pack()
        self._end_id = policy.tokenizer.end_id
        self._forbidden = tuple(policy.tokenizer.forbidden_ids)

    def _recompute_cache(self) -> None:
        """Makes the keys and values of all sequences anew, as if the new weights had read them from the start."""
        assert self._decoder is not None
        rows = self._rows
        slots = sorted(self._slot_of.values(), key=lambda slot: int(rows.position_S[slot]))
        for start in range(0, len(slots), RECOMPUTE_ROWS):
            chunk = slots[start : start + RECOMPUTE_ROWS]
            known = [rows.tokens_ST[slot, : rows.position_S[slot] + 1].tolist() for slot in chunk]
            self._decoder.prefill(known, [[slot] for slot in chunk])

    def _lose_all(self, reason: str) -> None:
        """Every sequence fails; the loop is as new, its weights stay."""
        lost = [*self._slot_of, *(sequence.sequence_id for sequence in self._arrivals)]
        self._arrivals = []
        self._slot_of.clear()
        self._rows.sequence_S[:] = FREE
        self._parking = list(range(self._num_slots, 2 * self._num_slots))
        self._num_rows = 0
        if lost:
            self._fail(lost, reason)


def refused(policy: LoadedPolicy, error: Exception) -> JourneymanError:
    """The library's complaint about weights as one of ours."""
    return JourneymanError(ErrorCode.CORRUPT, f"policy {policy.ref.name} does not fit: {error}")
