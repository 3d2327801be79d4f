"""The release gate: may a candidate replace the champion? Pure; called by the app with the results of two paired evaluations.

Invariants: a task excluded on either side enters no statistic; every domain of the evaluations is judged, and one without pairs
counts as not shown (it fails closed); the candidate is promoted only when no domain is left in doubt.
"""

from collections.abc import Mapping, Sequence

from registry_service.core.paired_score import holm_rejections, non_inferiority_p
from registry_service.core.records import DomainDecision, TaskResult


def compare_domains(
    domains: Sequence[str],
    candidate: Sequence[TaskResult],
    champion: Sequence[TaskResult],
    *,
    margin: float,
    alpha: float,
) -> tuple[DomainDecision, ...]:
    """The gate's word on each domain, in the order given."""
    pairs = _pair(candidate, champion)
    counts = [_count(pairs.get(domain, ())) for domain in domains]
    p_values = [non_inferiority_p(won, lost, num_pairs, margin) for won, lost, num_pairs in counts]
    shown = holm_rejections(p_values, alpha)
    return tuple(
        DomainDecision(
            domain=domain,
            difference=(won - lost) / num_pairs if num_pairs else 0.0,
            p_value=p_value,
            is_non_inferior=is_shown,
            num_pairs=num_pairs,
        )
        for domain, (won, lost, num_pairs), p_value, is_shown in zip(domains, counts, p_values, shown, strict=True)
    )


def verdict(domains: Sequence[DomainDecision], *, margin: float) -> tuple[bool, str]:
    """Whether to promote, and why in one line."""
    doubtful = [decision for decision in domains if not decision.is_non_inferior]
    if not doubtful:
        return True, f"no domain is worse by {margin:g} or more ({len(domains)} domains)"
    named = ", ".join(f"{decision.domain} ({_explain(decision)})" for decision in doubtful)
    return False, f"not shown to be within {margin:g} of the champion: {named}"


def _explain(decision: DomainDecision) -> str:
    if decision.num_pairs == 0:
        return "no paired tasks"
    return f"{decision.difference:+.3f}, p={decision.p_value:.3g}, {decision.num_pairs} pairs"


def _pair(
    candidate: Sequence[TaskResult], champion: Sequence[TaskResult]
) -> Mapping[str, Sequence[tuple[TaskResult, TaskResult]]]:
    """Results of tasks graded on both sides, by domain."""
    by_task = {result.task_id: result for result in champion if result.graded}
    pairs: dict[str, list[tuple[TaskResult, TaskResult]]] = {}
    for result in candidate:
        other = by_task.get(result.task_id)
        if result.graded and other is not None:
            pairs.setdefault(result.domain, []).append((result, other))
    return pairs


def _count(pairs: Sequence[tuple[TaskResult, TaskResult]]) -> tuple[int, int, int]:
    """Tasks that only the candidate solved, that only the champion solved, and all."""
    won = sum(mine.passed and not theirs.passed for mine, theirs in pairs)
    lost = sum(theirs.passed and not mine.passed for mine, theirs in pairs)
    return won, lost, len(pairs)
