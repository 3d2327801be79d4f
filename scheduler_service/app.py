"""Scheduler: the use cases. Each is a decision of core/ inside a Draft, stored with its facts in one transaction, then applied.

Called by servicer.py, consumer.py and the ticker. One decision at a time: the lock is held from reading the working set until the ledger
has the change, and a caller that goes away does not interrupt it, so memory and ledger never differ.
"""

import asyncio
import logging
import math
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from typing import TypeVar

from journeyman.bus.port import Outgoing
from journeyman.errors import ErrorCode, JourneymanError
from journeyman.records import Attribution, Task
from scheduler_service.core import playing, results, run_rules
from scheduler_service.core.audit import Findings
from scheduler_service.core.group import Fact, Group, GroupState
from scheduler_service.core.leasing import Ask
from scheduler_service.core.playing import AttemptName, LeasedGroup
from scheduler_service.core.results import Incoming
from scheduler_service.core.run import Run, RunSpec
from scheduler_service.core.working_set import Batch, Draft, WorkingSet
from scheduler_service.ports import Ledger, TaskSource
from scheduler_service.views import Auditor, IdleCause, Nothing, Status, idle_cause, status

T = TypeVar("T")
MAX_PAGE = 1000
DEFAULT_PAGE = 100

_log = logging.getLogger(__name__)


