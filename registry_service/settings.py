"""Deployment knobs of the registry: REGISTRY_* in the environment."""

from pydantic_settings import SettingsConfigDict

from journeyman.settings import ServiceSettings


class RegistrySettings(ServiceSettings):
    """Read once by __main__."""

    model_config = SettingsConfigDict(env_prefix="REGISTRY_")

    ledger: str = "sqlite:///ledger.db"
    """SQLAlchemy URL: sqlite:///PATH or postgresql+psycopg://USER:PASSWORD@HOST:PORT/NAME."""
    scheduler: str = "127.0.0.1:50051"
    """host:port of the scheduler, which plays the evaluations."""
    admission_slots: int = 400
    """Evaluation groups in flight at most; more than the rollout workers' episode slots together, so that they never idle."""
    retry_budget: int = 3
    """Leases that one evaluation rollout may lose to infrastructure before its task is excluded."""
    lease_s: float = 60.0
    """Life of an evaluation lease without renewal."""
