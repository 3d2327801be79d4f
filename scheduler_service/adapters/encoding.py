"""Runs, rollouts and tasks as they lie in the ledger, and back. Pydantic checks what is read, since a ledger may be damaged."""

from typing import TypeVar

from google.protobuf.message import DecodeError
from jm.common.v1 import common_pb2 as common
from pydantic import TypeAdapter, ValidationError

from journeyman.convert import task_from_proto, task_to_proto
from journeyman.errors import ErrorCode, JourneymanError
from journeyman.records import Task
from scheduler_service.core.group import Rollout
from scheduler_service.core.run import Run

T = TypeVar("T")

RUN = TypeAdapter(Run)
ROLLOUTS = TypeAdapter(tuple[Rollout, ...])
INDEXES = TypeAdapter(tuple[int, ...])


def to_text(adapter: TypeAdapter[T], value: T) -> str:
    """JSON text. Values at their defaults are left out: a waiting member takes a dozen bytes."""
    return adapter.dump_json(value, exclude_defaults=True).decode()


def from_text(adapter: TypeAdapter[T], text: str) -> T:
    """CORRUPT when the text is not such a record."""
    try:
        return adapter.validate_json(text)
    except ValidationError as error:
        raise JourneymanError(ErrorCode.CORRUPT, f"the scheduler's ledger holds a damaged record: {error}") from error


def task_to_bytes(task: Task) -> bytes:
    """A serialised jm.common.v1.Task."""
    return task_to_proto(task).SerializeToString()


def task_from_bytes(data: bytes) -> Task:
    """CORRUPT when the bytes are no task."""
    try:
        return task_from_proto(common.Task.FromString(data))
    except DecodeError as error:
        raise JourneymanError(ErrorCode.CORRUPT, f"the scheduler's ledger holds a damaged task: {error}") from error
