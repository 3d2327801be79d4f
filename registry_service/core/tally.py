"""Sums of an evaluation: how many tasks of each domain were graded, solved, excluded, and whether all are in."""

from collections.abc import Sequence
from dataclasses import dataclass

from registry_service.core.records import EvaluationSpec, TaskResult


@dataclass(frozen=True, slots=True, kw_only=True)
class DomainTally:
    """Results of one domain."""

    domain: str
    num_graded: int
    num_passed: int
    num_excluded: int
    """Excluded for infrastructure or a bad task."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """An evaluation as it stands."""

    spec: EvaluationSpec
    domains: tuple[DomainTally, ...]
    is_complete: bool


def tally(spec: EvaluationSpec, results: Sequence[TaskResult], *, run_is_over: bool) -> Tally:
    """Sums by domain. When the run is over, tasks that never came back (their group was dropped) count as excluded."""
    domains = tuple(_domain(name, spec, results, run_is_over=run_is_over) for name in spec.domains)
    num_settled = sum(domain.num_graded + domain.num_excluded for domain in domains)
    return Tally(spec=spec, domains=domains, is_complete=num_settled >= spec.num_tasks)


def _domain(name: str, spec: EvaluationSpec, results: Sequence[TaskResult], *, run_is_over: bool) -> DomainTally:
    mine = [result for result in results if result.domain == name]
    num_graded = sum(result.graded for result in mine)
    num_missing = max(spec.tasks_per_domain - len(mine), 0)
    return DomainTally(
        domain=name,
        num_graded=num_graded,
        num_passed=sum(result.graded and result.passed for result in mine),
        num_excluded=len(mine) - num_graded + (num_missing if run_is_over else 0),
    )
