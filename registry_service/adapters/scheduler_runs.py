"""Evaluations as EVAL runs at the scheduler, over gRPC. Implements ports.EvaluationRuns."""

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from google.protobuf.duration_pb2 import Duration
from jm.common.v1 import common_pb2 as common
from jm.scheduler.v1 import scheduler_pb2 as scheduler

from journeyman.convert import policy_ref_to_proto
from registry_service.core.records import EvaluationSpec
from registry_service.ports import RunOutcome

if TYPE_CHECKING:  # the generated module has this class for type checkers only
    from jm.scheduler.v1.scheduler_pb2_grpc import SchedulerServiceAsyncStub


@dataclass(frozen=True, slots=True, kw_only=True)
class RunLimits:
    """How evaluations are played: the deployment's choice, the same for all of them."""

    admission_slots: int
    retry_budget: int
    lease_s: float


class SchedulerRuns:
    """One evaluation is one run under the evaluation's id."""

    def __init__(self, stub: "SchedulerServiceAsyncStub", limits: RunLimits) -> None:
        self._stub = stub
        self._limits = limits

    async def start(self, spec: EvaluationSpec) -> None:
        await self._stub.CreateRun(scheduler.CreateRunRequest(spec=self._run_spec(spec)))

    async def outcome(self, evaluation_id: str) -> RunOutcome:
        answer = await self._stub.GetRun(scheduler.GetRunRequest(run_id=evaluation_id))
        return RunOutcome(is_over=answer.run.state == scheduler.RUN_STATE_FINISHED, num_closed=answer.run.groups.closed)

    def _run_spec(self, spec: EvaluationSpec) -> scheduler.RunSpec:
        lease = Duration()
        lease.FromTimedelta(timedelta(seconds=self._limits.lease_s))
        return scheduler.RunSpec(
            run_id=spec.evaluation_id,
            kind=scheduler.RUN_KIND_EVAL,
            domains=[scheduler.DomainShare(domain=domain, num_groups=spec.tasks_per_domain) for domain in spec.domains],
            split=common.SPLIT_HELDOUT,
            policy=common.PolicySelector(pinned=policy_ref_to_proto(spec.policy)),
            group_size=1,
            admission_slots=self._limits.admission_slots,
            retry_budget=self._limits.retry_budget,
            lease=lease,
            seed=spec.seed,
            temperature=spec.temperature,
        )
