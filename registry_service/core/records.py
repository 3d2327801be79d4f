"""What the registry remembers: policies with their standing, evaluations with their results, decisions of the gate."""

from dataclasses import dataclass
from enum import StrEnum

from journeyman.records import PolicyRef


class Standing(StrEnum):
    """Where a policy stands. At most one policy is champion."""

    PUBLISHED = "published"
    CHAMPION = "champion"
    FORMER_CHAMPION = "former_champion"
    REJECTED = "rejected"


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyEntry:
    """A policy on record."""

    ref: PolicyRef
    parent: PolicyRef | None
    """None for a model made from nothing."""
    made_by: str
    """init | sft | rl; empty while its policy.published has not arrived."""
    standing: Standing


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationSpec:
    """What was asked for; immutable under its id."""

    evaluation_id: str
    """Also the id of the evaluation's run at the scheduler."""
    policy: PolicyRef
    domains: tuple[str, ...]
    """Sorted, no repeats."""
    tasks_per_domain: int
    seed: int
    temperature: float
    """0 means greedy."""

    @property
    def num_tasks(self) -> int:
        """Tasks over all domains."""
        return len(self.domains) * self.tasks_per_domain

    def is_paired_with(self, other: "EvaluationSpec") -> bool:
        """Whether both ask for the same tasks played the same way, so that results may be compared task by task."""
        return (self.domains, self.tasks_per_domain, self.seed, self.temperature) == (
            other.domains,
            other.tasks_per_domain,
            other.seed,
            other.temperature,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskResult:
    """How one task of an evaluation came out."""

    group_id: str
    """The group that played it; redelivery repeats it."""
    task_id: str
    domain: str
    graded: bool
    """False: excluded for infrastructure or a bad task; enters no statistic."""
    passed: bool
    score: float
    """0..1; meaningful only where graded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DomainDecision:
    """The gate's word on one domain."""

    domain: str
    difference: float
    """Candidate's success minus champion's over paired tasks; 0 without pairs."""
    p_value: float
    """One-sided p-value of "worse by at least the margin", before correction."""
    is_non_inferior: bool
    """After correction over all domains."""
    num_pairs: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """A decision of the gate; immutable under its id."""

    decision_id: str
    candidate_evaluation_id: str
    champion_evaluation_id: str
    """Empty where there was no champion."""
    candidate: PolicyRef
    promoted: bool
    reason: str
    domains: tuple[DomainDecision, ...]
    """Empty where there was no champion."""
