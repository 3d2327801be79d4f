"""What a job is and where it stands; stored as JSON beside its checkpoints."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from journeyman.records import PolicyRef


class JobState(StrEnum):
    """Where a job is."""

    WAITING = "waiting"
    RUNNING = "running"
    DONE = "done"
    STOPPED = "stopped"
    FAILED = "failed"

    @property
    def is_over(self) -> bool:
        """Nothing follows."""
        return self in (JobState.DONE, JobState.STOPPED, JobState.FAILED)


@dataclass(frozen=True, slots=True, kw_only=True)
class InitSpec:
    """Make a model and its tokenizer, or take one from a Hugging Face folder."""

    seed: int
    domains: tuple[str, ...]
    from_path: str
    """Empty means make one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SftSpec:
    """Cold start."""

    base: PolicyRef
    domains: tuple[str, ...]
    num_steps: int
    num_episodes: int
    seed: int
    checkpoint_every: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RlSpec:
    """Reinforcement learning on the groups of a run."""

    base: PolicyRef
    run_id: str
    num_steps: int
    groups_per_step: int
    min_groups: int
    max_wait_s: float
    learning_rate: float
    checkpoint_every: int
    seed: int


JobKind = InitSpec | SftSpec | RlSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A job as it stands."""

    job_id: str
    kind: JobKind
    state: JobState = JobState.WAITING
    number: int = 0
    """Order of arrival; the lowest waiting one runs next."""
    num_steps_done: int = 0
    policy: PolicyRef | None = None
    metrics: Mapping[str, float] = field(default_factory=dict)
    error: str = ""
    stop_requested: bool = False
