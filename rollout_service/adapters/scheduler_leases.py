"""SchedulerLeases: the scheduler over gRPC. A lease that cannot be read is given back at once, so that it does not wait for its end."""

import logging
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from jm.common.v1 import common_pb2 as common
from jm.scheduler.v1 import scheduler_pb2 as pb

from journeyman.convert import (
    attribution_to_proto,
    policy_ref_to_proto,
    seconds_from_duration,
    selector_from_proto,
    task_from_proto,
    unix_s_from_timestamp,
)
from journeyman.errors import JourneymanError
from journeyman.records import Attribution, PolicyRef
from rollout_service.core.records import Attempt, Grant, GroupLease, Member

if TYPE_CHECKING:
    from jm.scheduler.v1.scheduler_pb2_grpc import SchedulerServiceAsyncStub

log = logging.getLogger(__name__)


class SchedulerLeases:
    """See the Leases port."""

    def __init__(self, stub: "SchedulerServiceAsyncStub", worker_id: str) -> None:
        self._stub, self._worker_id = stub, worker_id

    async def lease(
        self, *, max_rollouts: int, loaded: PolicyRef | None, is_idle: bool, slot_seconds: Mapping[str, float]
    ) -> Grant:
        response = await self._stub.Lease(
            pb.LeaseRequest(
                worker_id=self._worker_id,
                max_rollouts=max_rollouts,
                loaded=policy_ref_to_proto(loaded) if loaded else None,
                is_idle=is_idle,
                slot_seconds=[pb.SlotSeconds(cause=cause, seconds=seconds) for cause, seconds in slot_seconds.items()],
            )
        )
        leases: list[GroupLease] = []
        for message in response.leases:
            try:
                leases.append(lease_from_proto(message, time.time()))
            except JourneymanError as error:
                log.error("lease cannot be read", extra={"group_id": message.group_id, "reason": error.message})
                await self.give_back(_attempts(message), Attribution.BAD_TASK, error.message)
        return Grant(leases=tuple(leases), retry_after_s=seconds_from_duration(response.retry_after))

    async def renew(self, attempts: Sequence[Attempt]) -> tuple[Attempt, ...]:
        response = await self._stub.Renew(
            pb.RenewRequest(worker_id=self._worker_id, attempts=[_to_proto(attempt) for attempt in attempts])
        )
        return tuple(Attempt(group_id=lost.group_id, index=lost.index, attempt=lost.attempt) for lost in response.lost)

    async def give_back(self, attempts: Sequence[Attempt], attribution: Attribution | None, detail: str) -> None:
        await self._stub.Return(
            pb.ReturnRequest(
                worker_id=self._worker_id,
                attempts=[_to_proto(attempt) for attempt in attempts],
                attribution=attribution_to_proto(attribution) if attribution else common.ATTRIBUTION_UNSPECIFIED,
                detail=detail[:500],
            )
        )


def lease_from_proto(message: pb.GroupLease, now_unix_s: float) -> GroupLease:
    """INVALID_INPUT names what is wrong with it. The life is counted from now, on this machine's clock."""
    return GroupLease(
        group_id=message.group_id,
        run_id=message.run_id,
        task=task_from_proto(message.task),
        policy=selector_from_proto(message.policy),
        members=tuple(
            Member(index=rollout.index, attempt=rollout.attempt, seed=rollout.seed) for rollout in message.rollouts
        ),
        life_s=max(0.0, unix_s_from_timestamp(message.until) - now_unix_s),
        temperature=message.temperature,
    )


def _attempts(message: pb.GroupLease) -> list[Attempt]:
    return [
        Attempt(group_id=message.group_id, index=rollout.index, attempt=rollout.attempt) for rollout in message.rollouts
    ]


def _to_proto(attempt: Attempt) -> pb.RolloutAttempt:
    return pb.RolloutAttempt(group_id=attempt.group_id, index=attempt.index, attempt=attempt.attempt)
