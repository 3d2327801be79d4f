"""Deployment knobs of a rollout worker: ROLLOUT_* in the environment."""

from enum import StrEnum

from pydantic import Field
from pydantic_settings import SettingsConfigDict

from journeyman.settings import ServiceSettings


class EngineKind(StrEnum):
    """What generates."""

    TORCH = "torch"
    SCRIPTED = "scripted"
    """Plays the domains' demonstrators; for tests of everything around the model."""


class RolloutSettings(ServiceSettings):
    """Read once by __main__."""

    model_config = SettingsConfigDict(env_prefix="ROLLOUT_")

    scheduler: str = "127.0.0.1:50051"
    """host:port of the scheduler, which says what to play."""
    sandbox: str = "127.0.0.1:50053"
    """host:port of the sandbox, where tools run programs."""
    worker_id: str = ""
    """Name towards the scheduler; empty makes one from host and process."""
    engine: EngineKind = EngineKind.TORCH
    slots: int = Field(default=320, ge=1)
    """Episodes in play at most."""
    max_tokens: int = Field(default=256, ge=8)
    """Longest sequence, in tokens, that a slot holds; tasks that allow more are given back."""
    threads: int = Field(default=1, ge=1)
    """Threads of a tensor operation while a run trains."""
    eval_threads: int = Field(default=2, ge=1)
    """The same while a pinned policy is played: the trainer is idle then."""
    recompute_on_swap: bool = False
    """Whether episodes in flight have their cache recomputed when new weights arrive. Off, their next tokens attend to keys and values
    of the weights before, and their log-probabilities are those of that mixture."""
    member_wall_s: float = Field(default=120.0, gt=0)
    """An episode that takes longer is an infrastructure failure, not a score."""
    box_lease_s: float = Field(default=600.0, gt=0)
    """Time to live of boxes, should this worker die."""
    drain_grace_s: float = Field(default=3.0, ge=0)
    """How long episodes may go on after a request to stop."""
    scripted_turn_s: float = Field(default=0.01, ge=0)
    """How long the scripted engine takes for a turn."""
