"""Boxes of the sandbox service over gRPC. Used by rollout workers and verifiers; domain packs see only Box.

Runs started in one tick of the event loop travel in one RunBatch. Leases are renewed in the background while boxes are open.
Whatever is no evidence about the program (INFRA_ERROR, a lost or destroyed box, an unreachable service) raises BoxFailure.
"""

import asyncio
import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from weakref import WeakKeyDictionary

import grpc
from jm.sandbox.v1 import sandbox_pb2 as pb
from jm.sandbox.v1.sandbox_pb2_grpc import SandboxServiceStub

from journeyman.boxes.convert import run_result_from_proto
from journeyman.boxes.paths import checked_path
from journeyman.boxes.port import BoxFailure, Ending, RunResult
from journeyman.convert.times import seconds_from_duration, seconds_to_duration
from journeyman.errors import ErrorCode, JourneymanError

MAX_BATCH = 256
"""Runs in one RunBatch."""
QUEUE_ALLOWANCE_S = 60.0
"""What a batch may wait in the service beyond its longest program before the call counts as lost."""
_NO_EVIDENCE = frozenset({Ending.INFRA_ERROR, Ending.KILLED_BY_CALLER})


class ClientBox:
    """A Box in the sandbox service. Made by SandboxBoxes."""

    def __init__(self, boxes: "SandboxBoxes", sandbox_id: str) -> None:
        self._boxes = boxes
        self.sandbox_id = sandbox_id
        """Its id in the service."""

    async def run_python(
        self, source: str, argv: Sequence[str] = (), *, timeout_s: float = 5.0, cpu_s: float = 2.0
    ) -> RunResult:
        """See Box."""
        program = pb.PythonProgram(source=source, argv=argv)
        return await self._run(
            pb.RunRequest(python=program, timeout=seconds_to_duration(timeout_s), cpu=seconds_to_duration(cpu_s))
        )

    async def run_command(self, argv: Sequence[str], *, timeout_s: float = 5.0, cpu_s: float = 2.0) -> RunResult:
        """See Box."""
        program = pb.Command(argv=argv)
        return await self._run(
            pb.RunRequest(command=program, timeout=seconds_to_duration(timeout_s), cpu=seconds_to_duration(cpu_s))
        )

    async def write_files(self, files: Mapping[str, bytes]) -> None:
        """See Box."""
        await self._boxes.write(self.sandbox_id, files)

    async def read_files(self, paths: Sequence[str]) -> dict[str, bytes]:
        """See Box."""
        return await self._boxes.read(self.sandbox_id, paths)

    async def _run(self, request: pb.RunRequest) -> RunResult:
        request.sandbox_id = self.sandbox_id
        result = await self._boxes.batches.submit(request)
        if result.ending in _NO_EVIDENCE:
            raise BoxFailure(result.infra_reason or f"box {self.sandbox_id} was destroyed while its program ran")
        return result


class SandboxBoxes:
    """Opens and destroys boxes of one sandbox service."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        self._stub = SandboxServiceStub(channel)
        self.batches = RunBatches(channel)
        """Where boxes hand in their runs."""
        self.isolation = ""
        """Isolation in force; empty before the first box."""
        self._lease_s_of: WeakKeyDictionary[ClientBox, float] = WeakKeyDictionary()
        """Open boxes; one that its user has dropped is not renewed any more."""
        self._renewal: asyncio.Task[None] | None = None

    async def open(self, files: Mapping[str, bytes], *, key: str, lease_s: float) -> ClientBox:
        """A box with files. Repeating key gives the same box."""
        request = pb.CreateSandboxRequest(
            idempotency_key=key, files=_box_files(files), lease=seconds_to_duration(lease_s)
        )
        with _lost_is_failure():
            created = await self._stub.CreateSandbox(request)
        self.isolation = created.isolation
        return self._keep([created.sandbox_id], lease_s)[0]

    async def open_group(self, files: Mapping[str, bytes], count: int, *, key: str, lease_s: float) -> list[ClientBox]:
        """count boxes with the same files: one made, the rest forked from it."""
        first = await self.open(files, key=key, lease_s=lease_s)
        if count == 1:
            return [first]
        request = pb.ForkSandboxRequest(
            sandbox_id=first.sandbox_id, count=count - 1, lease=seconds_to_duration(lease_s)
        )
        try:
            with _lost_is_failure():
                forked = await self._stub.ForkSandbox(request)
        except BaseException:
            await self.destroy([first])
            raise
        return [first, *self._keep(forked.sandbox_ids, lease_s)]

    async def destroy(self, boxes: Sequence[ClientBox]) -> None:
        """Destroys boxes. Where the service cannot be reached their leases end them."""
        ids = [box.sandbox_id for box in boxes]
        for box in boxes:
            self._lease_s_of.pop(box, None)
        if ids:
            with contextlib.suppress(JourneymanError):
                await self._stub.DestroySandboxes(pb.DestroySandboxesRequest(sandbox_ids=ids))

    async def close(self) -> None:
        """Stops renewing. Boxes still open end with their leases."""
        if self._renewal is not None:
            self._renewal.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._renewal
            self._renewal = None

    async def write(self, sandbox_id: str, files: Mapping[str, bytes]) -> None:
        """Writes files of a box."""
        request = pb.WriteFilesRequest(sandbox_id=sandbox_id, files=_box_files(files))
        with _lost_is_failure():
            await self._stub.WriteFiles(request)

    async def read(self, sandbox_id: str, paths: Sequence[str]) -> dict[str, bytes]:
        """Reads files of a box."""
        request = pb.ReadFilesRequest(sandbox_id=sandbox_id, paths=[checked_path(path) for path in paths])
        with _lost_is_failure():
            found = await self._stub.ReadFiles(request)
        return {file.path: file.content for file in found.files}

    def _keep(self, sandbox_ids: Iterable[str], lease_s: float) -> list[ClientBox]:
        boxes = [ClientBox(self, sandbox_id) for sandbox_id in sandbox_ids]
        self._lease_s_of.update((box, lease_s) for box in boxes)
        if self._renewal is None or self._renewal.done():
            self._renewal = asyncio.get_running_loop().create_task(self._renew())
        return boxes

    async def _renew(self) -> None:
        """Renews at a third of the shortest lease, until no box is open. A lost box shows at its next use."""
        while self._lease_s_of:
            await asyncio.sleep(min(self._lease_s_of.values()) / 3)
            ids_of: dict[float, list[str]] = {}
            for box, lease_s in list(self._lease_s_of.items()):
                ids_of.setdefault(lease_s, []).append(box.sandbox_id)
            for lease_s, ids in ids_of.items():
                request = pb.RenewLeasesRequest(sandbox_ids=ids, lease=seconds_to_duration(lease_s))
                with contextlib.suppress(JourneymanError):
                    await self._stub.RenewLeases(request)


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


def _box_files(files: Mapping[str, bytes]) -> list[pb.BoxFile]:
    return [pb.BoxFile(path=checked_path(path), content=content) for path, content in files.items()]


@contextlib.contextmanager
def _lost_is_failure() -> Iterator[None]:
    """Everything but our own wrong input is the sandbox's failure."""
    try:
        yield
    except JourneymanError as error:
        if error.code is ErrorCode.INVALID_INPUT:
            raise
        raise BoxFailure(str(error)) from error
