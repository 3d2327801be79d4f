"""Boxes of the sandbox service over gRPC. Used by rollout workers and verifiers; domain packs see only Box.

Runs started in one tick of the event loop travel in one RunBatch. Leases are renewed in the background while boxes are open.
Whatever is no evidence about the program (INFRA_ERROR, a lost or destroyed box, an unreachable service) raises BoxFailure.
"""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping, Sequence
from weakref import WeakKeyDictionary

import grpc
from jm.sandbox.v1 import sandbox_pb2 as pb
from jm.sandbox.v1.sandbox_pb2_grpc import SandboxServiceStub

from journeyman.boxes.convert import entry_from_proto, event_from_proto, limits_to_proto
from journeyman.boxes.paths import checked_path
from journeyman.boxes.port import BoxFailure, BoxLimits, DirectoryEntry, Ending, OutputPiece, RunResult
from journeyman.boxes.run_batches import QUEUE_ALLOWANCE_S, RunBatches
from journeyman.convert.times import seconds_to_duration
from journeyman.errors import ErrorCode, JourneymanError
from journeyman.rpc.client import read_stream

FILE_S = 120.0
"""In which a file is read."""
_DEFAULT_LIMITS = BoxLimits()
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

    async def exec_stream(
        self,
        program: str | Sequence[str],
        *,
        stdin: bytes = b"",
        env: Sequence[str] = (),
        folder: str = "",
        timeout_s: float = 5.0,
        cpu_s: float = 2.0,
    ) -> AsyncGenerator[OutputPiece | RunResult, None]:
        """What a shell line (str) or a program by its argv writes, while it runs; then its result.

        env: NAME=VALUE, only for an argv. folder: where it starts, relative to the working folder. Reading slowly holds the program back;
        leaving the loop kills it.
        """
        request = pb.RunRequest(
            sandbox_id=self.sandbox_id,
            stdin=stdin,
            folder=folder,
            timeout=seconds_to_duration(timeout_s),
            cpu=seconds_to_duration(cpu_s),
        )
        if isinstance(program, str):
            request.shell = program
        else:
            request.command.CopyFrom(pb.Command(argv=program, env=env))
        events = self._boxes.exec(request, QUEUE_ALLOWANCE_S + timeout_s)
        async with contextlib.aclosing(events):
            async for event in events:
                yield _evidence(event, self.sandbox_id) if isinstance(event, RunResult) else event

    async def read_file(self, path: str, offset: int = 0, length: int = 0) -> bytes:
        """length bytes of a file from offset on; a negative offset counts from the end, and length 0 means to the end.

        NOT_FOUND where there is no regular file.
        """
        source = pb.ReadFileRequest(sandbox_id=self.sandbox_id, path=checked_path(path), offset=offset, length=length)
        return await self._boxes.read_part(source)

    async def read_log(self, log: str, offset: int = 0, length: int = 0) -> bytes:
        """The same of a log that a result names in its cut."""
        source = pb.ReadFileRequest(sandbox_id=self.sandbox_id, log=log, offset=offset, length=length)
        return await self._boxes.read_part(source)

    async def list_directory(self, path: str = "") -> list[DirectoryEntry]:
        """Entries of a folder by name, 10,000 at most. NOT_FOUND where it is none."""
        return await self._boxes.list_folder(self.sandbox_id, path)

    async def write_files(self, files: Mapping[str, bytes]) -> None:
        """See Box."""
        await self._boxes.write(self.sandbox_id, files)

    async def read_files(self, paths: Sequence[str]) -> dict[str, bytes]:
        """See Box."""
        return await self._boxes.read(self.sandbox_id, paths)

    async def _run(self, request: pb.RunRequest) -> RunResult:
        request.sandbox_id = self.sandbox_id
        return _evidence(await self._boxes.batches.submit(request), self.sandbox_id)


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

    async def open(
        self,
        files: Mapping[str, bytes],
        *,
        key: str,
        lease_s: float,
        limits: BoxLimits = _DEFAULT_LIMITS,
        env: Sequence[str] = (),
        folder: str = "",
    ) -> ClientBox:
        """A box with files. Repeating key gives the same box. env (NAME=VALUE) and folder hold for all its programs."""
        request = pb.CreateSandboxRequest(
            idempotency_key=key,
            files=_box_files(files),
            lease=seconds_to_duration(lease_s),
            limits=limits_to_proto(limits),
            env=env,
            folder=folder,
        )
        with _lost_is_failure():
            created = await self._stub.CreateSandbox(request)
        self.isolation = created.isolation
        return self._keep([created.sandbox_id], lease_s)[0]

    async def open_group(
        self,
        files: Mapping[str, bytes],
        count: int,
        *,
        key: str,
        lease_s: float,
        limits: BoxLimits = _DEFAULT_LIMITS,
    ) -> list[ClientBox]:
        """count boxes with the same files: one made, the rest forked from it."""
        first = await self.open(files, key=key, lease_s=lease_s, limits=limits)
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

    async def snapshot(self, box: ClientBox, *, lease_s: float) -> str:
        """Id of the box's files as they are now, kept for lease_s. PRECONDITION while a program runs in it."""
        request = pb.SnapshotSandboxRequest(sandbox_id=box.sandbox_id, lease=seconds_to_duration(lease_s))
        return str((await self._stub.SnapshotSandbox(request)).snapshot_id)

    async def open_snapshot(self, snapshot_id: str, count: int = 1, *, lease_s: float) -> list[ClientBox]:
        """count boxes with the files of a snapshot. NOT_FOUND where it is gone."""
        request = pb.ForkSandboxRequest(snapshot_id=snapshot_id, count=count, lease=seconds_to_duration(lease_s))
        return self._keep((await self._stub.ForkSandbox(request)).sandbox_ids, lease_s)

    async def restore(self, box: ClientBox, snapshot_id: str) -> None:
        """Gives a box the files of a snapshot. PRECONDITION while a program runs in it, NOT_FOUND where either is gone."""
        await self._stub.RestoreSandbox(pb.RestoreSandboxRequest(sandbox_id=box.sandbox_id, snapshot_id=snapshot_id))

    async def delete_snapshots(self, snapshot_ids: Sequence[str]) -> None:
        """Deletes snapshots; boxes made of them live on."""
        await self._stub.DeleteSnapshots(pb.DeleteSnapshotsRequest(snapshot_ids=snapshot_ids))

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

    async def exec(self, run: pb.RunRequest, timeout_s: float) -> AsyncGenerator[OutputPiece | RunResult, None]:
        """Runs one program of a box and gives what it writes, then its result."""
        with _lost_is_failure():
            answers = read_stream(self._stub.Exec, pb.ExecRequest(run=run), timeout_s)
            async with contextlib.aclosing(answers):
                async for answer in answers:
                    yield event_from_proto(answer)

    async def read_part(self, request: pb.ReadFileRequest) -> bytes:
        """Reads a part of a file or log of a box. NOT_FOUND where the box has none."""
        try:
            pieces = read_stream(self._stub.ReadFile, request, FILE_S)
            return b"".join([piece.content async for piece in pieces])
        except JourneymanError as error:
            raise await self._told_apart(error, request.sandbox_id) from error

    async def list_folder(self, sandbox_id: str, path: str) -> list[DirectoryEntry]:
        """Entries of a folder of a box. NOT_FOUND where the box has none."""
        request = pb.ListDirectoryRequest(sandbox_id=sandbox_id, path=checked_path(path) if path else "")
        try:
            listed = await self._stub.ListDirectory(request)
        except JourneymanError as error:
            raise await self._told_apart(error, sandbox_id) from error
        return [entry_from_proto(entry) for entry in listed.entries]

    async def _told_apart(self, error: JourneymanError, sandbox_id: str) -> Exception:
        """A file that is not there is evidence, a box that is not there is the sandbox's failure."""
        if error.code is ErrorCode.INVALID_INPUT:
            return error
        if error.code is ErrorCode.NOT_FOUND:
            request = pb.RenewLeasesRequest(sandbox_ids=[sandbox_id], lease=seconds_to_duration(1.0))
            with contextlib.suppress(JourneymanError):
                if not (await self._stub.RenewLeases(request)).lost:
                    return error
        return BoxFailure(str(error))

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


def _box_files(files: Mapping[str, bytes]) -> list[pb.BoxFile]:
    return [pb.BoxFile(path=checked_path(path), content=content) for path, content in files.items()]


def _evidence(result: RunResult, sandbox_id: str) -> RunResult:
    """The result, where it says something about the program."""
    if result.ending in _NO_EVIDENCE:
        raise BoxFailure(result.infra_reason or f"box {sandbox_id} was destroyed while its program ran")
    return result


@contextlib.contextmanager
def _lost_is_failure() -> Iterator[None]:
    """Everything but our own wrong input is the sandbox's failure."""
    try:
        yield
    except JourneymanError as error:
        if error.code is ErrorCode.INVALID_INPUT:
            raise
        raise BoxFailure(str(error)) from error
