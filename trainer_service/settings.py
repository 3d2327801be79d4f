"""Deployment knobs of the trainer: TRAINER_* in the environment."""

from pydantic_settings import SettingsConfigDict

from journeyman.settings import ServiceSettings


class TrainerSettings(ServiceSettings):
    """Read once by __main__."""

    model_config = SettingsConfigDict(env_prefix="TRAINER_")

    sft_threads: int = 2
    """torch threads in the cold start, when nothing else computes."""
    rl_threads: int = 1
    """torch threads in RL, when the engine computes beside it."""
