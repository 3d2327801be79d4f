"""What the scheduler tells of itself: status, why a worker gets nothing, the audit of a run. Called by app.py; nothing here changes state."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from scheduler_service.core.admission import free_slots
from scheduler_service.core.audit import Findings, audit
from scheduler_service.core.group import RolloutState
from scheduler_service.core.planning import has_next
from scheduler_service.core.run import Run, RunState
from scheduler_service.core.working_set import WorkingSet
from scheduler_service.ports import Ledger

WORKER_SILENCE_S = 60.0
"""A worker not heard of for so long, or for the longest lease, is no longer counted."""
AUDIT_SHARE = 50
"""An audit is repeated after this many times as long as it took: at most 2 % of the time goes into auditing."""
AUDIT_PAUSE_S = 1.0
"""Shortest pause between two audits of an unfinished run."""


class IdleCause(StrEnum):
    """Why there is nothing to lease."""

    NO_RUN = "no_run"
    SLOTS_FULL = "slots_full"
    ALL_LEASED = "all_leased"


@dataclass(frozen=True, slots=True, kw_only=True)
class Nothing:
    """No lease, and why."""

    cause: IdleCause


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """The scheduler as a whole."""

    runs: tuple[tuple[Run, Findings], ...]
    slot_seconds: Mapping[str, float]
    num_workers: int
    num_leased: int


def idle_cause(working: WorkingSet) -> IdleCause:
    """Asked only when a worker got nothing."""
    unfinished = working.runs_in_order()
    if not unfinished:
        return IdleCause.NO_RUN
    for run in unfinished:
        wants_more = has_next(run) or bool(working.queues.get(run.spec.run_id))
        if run.state is RunState.ACTIVE and wants_more and free_slots(run) == 0:
            return IdleCause.SLOTS_FULL
    return IdleCause.ALL_LEASED


def status(
    working: WorkingSet,
    runs: Sequence[tuple[Run, Findings]],
    slot_seconds: Mapping[str, float],
    seen_s: Mapping[str, float],
    now_s: float,
) -> Status:
    """Counts workers and leases."""
    silence_s = max([WORKER_SILENCE_S, *(run.spec.lease_s for run, _ in runs)])
    leased = [r for group in working.groups.values() for r in group.rollouts if r.state is RolloutState.LEASED]
    return Status(
        runs=tuple(runs),
        slot_seconds=slot_seconds,
        num_workers=sum(now_s - at_s <= silence_s for at_s in seen_s.values()),
        num_leased=len(leased),
    )


class Auditor:
    """Audits runs against the ledger, seldom enough not to be felt. Asked under the scheduler's lock, so ledger and memory are of one moment."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._known: dict[str, tuple[Findings, float]] = {}
        """Findings and when, on the monotonic clock, they are to be looked at again."""

    async def findings(self, run: Run, working: WorkingSet) -> Findings:
        """The latest findings on a run."""
        run_id = run.spec.run_id
        started_s = time.monotonic()
        known = self._known.get(run_id)
        if known is not None and started_s < known[1]:
            return known[0]
        found = audit(run, await self._ledger.audit_rows(run_id), working.groups.keys())
        now_s = time.monotonic()
        self._known[run_id] = (found, now_s + max(AUDIT_PAUSE_S, AUDIT_SHARE * (now_s - started_s)))
        return found
