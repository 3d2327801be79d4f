"""Use cases of the verifier: judge a recorded object, list domains.

Called by both edges. What was judged for good is stored under the object's digest and given back unchanged ever after; verdicts that
an infrastructure failure stopped are never stored, so the next delivery tries again.
"""

import asyncio
import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version

from google.protobuf import json_format
from jm.events.v1 import events_pb2 as events

from journeyman.convert import verdict_to_proto
from journeyman.errors import ErrorCode, JourneymanError
from journeyman.objects.port import Objects
from journeyman.packs.load import list_packs, load_pack
from journeyman.packs.port import DomainPack
from journeyman.records import ObjectRef, Verdict
from journeyman.trajectories import decode_group
from verifier_service.blame import grade_surely
from verifier_service.core.grading import Candidate, ClimbState, Grading
from verifier_service.core.verdicts import FINAL, verdicts_of
from verifier_service.metrics import GROUP_SECONDS, VERDICTS_TOTAL
from verifier_service.ports import Grader, GraderLost, ProgramTiers

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """Verdicts on one object."""

    verified: events.TrajectoryVerified
    is_final: bool
    """Whether judging again would give the same."""


class Verifier:
    """The app."""

    def __init__(self, objects: Objects, grader: Grader, execution: ProgramTiers | None) -> None:
        self._objects = objects
        self._grader = grader
        self._execution = execution
        self._running: dict[str, asyncio.Future[Judged]] = {}
        """Work in progress by the object's digest."""

    async def verify(self, group_id: str, ref: ObjectRef) -> Judged:
        """Judges every member of the object, once even where it is asked for twice at a time. NOT_FOUND, CORRUPT and PRECONDITION
        (another pack) pass through."""
        running = self._running.get(ref.sha256)
        if running is None:
            running = self._running[ref.sha256] = asyncio.ensure_future(self._verify(group_id, ref))
            running.add_done_callback(lambda _: self._running.pop(ref.sha256, None))
        return await asyncio.shield(running)

    def list_domains(self) -> Sequence[DomainPack]:
        """Packs on this machine, by name."""
        return list_packs()

    async def _verify(self, group_id: str, ref: ObjectRef) -> Judged:
        key = f"verdicts/{ref.sha256}.json"
        if await self._objects.exists(key):
            stored = json_format.Parse(await self._objects.get(key), events.TrajectoryVerified())
            return Judged(verified=stored, is_final=True)
        started_s = time.perf_counter()
        data = await self._objects.get_checked(ref)
        grading = await self._grade(data, ref)
        verdicts = verdicts_of(grading)
        judged = Judged(
            verified=_verified(group_id, verdicts, verifier_ref(grading.domain_ref), ref),
            is_final=all(verdict.status in FINAL for verdict in verdicts),
        )
        if judged.is_final:
            await self._objects.put(key, json_format.MessageToJson(judged.verified).encode())
        self._report(group_id, grading, verdicts, time.perf_counter() - started_s)
        return judged

    async def _grade(self, data: bytes, ref: ObjectRef) -> Grading:
        try:
            grading = await grade_surely(self._grader, data)
        except GraderLost as error:
            raise JourneymanError(ErrorCode.UNAVAILABLE, f"no grader stays alive: {error.reason}") from error
        waiting = [number for number, climb in enumerate(grading.climbs) if climb.state is ClimbState.NEEDS_BOX]
        if not waiting:
            return grading
        if self._execution is None:
            raise JourneymanError(
                ErrorCode.PRECONDITION, f"{grading.domain} runs programs; set VERIFIER_SANDBOX to a sandbox's host:port"
            )
        trajectories = decode_group(data)
        candidates = {
            number: Candidate(trajectory=trajectories[grading.positions[number]], so_far=grading.climbs[number])
            for number in waiting
        }
        finished = await self._execution.finish(load_pack(grading.domain), candidates, f"verify/{ref.sha256}")
        return grading.with_climbs(finished)

    def _report(self, group_id: str, grading: Grading, verdicts: Sequence[Verdict], seconds: float) -> None:
        GROUP_SECONDS.labels(grading.domain).observe(seconds)
        for verdict in verdicts:
            VERDICTS_TOTAL.labels(grading.domain, verdict.status).inc()
        log.info(
            "group judged",
            extra={
                "group_id": group_id,
                "domain": grading.domain,
                "num_members": len(verdicts),
                "num_distinct": len(grading.climbs),
                "num_passed": sum(verdict.passed for verdict in verdicts),
                "seconds": round(seconds, 4),
            },
        )


def verifier_ref(domain_ref: str = "") -> str:
    """Version of this program and of the pack that judged."""
    return f"verifier@{version('journeyman')} {domain_ref}".strip()


def _verified(
    group_id: str, verdicts: Sequence[Verdict], ref_of_verifier: str, judged: ObjectRef
) -> events.TrajectoryVerified:
    return events.TrajectoryVerified(
        group_id=group_id,
        verdicts=[verdict_to_proto(verdict, judged) for verdict in verdicts],
        verifier_ref=ref_of_verifier,
    )
