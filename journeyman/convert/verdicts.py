"""Verdicts. The wire form also says which object was judged; that travels beside the record."""

from jm.events.v1 import events_pb2 as ev

from journeyman.convert.enums import (
    attribution_from_proto,
    attribution_to_proto,
    verdict_status_from_proto,
    verdict_status_to_proto,
)
from journeyman.convert.tasks import object_ref_to_proto
from journeyman.records import ObjectRef, TierResult, Verdict


def verdict_to_proto(verdict: Verdict, judged: ObjectRef | None = None) -> ev.Verdict:
    """`judged` is the object that holds the trajectory; None leaves the field absent."""
    return ev.Verdict(
        index=verdict.index,
        attempt=verdict.attempt,
        status=verdict_status_to_proto(verdict.status),
        score=verdict.score,
        passed=verdict.passed,
        partial=verdict.partial,
        attribution=attribution_to_proto(verdict.attribution),
        tier=verdict.tier,
        reason=verdict.reason,
        tiers=[
            ev.TierResult(tier=t.tier, score=t.score, decided=t.decided, evidence=t.evidence, cost_s=t.cost_s)
            for t in verdict.tiers
        ],
        num_turns=verdict.num_turns,
        num_sampled_tokens=verdict.num_sampled_tokens,
        object=object_ref_to_proto(judged) if judged else None,
    )


def verdict_from_proto(message: ev.Verdict) -> Verdict:
    """INVALID_INPUT for an unknown status or attribution."""
    return Verdict(
        index=message.index,
        attempt=message.attempt,
        status=verdict_status_from_proto(message.status),
        score=message.score,
        passed=message.passed,
        partial=message.partial,
        attribution=attribution_from_proto(message.attribution),
        tier=message.tier,
        reason=message.reason,
        tiers=tuple(
            TierResult(tier=t.tier, score=t.score, decided=t.decided, evidence=t.evidence, cost_s=t.cost_s)
            for t in message.tiers
        ),
        num_turns=message.num_turns,
        num_sampled_tokens=message.num_sampled_tokens,
    )
