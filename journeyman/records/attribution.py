"""Who answers for an ending: the closed taxonomy that sandbox, rollout, verifier, scheduler and trainer share."""

from enum import StrEnum


class Attribution(StrEnum):
    """Class of an ending. Only POLICY and BUDGET are evidence about the model."""

    POLICY = "policy"
    BUDGET = "budget"
    SANDBOX = "sandbox"
    VERIFIER = "verifier"
    ENGINE = "engine"
    SCHEDULER = "scheduler"
    STORAGE = "storage"
    BAD_TASK = "bad_task"

    @property
    def is_evidence(self) -> bool:
        """Whether the ending says something about the model and so enters the group's statistics."""
        return self in (Attribution.POLICY, Attribution.BUDGET)

    @property
    def is_infrastructure(self) -> bool:
        """Whether the ending is retried on other infrastructure and never becomes a score."""
        return not self.is_evidence and self is not Attribution.BAD_TASK
