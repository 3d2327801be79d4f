"""Plays the members of one group: sample a turn, run its tool, show the observation, until each episode ends.

Called by the worker with a policy in the engine. Every member ends as data: Played by the model's doing or budget, or Failed by
infrastructure, which is never a score. A cancelled member (lost lease, drain) has no outcome.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from journeyman.boxes.port import Box, BoxFailure
from journeyman.episodes.episode import Episode, Turn
from journeyman.packs.port import DomainPack
from journeyman.records import Attribution
from rollout_service.core.records import Failed, GroupLease, Member, Outcome, Played
from rollout_service.core.slot_time import Cause, SlotTime
from rollout_service.core.transcript import Transcript
from rollout_service.core.turns import FinishedTurn, NewSequence, Stop
from rollout_service.ports import Engine, EngineFailure

log = logging.getLogger(__name__)


class SlotHold:
    """One member's episode slot: says what it is spent on, and frees it once."""

    def __init__(self, slot_time: SlotTime, cause: Cause, freed: Callable[[], None]) -> None:
        self._slot_time, self._freed = slot_time, freed
        self._cause: Cause | None = cause
        slot_time.occupy(cause, 1, time.monotonic())

    def goes_to(self, cause: Cause) -> None:
        """From now on it is spent on this."""
        if self._cause is not None and cause is not self._cause:
            self._slot_time.move(self._cause, cause, 1, time.monotonic())
            self._cause = cause

    def free(self) -> None:
        """The episode is over; again changes nothing."""
        if self._cause is not None:
            self._slot_time.release(self._cause, 1, time.monotonic())
            self._cause = None
            self._freed()


@dataclass(frozen=True, slots=True, kw_only=True)
class Seat:
    """What one member plays with."""

    member: Member
    sequence_id: int
    box: Box | None
    hold: SlotHold


class GroupPlay:
    """One group's episodes."""

    def __init__(self, lease: GroupLease, pack: DomainPack, engine: Engine, wall_s: float) -> None:
        self._lease, self._pack, self._engine, self._wall_s = lease, pack, engine, wall_s
        self._chat = engine.chat
        self._prompt_ids = tuple(self._chat.encode_prompt(lease.task.messages))

    def why_unplayable(self) -> Failed | None:
        """What keeps every member from being played, told of the first; None where nothing does."""
        limits, member = self._lease.task.limits, self._lease.members[0]
        if limits.max_tokens > self._engine.max_tokens:
            detail = f"the task allows {limits.max_tokens} tokens, ROLLOUT_MAX_TOKENS is {self._engine.max_tokens}"
            return Failed(member=member, attribution=Attribution.ENGINE, detail=detail)
        if len(self._prompt_ids) >= limits.max_tokens:
            detail = f"the prompt has {len(self._prompt_ids)} tokens, the task allows {limits.max_tokens} in all"
            return Failed(member=member, attribution=Attribution.BAD_TASK, detail=detail)
        return None

    def start(self, seats: Sequence[Seat]) -> list[asyncio.Task[Outcome]]:
        """Opens all sequences at once, so that their prompt is computed once; one task a member."""
        limits = self._lease.task.limits
        turns = self._engine.open(
            [
                NewSequence(
                    sequence_id=seat.sequence_id,
                    prompt_ids=self._prompt_ids,
                    seed=seat.member.seed,
                    temperature=self._lease.temperature,
                    max_turn_tokens=limits.max_turn_tokens,
                    max_tokens=limits.max_tokens,
                    task=self._lease.task,
                )
                for seat in seats
            ]
        )
        return [asyncio.create_task(self._seated(seat, turn)) for seat, turn in zip(seats, turns, strict=True)]

    async def _seated(self, seat: Seat, first: asyncio.Future[FinishedTurn]) -> Outcome:
        """The outcome of one member; whatever happens, its slot and its place in the engine are freed."""
        seat.hold.goes_to(Cause.DECODE)
        try:
            async with asyncio.timeout(self._wall_s):
                return await self._play(seat, first)
        except BoxFailure as error:
            return _failed(seat, Attribution.SANDBOX, f"sandbox: {error}")
        except EngineFailure as error:
            return _failed(seat, Attribution.ENGINE, f"engine: {error}")
        except TimeoutError:
            return _failed(seat, Attribution.SCHEDULER, f"scheduler: not over after {self._wall_s:g} s")
        except Exception as error:  # the pack's tools promise not to raise: their bug is no evidence about the model
            log.exception("tool failed", extra={"domain": self._lease.task.domain, "task_id": self._lease.task.task_id})
            return _failed(seat, Attribution.BAD_TASK, f"bad_task: tool raised {type(error).__name__}: {error}")
        finally:
            self._engine.leave([seat.sequence_id])
            seat.hold.free()

    async def _play(self, seat: Seat, awaited: asyncio.Future[FinishedTurn]) -> Played:
        started_s = time.monotonic()
        episode = Episode(self._pack, self._lease.task, seat.box)
        transcript = Transcript(self._prompt_ids)
        while True:
            sampled = await awaited
            seat.hold.goes_to(Cause.TOOL)
            transcript.add_turn(sampled)
            text = self._text(sampled)
            turn = await _advance(episode, sampled, text)
            seen = self._chat.encode_observation(turn.observation) if turn.observation is not None else []
            if turn.ending is None and len(transcript) + len(seen) >= self._lease.task.limits.max_tokens:
                turn = _spent(turn)
            transcript.describe_turn(
                len(sampled.ids), text=text, call=turn.call, observation=turn.observation, tool_s=turn.tool_s
            )
            if turn.ending is not None and turn.attribution is not None:
                break
            transcript.add_observation(seen)
            seat.hold.goes_to(Cause.DECODE)
            awaited = self._engine.go_on(seat.sequence_id, seen)
        return Played(
            trajectory=transcript.trajectory(
                self._lease,
                seat.member,
                response=episode.response,
                final_files=await episode.final_files(),
                attribution=turn.attribution,
                ending=turn.ending,
                wall_s=time.monotonic() - started_s,
            )
        )

    def _text(self, sampled: FinishedTurn) -> str:
        return self._chat.decode(sampled.ids[:-1] if sampled.stop is Stop.END else sampled.ids)


async def _advance(episode: Episode, sampled: FinishedTurn, text: str) -> Turn:
    match sampled.stop:
        case Stop.END:
            return await episode.advance(text)
        case Stop.OVERFLOW:
            return await episode.advance(None, overflow=True)
        case Stop.FULL:
            return Turn(observation=None, call=None, ending="tokens_spent", attribution=Attribution.BUDGET, tool_s=0.0)


def _spent(turn: Turn) -> Turn:
    """The observation would leave no token for another turn."""
    return Turn(
        observation=None, call=turn.call, ending="tokens_spent", attribution=Attribution.BUDGET, tool_s=turn.tool_s
    )


def _failed(seat: Seat, attribution: Attribution, detail: str) -> Failed:
    return Failed(member=seat.member, attribution=attribution, detail=detail)
