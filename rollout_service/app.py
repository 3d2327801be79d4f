"""Worker: leases groups while slots are free, has them played, records what came of them, gives back what it cannot finish.

Built by __main__. Nothing it holds has to survive it: kill -9 at any point costs its leases and no result, for an object without its
fact is never read, and a fact repeated has the same id.
"""

import asyncio
import contextlib
import itertools
import logging
import random
import time
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass

from journeyman.errors import JourneymanError
from journeyman.observe.logs import bound
from journeyman.packs.load import load_pack
from journeyman.packs.port import DomainPack
from journeyman.records import Attribution
from rollout_service.core.records import Attempt, Failed, GroupLease, Outcome
from rollout_service.core.slot_time import Cause, SlotTime
from rollout_service.holding import Holding
from rollout_service.lazy_boxes import LazyBoxes
from rollout_service.play import GroupPlay, Seat, SlotHold
from rollout_service.ports import BoxSource, Engine, Leases, PolicyRefused, Recorder
from rollout_service.serving import Serving

log = logging.getLogger(__name__)

GATHER_S = 0.01
"""After slots become free: wait so long for more, so that one call leases for all that end together."""
SHORTEST_PAUSE_S, LONGEST_PAUSE_S = 0.1, 2.0
REFUSED_PAUSE_S = 5.0
"""No new leases for so long after the engine or the store failed, or leases would be burnt one after another."""
RECORD_TRIES = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerOptions:
    """Limits in time."""

    member_wall_s: float
    drain_grace_s: float


class GivenBack(Exception):
    """The group cannot be played here; its leases go back with this attribution."""

    def __init__(self, attribution: Attribution, detail: str) -> None:
        super().__init__(detail)
        self.attribution = attribution
        self.detail = detail


