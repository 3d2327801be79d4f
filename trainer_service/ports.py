"""What the trainer's use cases need from outside."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from journeyman.records import PolicyRef, PolicyVersion, Trajectory
from trainer_service.core.lineage import Life
from trainer_service.core.records import Job


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadyGroup:
    """A group as the bus offers it."""

    group_id: str
    run_id: str
    domain: str
    offset: int
    """Its place on group.ready."""
    max_off_policy_steps: int
    members: Sequence["ReadyRollout"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadyRollout:
    """A graded member."""

    index: int
    attempt: int
    uri: str
    sha256: str
    num_bytes: int
    reward: float
    passed: bool


class Dropped(StrEnum):
    """Why the trainer lets a group go."""

    STALE = "stale"
    CANCELLED = "cancelled"


class JobStore(Protocol):
    """Jobs and checkpoints, durable."""

    async def jobs(self) -> list[Job]: ...

    async def save_job(self, job: Job) -> None: ...

    async def save_checkpoint(self, job_id: str, step: int, tensors: bytes, state: Mapping[str, object]) -> None:
        """The state names its tensors and is written last: it is what makes the checkpoint exist. The last two tensors are kept."""
        ...

    async def load_checkpoint(self, job_id: str) -> tuple[bytes, Mapping[str, object]] | None:
        """The newest; CORRUPT where its tensors are not those that were stored."""
        ...

    async def save_life(self, job_id: str, life: Life) -> None:
        """Replaces it; written before anybody hears of what is in it."""
        ...

    async def load_life(self, job_id: str) -> Life | None: ...


class Groups(Protocol):
    """group.ready from a chosen place on."""

    async def start(self, offset: int) -> None: ...

    async def next(self, timeout_s: float) -> Sequence[ReadyGroup]: ...

    async def close(self) -> None: ...


class Trajectories(Protocol):
    """Recorded rollouts."""

    async def of_group(self, group: ReadyGroup) -> Sequence[tuple[ReadyRollout, Trajectory]]: ...


class Facts(Protocol):
    """What the trainer tells the others. Ids are derived from the subject, so repeating is harmless."""

    async def policy_published(self, ref: PolicyRef, parent: PolicyRef | None, made_by: str) -> None: ...

    async def groups_taken(self, run_id: str, group_ids: Sequence[str], into: PolicyVersion) -> None: ...

    async def groups_committed(self, run_id: str, group_ids: Sequence[str], version: PolicyVersion) -> None: ...

    async def groups_dropped(self, run_id: str, group_ids: Sequence[str], reason: "Dropped", detail: str) -> None: ...
