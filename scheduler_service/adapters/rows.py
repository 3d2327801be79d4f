"""Records of the scheduler as rows of its tables, and back. Called by ledger.py only."""

import json
from collections.abc import Mapping

from pydantic import ValidationError
from sqlalchemy import Row

from journeyman.bus.port import Outgoing
from journeyman.errors import ErrorCode, JourneymanError
from journeyman.records import PolicyVersion
from scheduler_service.adapters.encoding import (
    INDEXES,
    ROLLOUTS,
    from_text,
    task_from_bytes,
    task_to_bytes,
    to_text,
)
from scheduler_service.core.audit import AuditRow
from scheduler_service.core.group import DropReason, Group, GroupState

Columns = dict[str, str | int | float | bytes | None]


def new_group_columns(group: Group) -> Columns:
    """Everything of a group that the ledger does not have yet."""
    return {
        "group_id": group.group_id,
        "run_id": group.run_id,
        "number": group.number,
        "task_id": group.task.task_id,
        "domain": group.task.domain,
        "level": group.task.level,
        "admitted_at_s": group.admitted_at_s,
        "task": task_to_bytes(group.task),
        **changed_group_columns(group),
    }


def changed_group_columns(group: Group) -> Columns:
    """What transitions change."""
    return {
        "state": group.state.value,
        "drop_reason": group.drop_reason.value if group.drop_reason else None,
        "detail": group.detail,
        "rollouts_json": to_text(ROLLOUTS, group.rollouts),
        "ready_members_json": to_text(INDEXES, group.ready_members),
        "changed_at_s": group.changed_at_s,
        "incarnation": group.trained_into.incarnation if group.trained_into else None,
        "step": group.trained_into.step if group.trained_into else None,
    }


def group_of(row: Row[*tuple[object, ...]]) -> Group:
    """CORRUPT when the row is damaged."""
    try:
        return _group_of(row)
    except ValueError as error:
        message = f"the scheduler's ledger holds a damaged group {row.group_id}: {error}"
        raise JourneymanError(ErrorCode.CORRUPT, message) from error


def _group_of(row: Row[*tuple[object, ...]]) -> Group:
    return Group(
        group_id=row.group_id,
        run_id=row.run_id,
        number=row.number,
        task=task_from_bytes(row.task),
        state=GroupState(row.state),
        rollouts=from_text(ROLLOUTS, row.rollouts_json),
        admitted_at_s=row.admitted_at_s,
        changed_at_s=row.changed_at_s,
        ready_members=from_text(INDEXES, row.ready_members_json),
        drop_reason=None if row.drop_reason is None else DropReason(row.drop_reason),
        detail=row.detail,
        trained_into=None if row.step is None else PolicyVersion(incarnation=row.incarnation, step=row.step),
    )


def audit_row_of(row: Row[*tuple[object, ...]]) -> AuditRow:
    """Never fails: a damaged row is a finding."""
    try:
        rollouts = ROLLOUTS.validate_json(row.rollouts_json)
        ready_members = INDEXES.validate_json(row.ready_members_json)
    except ValidationError:
        rollouts, ready_members = None, ()
    return AuditRow(
        group_id=row.group_id,
        state=row.state,
        rollouts=rollouts,
        ready_members=ready_members,
        has_drop_reason=row.drop_reason is not None,
    )


def outbox_columns(fact: Outgoing) -> Columns:
    """A fact in waiting."""
    headers: Mapping[str, str] = dict(fact.headers)
    return {"topic": fact.topic, "key": fact.key, "value": fact.value, "headers_json": json.dumps(headers)}


def outgoing_of(row: Row[*tuple[object, ...]]) -> Outgoing:
    """A fact as it was put in."""
    return Outgoing(topic=row.topic, key=row.key, value=row.value, headers=json.loads(row.headers_json))
