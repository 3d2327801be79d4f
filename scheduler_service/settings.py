"""Deployment knobs of the scheduler: SCHEDULER_* in the environment."""

from pydantic import Field
from pydantic_settings import SettingsConfigDict

from journeyman.settings import ServiceSettings


class SchedulerSettings(ServiceSettings):
    """Read once by __main__."""

    model_config = SettingsConfigDict(env_prefix="SCHEDULER_", frozen=True, extra="forbid")

    ledger: str = "sqlite:///ledger.db"
    """SQLAlchemy URL: sqlite:///PATH or postgresql+psycopg://USER:PASSWORD@HOST:PORT/NAME."""
    lease_wait_s: float = Field(default=1.0, ge=0.0, le=30.0)
    """How long a Lease call may wait here until there is something to lease."""
    tick_s: float = Field(default=0.5, gt=0.0, le=10.0)
    """Pause between looks at leases that ran out."""
