"""The figures of a quickstart for machines: result.json and --json. Every counter is computed by the scheduler from its ledger."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path

from jm.events.v1 import events_pb2 as events
from jm.registry.v1 import registry_pb2 as registry
from jm.scheduler.v1 import scheduler_pb2 as scheduler

from journeyman.quickstart.journal import JsonValue, Stage, StageCost
from journeyman.quickstart.pipeline import Outcome


def build_result(seed: int, outcome: Outcome, costs: Mapping[Stage, StageCost], out: Path) -> dict[str, JsonValue]:
    """Exactly the documented form."""
    return {
        "seed": seed,
        "domains": _domains(outcome.before, outcome.after),
        "seconds": {stage.value: round(cost.wall_s, 2) for stage, cost in costs.items()},
        "groups": {
            "admitted": sum(run.groups.admitted for run in outcome.runs),
            "committed": sum(run.groups.committed for run in outcome.runs),
            "closed": sum(run.groups.closed for run in outcome.runs),
            "dropped": sum(run.groups.dropped for run in outcome.runs),
        },
        "requeued_rollouts": sum(run.requeued_rollouts for run in outcome.runs),
        "trajectories": sum(run.trajectories for run in outcome.runs),
        "tokens": sum(run.sampled_tokens for run in outcome.runs),
        "lost_groups": sum(run.lost_groups for run in outcome.runs),
        "infra_failures_in_advantages": sum(run.infra_failures_in_advantages for run in outcome.runs),
        "out": str(out),
    }


def to_json(result: Mapping[str, JsonValue]) -> str:
    """As it is written to files."""
    return json.dumps(result, indent=2, ensure_ascii=False) + "\n"


def drops_by_reason(runs: Iterable[scheduler.Run]) -> dict[str, int]:
    """Dropped groups by reason, over all runs."""
    totals: dict[str, int] = {}
    for run in runs:
        for drop in run.drops:
            word = events.DropReason.Name(drop.reason).removeprefix("DROP_REASON_").lower()
            totals[word] = totals.get(word, 0) + drop.count
    return totals


def _domains(before: registry.Evaluation, after: registry.Evaluation) -> dict[str, JsonValue]:
    scores = {score.domain: score for score in after.domains}
    return {
        score.domain: {
            "before": _share(score),
            "after": _share(scores[score.domain]),
            "n": min(score.num_graded, scores[score.domain].num_graded),
        }
        for score in before.domains
    }


def _share(score: registry.DomainScore) -> float | None:
    """Success among graded tasks; None where none was graded."""
    return round(score.num_passed / score.num_graded, 4) if score.num_graded else None
