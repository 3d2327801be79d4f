"""Checks promises against the ledger's own rows instead of counting what the code believes. Called by app.py for GetRun.

Both figures are 0 unless something is broken: a bug here, a damaged ledger, or a row that somebody changed.
"""

from collections.abc import Container, Sequence
from dataclasses import dataclass

from scheduler_service.core.group import GroupState, Rollout, RolloutState
from scheduler_service.core.run import Run, RunState


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditRow:
    """One group as the ledger has it, unchecked."""

    group_id: str
    state: str
    rollouts: tuple[Rollout, ...] | None
    """None where the stored text is no list of rollouts."""
    ready_members: tuple[int, ...]
    has_drop_reason: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """Broken promises."""

    num_lost_groups: int
    num_infra_in_advantages: int


def audit(run: Run, rows: Sequence[AuditRow], working: Container[str]) -> Findings:
    """`working` holds the ids of groups that somebody still works on; rows and run are of one moment."""
    worked_on: Container[str] = working if run.state is not RunState.FINISHED else ()
    num_missing = max(0, run.num_admitted - len(rows))
    return Findings(
        num_lost_groups=num_missing + sum(_is_lost(row, worked_on) for row in rows),
        num_infra_in_advantages=sum(_num_infra_in_advantages(row) for row in rows),
    )


def _is_lost(row: AuditRow, working: Container[str]) -> bool:
    """Whether nothing will ever bring the group to an end, or its end has no reason."""
    if row.rollouts is None or row.state not in GroupState.__members__:
        return True
    match GroupState(row.state):
        case GroupState.PLANNED | GroupState.JUDGED:
            return True  # decided in the step that reaches them, never stored
        case GroupState.ADMITTED | GroupState.OPEN:
            return row.group_id not in working or all(rollout.is_settled for rollout in row.rollouts)
        case GroupState.READY | GroupState.TAKEN:
            return row.group_id not in working or not row.ready_members
        case GroupState.COMMITTED:
            return not row.ready_members
        case GroupState.DROPPED:
            return not row.has_drop_reason
        case GroupState.CLOSED:
            return not all(rollout.is_settled for rollout in row.rollouts)


def _num_infra_in_advantages(row: AuditRow) -> int:
    """Members whose rewards were published although they were not graded, or ended by infrastructure."""
    graded = {
        rollout.index
        for rollout in row.rollouts or ()
        if rollout.state is RolloutState.GRADED and rollout.attribution is not None and rollout.attribution.is_evidence
    }
    return sum(index not in graded for index in row.ready_members)
