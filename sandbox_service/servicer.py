"""The gRPC edge of the sandbox service: convert in, call the application, convert out."""

import contextlib
import time
from collections.abc import AsyncIterator

import grpc
from google.protobuf.timestamp_pb2 import Timestamp
from jm.sandbox.v1 import sandbox_pb2 as pb
from jm.sandbox.v1.sandbox_pb2_grpc import SandboxServiceServicer

from journeyman.boxes.convert import entry_to_proto
from journeyman.convert.times import timestamp_from_unix_s
from journeyman.errors import ErrorCode, JourneymanError
from sandbox_service.app import Sandboxes
from sandbox_service.convert import (
    event_to_proto,
    files_from_proto,
    lease_s_from_proto,
    plan_from_proto,
    program_from_proto,
    python_from_proto,
    run_to_proto,
)
from sandbox_service.core.programs import Program
from sandbox_service.core.shape import BoxShape

MAX_BATCH = 1024
PYTHON_IMAGE = "python"


class SandboxServicer(SandboxServiceServicer):
    """Serves jm.sandbox.v1.SandboxService."""

    def __init__(self, app: Sandboxes, default_shape: BoxShape, default_program: Program) -> None:
        self._app = app
        self._default_shape = default_shape
        self._default_program = default_program

    async def CreateSandbox(
        self, request: pb.CreateSandboxRequest, context: grpc.ServicerContext
    ) -> pb.CreateSandboxResponse:
        """See the proto."""
        lease_s = lease_s_from_proto(request.HasField("lease"), request.lease)
        if request.image not in ("", PYTHON_IMAGE):
            message = f"image = {request.image!r}: there is only {PYTHON_IMAGE!r}"
            raise JourneymanError(ErrorCode.NOT_FOUND, message)
        if request.egress:
            message = f"egress = {list(request.egress)}: boxes have no network here; leave it empty"
            raise JourneymanError(ErrorCode.PRECONDITION, message)
        plan = plan_from_proto(request, self._default_shape)
        made = await self._app.create(request.idempotency_key, files_from_proto(request.files), plan, lease_s)
        return pb.CreateSandboxResponse(
            sandbox_id=made.box_id, isolation=self._app.isolation, until=_until(made.left_s)
        )

    async def ForkSandbox(
        self, request: pb.ForkSandboxRequest, context: grpc.ServicerContext
    ) -> pb.ForkSandboxResponse:
        """See the proto."""
        if not 1 <= request.count <= MAX_BATCH:
            raise JourneymanError(ErrorCode.INVALID_INPUT, f"count = {request.count}: must be from 1 to {MAX_BATCH}")
        lease_s = lease_s_from_proto(request.HasField("lease"), request.lease)
        if bool(request.sandbox_id) == bool(request.snapshot_id):
            raise JourneymanError(ErrorCode.INVALID_INPUT, "name either a sandbox_id or a snapshot_id to fork")
        if request.snapshot_id:
            forked = await self._app.fork_snapshot(request.snapshot_id, request.count, lease_s)
        else:
            forked = await self._app.fork(request.sandbox_id, request.count, lease_s)
        until = _until(min(box.left_s for box in forked))
        return pb.ForkSandboxResponse(sandbox_ids=[box.box_id for box in forked], until=until)

    async def SnapshotSandbox(
        self, request: pb.SnapshotSandboxRequest, context: grpc.ServicerContext
    ) -> pb.SnapshotSandboxResponse:
        """See the proto."""
        lease_s = lease_s_from_proto(request.HasField("lease"), request.lease)
        made = await self._app.snapshot(request.sandbox_id, lease_s)
        return pb.SnapshotSandboxResponse(snapshot_id=made.box_id, until=_until(made.left_s))

    async def RestoreSandbox(
        self, request: pb.RestoreSandboxRequest, context: grpc.ServicerContext
    ) -> pb.RestoreSandboxResponse:
        """See the proto."""
        await self._app.restore(request.sandbox_id, request.snapshot_id)
        return pb.RestoreSandboxResponse()

    async def DeleteSnapshots(
        self, request: pb.DeleteSnapshotsRequest, context: grpc.ServicerContext
    ) -> pb.DeleteSnapshotsResponse:
        """See the proto."""
        self._app.delete_snapshots(request.snapshot_ids)
        return pb.DeleteSnapshotsResponse()

    async def Exec(self, request: pb.ExecRequest, context: grpc.ServicerContext) -> AsyncIterator[pb.ExecResponse]:
        """See the proto. A client that does not read is not written to, and so holds its program back."""
        program = program_from_proto(request.run, self._default_program)
        async with contextlib.aclosing(self._app.exec(request.run.sandbox_id, program)) as events:
            async for event in events:
                yield event_to_proto(event, self._app.isolation)

    async def RunPython(self, request: pb.RunPythonRequest, context: grpc.ServicerContext) -> pb.RunPythonResponse:
        """See the proto."""
        run = await self._app.run(request.sandbox_id, python_from_proto(request, self._default_program))
        return pb.RunPythonResponse(result=run_to_proto(run, self._app.isolation))

    async def RunBatch(self, request: pb.RunBatchRequest, context: grpc.ServicerContext) -> pb.RunBatchResponse:
        """See the proto."""
        if not 1 <= len(request.runs) <= MAX_BATCH:
            raise JourneymanError(ErrorCode.INVALID_INPUT, f"{len(request.runs)} runs: must be from 1 to {MAX_BATCH}")
        runs = [(run.sandbox_id, program_from_proto(run, self._default_program)) for run in request.runs]
        results = await self._app.run_batch(runs)
        return pb.RunBatchResponse(results=[run_to_proto(result, self._app.isolation) for result in results])

    async def WriteFiles(self, request: pb.WriteFilesRequest, context: grpc.ServicerContext) -> pb.WriteFilesResponse:
        """See the proto."""
        await self._app.write(request.sandbox_id, files_from_proto(request.files))
        return pb.WriteFilesResponse()

    async def ReadFiles(self, request: pb.ReadFilesRequest, context: grpc.ServicerContext) -> pb.ReadFilesResponse:
        """See the proto."""
        found = await self._app.read(request.sandbox_id, request.paths)
        return pb.ReadFilesResponse(files=[pb.BoxFile(path=path, content=found[path]) for path in found])

    async def ReadFile(
        self, request: pb.ReadFileRequest, context: grpc.ServicerContext
    ) -> AsyncIterator[pb.ReadFileResponse]:
        """See the proto."""
        is_log = request.WhichOneof("source") == "log"
        read, name = (self._app.read_log, request.log) if is_log else (self._app.read_file, request.path)
        async with contextlib.aclosing(read(request.sandbox_id, name, request.offset, request.length)) as parts:
            async for part in parts:
                yield pb.ReadFileResponse(content=part.content, total_bytes=part.total_bytes)

    async def ListDirectory(
        self, request: pb.ListDirectoryRequest, context: grpc.ServicerContext
    ) -> pb.ListDirectoryResponse:
        """See the proto."""
        entries, truncated = await self._app.list_directory(request.sandbox_id, request.path)
        return pb.ListDirectoryResponse(entries=map(entry_to_proto, entries), truncated=truncated)

    async def RenewLeases(
        self, request: pb.RenewLeasesRequest, context: grpc.ServicerContext
    ) -> pb.RenewLeasesResponse:
        """See the proto."""
        lease_s = lease_s_from_proto(request.HasField("lease"), request.lease)
        return pb.RenewLeasesResponse(lost=self._app.renew(request.sandbox_ids, lease_s))

    async def DestroySandboxes(
        self, request: pb.DestroySandboxesRequest, context: grpc.ServicerContext
    ) -> pb.DestroySandboxesResponse:
        """See the proto."""
        await self._app.destroy(request.sandbox_ids)
        return pb.DestroySandboxesResponse()

    async def ListSandboxes(
        self, request: pb.ListSandboxesRequest, context: grpc.ServicerContext
    ) -> pb.ListSandboxesResponse:
        """See the proto."""
        living = self._app.list_living()
        boxes = [pb.SandboxInfo(sandbox_id=box.box_id, until=_until(box.left_s)) for box in living]
        return pb.ListSandboxesResponse(sandboxes=boxes)

    async def GetCapabilities(
        self, request: pb.GetCapabilitiesRequest, context: grpc.ServicerContext
    ) -> pb.GetCapabilitiesResponse:
        """See the proto."""
        enforced, not_enforced = self._app.limits_enforced
        return pb.GetCapabilitiesResponse(
            isolation=self._app.isolation,
            enforced=enforced,
            not_enforced=not_enforced,
            forking=self._app.forking,
            images=[pb.ImageInfo(name=PYTHON_IMAGE, has_python=True, num_ready=self._app.num_ready)],
        )


def _until(left_s: float) -> Timestamp:
    return timestamp_from_unix_s(time.time() + left_s)