class Worker:
    """Use cases of the rollout service."""

    def __init__(
        self,
        *,
        leases: Leases,
        engine: Engine,
        serving: Serving,
        boxes: BoxSource,
        recorder: Recorder,
        slot_time: SlotTime,
        options: WorkerOptions,
    ) -> None:
        self._leases, self._engine, self._serving = leases, engine, serving
        self._boxes, self._recorder, self._slot_time = boxes, recorder, slot_time
        self._options = options
        self._held: dict[Holding, asyncio.Task[None]] = {}
        self._chores: set[asyncio.Task[None]] = set()
        self._sequence_ids = itertools.count()
        self._wake = asyncio.Event()
        self._accepted = asyncio.Event()
        self._is_draining = self._has_drained = False
        self._has_stopped = asyncio.Event()
        self._has_stopped.set()
        self._not_before_s = 0.0
        self._failures = 0

    async def work(self, stop: asyncio.Event) -> None:
        """Leases and plays until stopped or drained."""
        self._slot_time.free_slots_are(Cause.NO_LEASE, time.monotonic())
        self._has_stopped.clear()
        try:
            while not (stop.is_set() or self._is_draining):
                await self._lease_or_wait()
        finally:
            self._has_stopped.set()

    async def _lease_or_wait(self) -> None:
        """Asks once, or waits until asking makes sense."""
        self._wake.clear()
        wait_s = self._not_before_s - time.monotonic()
        if not self._slot_time.num_free or wait_s > 0:
            await self._sleep(wait_s if wait_s > 0 else LONGEST_PAUSE_S)
            await asyncio.sleep(GATHER_S)
            return
        try:
            retry_after_s = await self._lease()
            self._failures = 0
        except JourneymanError as error:
            log.warning("no lease", extra={"reason": error.message})
            retry_after_s = min(LONGEST_PAUSE_S, SHORTEST_PAUSE_S * 2**self._failures) * (0.5 + random.random())
            self._failures = min(self._failures + 1, 8)
        if retry_after_s > 0:
            await self._sleep(retry_after_s)

    async def renew(self, stop: asyncio.Event) -> None:
        """Extends what is held, each lease at a third of its life, and drops what was lost."""
        while not (stop.is_set() or self._has_drained):
            self._accepted.clear()
            now_s = time.monotonic()
            due = [holding for holding in self._held if holding.renew_at_s <= now_s]
            if due:
                await self._renew([*self._held])
            coming = min((holding.renew_at_s for holding in self._held), default=now_s + LONGEST_PAUSE_S)
            with contextlib.suppress(TimeoutError):
                pause_s = min(LONGEST_PAUSE_S, max(SHORTEST_PAUSE_S, coming - time.monotonic()))
                await asyncio.wait_for(self._accepted.wait(), pause_s)

    async def drain(self) -> None:
        """Takes nothing new, gives back what has not begun, finishes what ends within the grace and gives back the rest."""
        self._is_draining = True
        self._slot_time.free_slots_are(Cause.DRAINING, time.monotonic())
        self._wake.set()
        for holding, task in self._held.items():
            if not holding.is_playing:
                task.cancel()
        if self._held:
            await asyncio.wait(self._held.values(), timeout=self._options.drain_grace_s)
        for holding in self._held:
            holding.cancel_all()
        await asyncio.gather(*self._held.values(), *self._chores, return_exceptions=True)
        # A call for work may be waiting in the scheduler; what it still brings is given back.
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._has_stopped.wait(), self._options.drain_grace_s)
        self._has_drained = True
        self._accepted.set()

    async def _lease(self) -> float:
        """Asks for work and starts it; returns how long to wait before asking again."""
        report = self._slot_time.unreported(time.monotonic())
        grant = await self._leases.lease(
            max_rollouts=self._slot_time.num_free,
            loaded=self._serving.loaded,
            is_idle=not self._held,
            slot_seconds=report,
        )
        self._slot_time.mark_reported(report)
        for lease in grant.leases:
            if self._is_draining:
                await self._give_back(lease.attempts, None, "drained before it began")
            else:
                self._accept(lease)
        return 0.0 if grant.leases else max(grant.retry_after_s, GATHER_S)

    def _accept(self, lease: GroupLease) -> None:
        cause = Cause.WEIGHTS if self._serving.is_published(lease.policy) else Cause.NO_POLICY
        holds = {lease.attempt(member): SlotHold(self._slot_time, cause, self._wake.set) for member in lease.members}
        holding = Holding(lease, holds)
        task = asyncio.create_task(self._carry_out(holding))
        self._held[holding] = task
        self._accepted.set()
        task.add_done_callback(lambda ended: self._forget(holding, ended))

    def _forget(self, holding: Holding, ended: "asyncio.Task[None]") -> None:
        self._held.pop(holding)
        if not ended.cancelled() and (error := ended.exception()) is not None:
            # A bug of ours. The leases are renewed no more, so others will play them.
            log.critical("group abandoned", exc_info=error, extra={"group_id": holding.lease.group_id})
        holding.free_slots()
        self._wake.set()

    async def _carry_out(self, holding: Holding) -> None:
        """A lease from grant to record; every member ends recorded, given back or lost."""
        lease = holding.lease
        with bound(run_id=lease.run_id, group_id=lease.group_id):
            try:
                outcomes = await self._play(holding)
            except GivenBack as reason:
                log.warning("group given back", extra={"cause": reason.attribution.value, "reason": reason.detail})
                await self._give_back(holding.attempts, reason.attribution, reason.detail)
                return
            except asyncio.CancelledError:
                # Only drain cancels, and only before the first token; the stop itself comes later.
                await self._give_back(holding.attempts, None, "drained before it began")
                return
            if outcomes:
                await self._record(holding, outcomes)
            unfinished = holding.unfinished(outcomes)
            if unfinished:
                await self._give_back(unfinished, None, "drained before it ended")

    async def _play(self, holding: Holding) -> Sequence[Outcome]:
        """Outcomes of the members that ended while still held."""
        lease = holding.lease
        pack = pack_for(lease)
        try:
            async with self._serving.playing(lease.policy):
                return await self._play_members(holding, pack)
        except PolicyRefused as error:
            self._pause_leasing()
            raise GivenBack(Attribution.ENGINE, str(error)) from error
        except JourneymanError as error:
            self._pause_leasing()
            raise GivenBack(Attribution.STORAGE, f"policy cannot be read: {error.message}") from error

    async def _play_members(self, holding: Holding, pack: DomainPack) -> Sequence[Outcome]:
        lease = holding.lease
        play = GroupPlay(lease, pack, self._engine, self._options.member_wall_s)
        if (problem := play.why_unplayable()) is not None:
            raise GivenBack(problem.attribution, problem.detail)
        members = [member for member in lease.members if lease.attempt(member) not in holding.lost]
        key = f"{lease.group_id}/{members[0].index}-{members[0].attempt}" if members else ""
        boxes = LazyBoxes(self._boxes, lease.task.files, len(members), key=key) if pack.spec.uses_box else None
        seats = [
            Seat(
                member=member,
                sequence_id=next(self._sequence_ids),
                box=boxes.box(place) if boxes else None,
                hold=holding.holds[lease.attempt(member)],
            )
            for place, member in enumerate(members)
        ]
        tasks = play.start(seats)
        holding.begin({lease.attempt(seat.member): task for seat, task in zip(seats, tasks, strict=True)})
        ended = await asyncio.gather(*tasks, return_exceptions=True)
        if boxes is not None:
            self._chore(boxes.destroy())
        outcomes = [outcome for outcome in ended if not isinstance(outcome, BaseException)]
        if any(isinstance(outcome, Failed) and outcome.attribution is Attribution.ENGINE for outcome in outcomes):
            self._serving.distrust()
        return holding.still_held(outcomes)

    async def _record(self, holding: Holding, outcomes: Sequence[Outcome]) -> None:
        """Stores and publishes. What cannot be stored is said to have failed, and what cannot even be said is given back."""
        try:
            await self._insist(holding, outcomes)
        except JourneymanError as error:
            log.error("results not stored", extra={"reason": error.message})
            detail = f"storage: {error.message}"
            lost = [Failed(member=holding.member(o), attribution=Attribution.STORAGE, detail=detail) for o in outcomes]
            try:
                await self._recorder.record(holding.lease, lost)
            except JourneymanError as again:
                attempts = [holding.lease.attempt(failed.member) for failed in lost]
                await self._give_back(attempts, Attribution.STORAGE, again.message)

    async def _insist(self, holding: Holding, outcomes: Sequence[Outcome]) -> None:
        for attempt in range(1, RECORD_TRIES + 1):
            try:
                await self._recorder.record(holding.lease, outcomes)
                return
            except JourneymanError as error:
                if not error.retryable or attempt == RECORD_TRIES:
                    raise
            await asyncio.sleep(SHORTEST_PAUSE_S * 2**attempt * (0.5 + random.random()))

    async def _renew(self, holdings: Sequence[Holding]) -> None:
        attempts = [attempt for holding in holdings for attempt in holding.attempts]
        now_s = time.monotonic()
        try:
            lost = set(await self._leases.renew(attempts)) if attempts else set()
        except JourneymanError as error:
            # Played on: should the leases be lost meanwhile, their attempt numbers keep the results out.
            log.warning("leases not renewed", extra={"reason": error.message})
            for holding in holdings:
                holding.renew_at_s = now_s + SHORTEST_PAUSE_S + holding.lease.life_s / 10
            return
        for holding in holdings:
            holding.renew_at_s = now_s + holding.lease.life_s / 3
            holding.lose(lost)

    async def _give_back(self, attempts: Sequence[Attempt], attribution: Attribution | None, detail: str) -> None:
        if not attempts:
            return
        try:
            await self._leases.give_back(attempts, attribution, detail)
        except JourneymanError as error:
            log.warning("leases not given back; they will run out", extra={"reason": error.message})

    def _pause_leasing(self) -> None:
        self._not_before_s = time.monotonic() + REFUSED_PAUSE_S

    def _chore(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(work)
        self._chores.add(task)
        task.add_done_callback(self._chores.discard)

    async def _sleep(self, seconds: float) -> None:
        """Shorter when a slot becomes free or the worker drains."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._wake.wait(), seconds)


def pack_for(lease: GroupLease) -> DomainPack:
    """The very pack that made the task. Another version here is the deployment's fault, not the task's."""
    try:
        pack = load_pack(lease.task.domain)
    except JourneymanError as error:
        raise GivenBack(Attribution.SCHEDULER, f"scheduler: {error.message}") from error
    if pack.ref != lease.task.domain_ref:
        raise GivenBack(
            Attribution.SCHEDULER, f"scheduler: the task is of {lease.task.domain_ref}, this worker has {pack.ref}"
        )
    return pack
