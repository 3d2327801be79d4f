"""gRPC edge of the scheduler: convert in, call the app, convert out."""

import grpc
from jm.common.v1 import common_pb2 as common
from jm.scheduler.v1 import scheduler_pb2 as pb
from jm.scheduler.v1.scheduler_pb2_grpc import SchedulerServiceServicer

from journeyman.convert import attribution_from_proto, seconds_to_duration, task_from_proto, timestamp_from_unix_s
from journeyman.errors import ErrorCode, JourneymanError
from scheduler_service.app import Scheduler
from scheduler_service.convert import (
    ask_from_proto,
    attempt_from_proto,
    attempt_to_proto,
    group_to_proto,
    lease_to_proto,
    run_to_proto,
    spec_from_proto,
    status_to_proto,
)
from scheduler_service.views import Nothing

RETRY_AFTER_S = 0.02
"""Short, because the call itself waits where there is nothing."""
DEADLINE_RESERVE_S = 0.1
"""A waiting Lease answers so long before its caller would give up."""


class SchedulerServicer(SchedulerServiceServicer):
    """Implements jm.scheduler.v1.SchedulerService."""

    def __init__(self, app: Scheduler, lease_wait_s: float) -> None:
        self._app = app
        self._lease_wait_s = lease_wait_s

    async def CreateRun(
        self,
        request: pb.CreateRunRequest,
        context: grpc.aio.ServicerContext[pb.CreateRunRequest, pb.CreateRunResponse],
    ) -> pb.CreateRunResponse:
        return pb.CreateRunResponse(run=run_to_proto(await self._app.create_run(spec_from_proto(request.spec))))

    async def GetRun(
        self, request: pb.GetRunRequest, context: grpc.aio.ServicerContext[pb.GetRunRequest, pb.GetRunResponse]
    ) -> pb.GetRunResponse:
        return pb.GetRunResponse(run=run_to_proto(await self._app.get_run(request.run_id)))

    async def CloseRun(
        self, request: pb.CloseRunRequest, context: grpc.aio.ServicerContext[pb.CloseRunRequest, pb.CloseRunResponse]
    ) -> pb.CloseRunResponse:
        view = await self._app.close_run(request.run_id, cancels=request.cancel)
        return pb.CloseRunResponse(run=run_to_proto(view))

    async def SubmitTasks(
        self,
        request: pb.SubmitTasksRequest,
        context: grpc.aio.ServicerContext[pb.SubmitTasksRequest, pb.SubmitTasksResponse],
    ) -> pb.SubmitTasksResponse:
        tasks = [task_from_proto(task) for task in request.tasks]
        num_accepted = await self._app.submit_tasks(request.run_id, tasks)
        return pb.SubmitTasksResponse(num_accepted=num_accepted, num_duplicates=len(tasks) - num_accepted)

    async def ListGroups(
        self,
        request: pb.ListGroupsRequest,
        context: grpc.aio.ServicerContext[pb.ListGroupsRequest, pb.ListGroupsResponse],
    ) -> pb.ListGroupsResponse:
        below = _page_start(request.page_token)
        groups = await self._app.list_groups(request.run_id, below=below, limit=request.page_size, state=request.state)
        token = str(groups[-1].number) if groups and groups[-1].number > 0 else ""
        return pb.ListGroupsResponse(groups=[group_to_proto(group) for group in groups], next_page_token=token)

    async def Lease(
        self, request: pb.LeaseRequest, context: grpc.aio.ServicerContext[pb.LeaseRequest, pb.LeaseResponse]
    ) -> pb.LeaseResponse:
        remaining_s = context.time_remaining()
        wait_s = self._lease_wait_s
        if remaining_s is not None:
            wait_s = min(wait_s, max(0.0, remaining_s - DEADLINE_RESERVE_S))
        booked = {item.cause: item.seconds for item in request.slot_seconds}
        answer = await self._app.lease(ask_from_proto(request), booked, wait_s)
        if isinstance(answer, Nothing):
            return pb.LeaseResponse(retry_after=seconds_to_duration(RETRY_AFTER_S), idle_cause=answer.cause.value)
        return pb.LeaseResponse(leases=[lease_to_proto(leased) for leased in answer])

    async def Renew(
        self, request: pb.RenewRequest, context: grpc.aio.ServicerContext[pb.RenewRequest, pb.RenewResponse]
    ) -> pb.RenewResponse:
        names = [attempt_from_proto(attempt) for attempt in request.attempts]
        until_s, lost = await self._app.renew(request.worker_id, names)
        return pb.RenewResponse(until=timestamp_from_unix_s(until_s), lost=[attempt_to_proto(name) for name in lost])

    async def Return(
        self, request: pb.ReturnRequest, context: grpc.aio.ServicerContext[pb.ReturnRequest, pb.ReturnResponse]
    ) -> pb.ReturnResponse:
        is_failure = request.attribution != common.ATTRIBUTION_UNSPECIFIED
        cause = attribution_from_proto(request.attribution) if is_failure else None
        await self._app.give_back(
            request.worker_id, [attempt_from_proto(attempt) for attempt in request.attempts], cause
        )
        return pb.ReturnResponse()

    async def GetStatus(
        self, request: pb.GetStatusRequest, context: grpc.aio.ServicerContext[pb.GetStatusRequest, pb.GetStatusResponse]
    ) -> pb.GetStatusResponse:
        return status_to_proto(await self._app.status())


def _page_start(token: str) -> int | None:
    if not token:
        return None
    if not token.isdigit():
        raise JourneymanError(
            ErrorCode.INVALID_INPUT, f"page_token={token!r}: use the next_page_token of the answer before"
        )
    return int(token)
