"""Verdict: what the ladder said of one trajectory. Its status is apart from its score; only graded may train."""

from dataclasses import dataclass
from enum import StrEnum

from journeyman.records.attribution import Attribution


class VerdictStatus(StrEnum):
    """Whether there is a score at all."""

    GRADED = "graded"
    BAD_TASK = "bad_task"
    VERIFIER_ERROR = "verifier_error"
    TIMED_OUT = "timed_out"


@dataclass(frozen=True, slots=True, kw_only=True)
class TierResult:
    """What one tier said."""

    tier: str
    score: float
    """0..1."""
    decided: bool
    """Whether the verdict is settled and dearer tiers are skipped."""
    evidence: str
    cost_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The verdict on one member of a group."""

    index: int
    attempt: int
    status: VerdictStatus
    score: float
    """Outcome, 0..1; meaningful only where graded."""
    passed: bool
    partial: float
    """Partial credit, 0..1, orders failures; meaningful only where graded."""
    attribution: Attribution
    tier: str
    reason: str
    tiers: tuple[TierResult, ...]
    num_turns: int
    num_sampled_tokens: int
