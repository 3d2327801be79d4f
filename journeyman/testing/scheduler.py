"""FakeScheduler: the scheduler's worker-facing calls with a script instead of decisions. For tests of rollout workers; keeps what it was told."""

import time
from collections import deque
from collections.abc import Sequence

import grpc
from jm.scheduler.v1 import scheduler_pb2 as pb
from jm.scheduler.v1.scheduler_pb2_grpc import SchedulerServiceServicer

from journeyman.convert import seconds_to_duration, selector_to_proto, task_to_proto, timestamp_from_unix_s
from journeyman.records import PolicySelector, Task

RETRY_AFTER_S = 0.01


class FakeScheduler(SchedulerServiceServicer):
    """Leases whole groups in the order they were added, as far as the worker has room; never leases again what came back."""

    def __init__(self, *, lease_s: float = 30.0) -> None:
        self._lease_s = lease_s
        self._waiting: deque[pb.GroupLease] = deque()
        self.asked: list[pb.LeaseRequest] = []
        """Every call for work."""
        self.renewed: list[pb.RenewRequest] = []
        self.returned: list[pb.ReturnRequest] = []
        self.lost: set[tuple[str, int, int]] = set()
        """(group, index, attempt) that the next renewals say are lost."""

    def add(
        self,
        task: Task,
        policy: PolicySelector,
        *,
        group_id: str,
        run_id: str = "run",
        size: int = 4,
        attempt: int = 1,
        temperature: float = 1.0,
    ) -> None:
        """One group to be leased."""
        self._waiting.append(
            pb.GroupLease(
                group_id=group_id,
                run_id=run_id,
                task=task_to_proto(task),
                policy=selector_to_proto(policy),
                rollouts=[pb.LeasedRollout(index=index, attempt=attempt, seed=index) for index in range(size)],
                temperature=temperature,
            )
        )

    def returns_of(self, group_id: str) -> Sequence[pb.ReturnRequest]:
        """Returns that hold members of the group."""
        return [request for request in self.returned if any(name.group_id == group_id for name in request.attempts)]

    async def Lease(
        self, request: pb.LeaseRequest, context: grpc.aio.ServicerContext[pb.LeaseRequest, pb.LeaseResponse]
    ) -> pb.LeaseResponse:
        self.asked.append(request)
        room, leases = request.max_rollouts, []
        while self._waiting and len(self._waiting[0].rollouts) <= room:
            lease = self._waiting.popleft()
            lease.until.CopyFrom(timestamp_from_unix_s(time.time() + self._lease_s))
            room -= len(lease.rollouts)
            leases.append(lease)
        if leases:
            return pb.LeaseResponse(leases=leases)
        return pb.LeaseResponse(retry_after=seconds_to_duration(RETRY_AFTER_S), idle_cause="no_run")

    async def Renew(
        self, request: pb.RenewRequest, context: grpc.aio.ServicerContext[pb.RenewRequest, pb.RenewResponse]
    ) -> pb.RenewResponse:
        self.renewed.append(request)
        lost = [name for name in request.attempts if (name.group_id, name.index, name.attempt) in self.lost]
        return pb.RenewResponse(until=timestamp_from_unix_s(time.time() + self._lease_s), lost=lost)

    async def Return(
        self, request: pb.ReturnRequest, context: grpc.aio.ServicerContext[pb.ReturnRequest, pb.ReturnResponse]
    ) -> pb.ReturnResponse:
        self.returned.append(request)
        return pb.ReturnResponse()
