"""Knobs of this deployment, from VERIFIER_*."""

from pydantic import Field
from pydantic_settings import SettingsConfigDict

from journeyman.settings import ServiceSettings


class VerifierSettings(ServiceSettings):
    """Settings of the verifier."""

    model_config = SettingsConfigDict(env_prefix="VERIFIER_")

    sandbox: str | None = None
    """host:port of the sandbox; without one, domains that run programs are not judged."""
    graders: int = Field(default=1, ge=1, le=64)
    """Processes for the tiers that run no programs."""
    grader_timeout_s: float = Field(default=10.0, gt=0)
    """Longest time for all light tiers of one group; then the process is killed."""
    grader_memory_bytes: int = Field(default=4 << 30, ge=1 << 30)
    """Address space of one such process."""
    box_timeout_s: float = Field(default=30.0, gt=0)
    """Longest time for the tiers of one member in its box, waiting for the sandbox included."""
    box_lease_s: float = Field(default=60.0, ge=1, le=3600)
    """Life of a box that is not destroyed."""
    patience_s: float = Field(default=60.0, ge=0)
    """How long a sandbox that fails is tried again before the verdict is verifier_error."""
