"""Gathers programs for boxes into calls: what is started in one tick of the event loop travels in one RunBatch. Used by SandboxBoxes."""

import asyncio
from collections.abc import Sequence

import grpc
from jm.sandbox.v1 import sandbox_pb2 as pb
from jm.sandbox.v1.sandbox_pb2_grpc import SandboxServiceStub

from journeyman.boxes.convert import run_result_from_proto
from journeyman.boxes.port import BoxFailure, RunResult
from journeyman.convert.times import seconds_from_duration
from journeyman.errors import JourneymanError

MAX_BATCH = 256
"""Runs in one RunBatch."""
QUEUE_ALLOWANCE_S = 60.0
"""What a batch may wait in the service beyond its longest program before the call counts as lost."""


class RunBatches:
    """Gathers runs handed in during one tick of the event loop into one call."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        self._stub = SandboxServiceStub(channel)
        self._waiting: list[tuple[pb.RunRequest, asyncio.Future[RunResult]]] = []
        self._calls: set[asyncio.Task[None]] = set()

    async def submit(self, request: pb.RunRequest) -> RunResult:
        """Result of one run. BoxFailure where the call is lost."""
        loop = asyncio.get_running_loop()
        if not self._waiting:
            loop.call_soon(self._send)
        future: asyncio.Future[RunResult] = loop.create_future()
        self._waiting.append((request, future))
        return await future

    def _send(self) -> None:
        waiting, self._waiting = self._waiting, []
        for start in range(0, len(waiting), MAX_BATCH):
            call = asyncio.get_running_loop().create_task(self._call(waiting[start : start + MAX_BATCH]))
            self._calls.add(call)
            call.add_done_callback(self._calls.discard)

    async def _call(self, batch: Sequence[tuple[pb.RunRequest, "asyncio.Future[RunResult]"]]) -> None:
        runs = [request for request, _ in batch]
        timeout_s = QUEUE_ALLOWANCE_S + max(seconds_from_duration(run.timeout) for run in runs)
        try:
            answer = await self._stub.RunBatch(pb.RunBatchRequest(runs=runs), timeout=timeout_s)
            results = [run_result_from_proto(result) for result in answer.results]
        except JourneymanError as error:
            for _, future in batch:
                if not future.done():
                    future.set_exception(BoxFailure(str(error)))
            return
        for (_, future), result in zip(batch, results, strict=True):
            if not future.done():
                future.set_result(result)