class Scheduler:
    """Decides what runs next and how much may be in flight."""

    def __init__(
        self,
        ledger: Ledger,
        source: TaskSource,
        encode: Callable[[Fact], Outgoing],
        now_s: Callable[[], float] = time.time,
    ) -> None:
        self._ledger, self._encode, self._now_s = ledger, encode, now_s
        self._working = WorkingSet(source=source)
        self._lock = asyncio.Lock()
        self._changed = asyncio.Event()
        self._is_draining = False
        self._is_suspect = False
        """Whether a store failed, so that the ledger may or may not have what memory does not."""
        self._slot_seconds: dict[str, float] = {}
        self._seen_s: dict[str, float] = {}
        self._auditor = Auditor(ledger)
        self.facts_stored = asyncio.Event()
        """Set whenever the outbox has new facts."""

    async def load(self) -> None:
        """At start, and after a store whose outcome is unknown: takes up where the ledger stands, with every lease extended."""
        self._working = WorkingSet.of(await self._ledger.load(), self._working.source)
        playing.extend_all(self._working, self._now_s())
        _log.info("ledger loaded", extra={"runs": len(self._working.runs), "groups": len(self._working.groups)})

    async def create_run(self, spec: RunSpec) -> tuple[Run, Findings]:
        """Starts a run; repeating it with the same spec returns the run."""
        await self._decide(lambda draft: run_rules.create(draft, spec))
        return await self.get_run(spec.run_id)

    async def get_run(self, run_id: str) -> tuple[Run, Findings]:
        """The run as it stands, and what the ledger says of its promises."""
        async with self._lock:
            run = run_rules.found(Draft(self._working, self._now_s()), run_id)
            return run, await self._auditor.findings(run, self._working)

    async def close_run(self, run_id: str, *, cancels: bool) -> tuple[Run, Findings]:
        """Stops admission; cancelling drops what the trainer has not taken."""
        await self._decide(lambda draft: run_rules.close(draft, run_id, cancels=cancels))
        return await self.get_run(run_id)

    async def submit_tasks(self, run_id: str, tasks: Sequence[Task]) -> int:
        """Queues the client's tasks, all or none; returns how many were new."""
        return await self._decide(lambda draft: sum(run_rules.submit(draft, run_id, task) for task in tasks))

    async def list_groups(self, run_id: str, *, below: int | None, limit: int, state: str) -> Sequence[Group]:
        """A page of groups, newest first."""
        if state and state not in GroupState.__members__:
            raise JourneymanError(
                ErrorCode.INVALID_INPUT, f"state={state!r}: is one of {', '.join(GroupState.__members__)}"
            )
        if not 0 <= limit <= MAX_PAGE:
            raise JourneymanError(ErrorCode.INVALID_INPUT, f"page_size={limit}: must be 0 to {MAX_PAGE}")
        run_rules.found(Draft(self._working, self._now_s()), run_id)
        return await self._ledger.groups(run_id, below=below, limit=limit or DEFAULT_PAGE, state=state)

    async def lease(self, ask: Ask, slot_seconds: Mapping[str, float], wait_s: float) -> list[LeasedGroup] | Nothing:
        """Leases rollouts to a worker, waiting up to wait_s until there are some."""
        if ask.max_rollouts < 1 or not ask.worker_id:
            message = (
                f"worker_id={ask.worker_id!r}, max_rollouts={ask.max_rollouts}: name the worker and ask for at least 1"
            )
            raise JourneymanError(ErrorCode.INVALID_INPUT, message)
        self._book(ask.worker_id, slot_seconds)
        end_s = time.monotonic() + wait_s
        while True:
            changed = self._changed
            leased = await self._decide_lease(ask)
            left_s = end_s - time.monotonic()
            if leased:
                return leased
            if left_s <= 0 or self._is_draining:
                return Nothing(cause=self._idle_cause())
            try:
                await asyncio.wait_for(changed.wait(), left_s)
            except TimeoutError:
                return Nothing(cause=self._idle_cause())

    async def renew(self, worker_id: str, attempts: Sequence[AttemptName]) -> tuple[float, list[AttemptName]]:
        """Extends leases; returns their new end and those that are lost."""
        async with self._lock:
            now_s = self._now_s()
            self._seen_s[worker_id] = now_s
            return playing.extended(self._working, worker_id, attempts, now_s)

    async def give_back(self, worker_id: str, attempts: Sequence[AttemptName], cause: Attribution | None) -> None:
        """Returns leases: unplayed (None) or failed for infrastructure."""
        if cause is not None and cause.is_evidence:
            raise JourneymanError(
                ErrorCode.INVALID_INPUT,
                f"attribution={cause.value!r}: an ending of the model's doing is a trajectory, not a return; "
                "name an infrastructure class",
            )
        await self._decide(lambda draft: playing.give_back(draft, worker_id, attempts, cause))

    async def status(self) -> Status:
        """Unfinished runs, slot-seconds, workers and leases."""
        stored = dict(await self._ledger.slot_seconds())
        for cause, seconds in self._slot_seconds.items():
            stored[cause] = stored.get(cause, 0.0) + seconds
        async with self._lock:
            runs = [(run, await self._auditor.findings(run, self._working)) for run in self._working.runs_in_order()]
        return status(self._working, runs, stored, self._seen_s, self._now_s())

    async def receive(self, facts: Sequence[Incoming]) -> None:
        """Facts from the bus."""
        await self._decide(lambda draft: results.receive(draft, facts))

    async def tick(self) -> None:
        """Ends leases that ran out; stores booked slot-seconds."""
        await self._decide(playing.expire, stores_slot_seconds=True)

    async def run_ticker(self, stop: asyncio.Event, tick_s: float) -> None:
        """Ticks until stopped, and once more then."""
        while not stop.is_set():
            try:
                await self.tick()
            except JourneymanError as error:
                if not error.retryable:
                    raise
                _log.warning("tick failed", extra={"reason": error.message})
            try:
                await asyncio.wait_for(stop.wait(), tick_s)
            except TimeoutError:
                continue
        await self.tick()

    async def drain(self) -> None:
        """Lets waiting Lease calls answer at once."""
        self._is_draining = True
        self._wake()

    def _idle_cause(self) -> IdleCause:
        return idle_cause(self._working)

    def _book(self, worker_id: str, slot_seconds: Mapping[str, float]) -> None:
        self._seen_s[worker_id] = self._now_s()
        for cause, seconds in slot_seconds.items():
            if math.isfinite(seconds) and seconds > 0:
                self._slot_seconds[cause] = self._slot_seconds.get(cause, 0.0) + seconds

    async def _decide_lease(self, ask: Ask) -> list[LeasedGroup]:
        """One attempt at leasing. A worker that went away meanwhile gets nothing: its leases go back unplayed."""
        work = asyncio.ensure_future(self._locked(lambda draft: playing.lease(draft, ask)))
        try:
            return await asyncio.shield(work)
        except asyncio.CancelledError:
            await _finished(self._put_back(ask.worker_id, work))
            raise

    async def _put_back(self, worker_id: str, work: Awaitable[list[LeasedGroup]]) -> None:
        names = [
            AttemptName(group_id=leased.group.group_id, index=index, attempt=leased.group.rollouts[index].attempt)
            for leased in await work
            for index in leased.indexes
        ]
        await self._locked(lambda draft: playing.give_back(draft, worker_id, names, None))

    async def _decide(self, decide: Callable[[Draft], T], *, stores_slot_seconds: bool = False) -> T:
        return await _finished(self._locked(decide, stores_slot_seconds=stores_slot_seconds))

    async def _locked(self, decide: Callable[[Draft], T], *, stores_slot_seconds: bool = False) -> T:
        async with self._lock:
            if self._is_suspect:
                await self.load()
                self._is_suspect = False
            draft = Draft(self._working, self._now_s())
            answer = decide(draft)
            batch = draft.batch()
            booked, self._slot_seconds = (self._slot_seconds, {}) if stores_slot_seconds else ({}, self._slot_seconds)
            if not batch.is_empty or booked:
                await self._store(batch, booked)
            return answer

    async def _store(self, batch: Batch, booked: Mapping[str, float]) -> None:
        self._is_suspect = True
        await self._ledger.store(batch, [self._encode(fact) for fact in batch.facts], booked)
        self._is_suspect = False
        self._working.apply(batch)
        if not batch.is_empty:
            self._wake()
        if batch.facts:
            self.facts_stored.set()

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()


async def _finished(work: Coroutine[None, None, T]) -> T:
    """Waits for work that runs to its end even when the caller is cancelled."""
    return await asyncio.shield(asyncio.ensure_future(work))
