"""A sandbox service of its own for benchmarks and load tests, and what it holds on the machine. Used by benchmarks.sandbox and sandbox_load."""

import contextlib
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
from jm.sandbox.v1 import sandbox_pb2 as pb
from jm.sandbox.v1.sandbox_pb2_grpc import SandboxServiceStub

from journeyman.convert.times import seconds_to_duration
from journeyman.rpc.client import channel

if TYPE_CHECKING:
    from jm.sandbox.v1.sandbox_pb2_grpc import SandboxServiceAsyncStub

ROOT = Path(__file__).resolve().parent.parent
_START_S, _END_S = 30.0, 20.0
_LEASE_S = 600.0


class ServerFailed(Exception):
    """The service did not come up; its own words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Holdings:
    """What a service and its makers of boxes hold, without the boxes that wait to be taken."""

    processes: int
    mounts: int
    """Of the service's and of its makers' mount namespaces."""
    groups: int
    """Control groups of boxes, in all hierarchies."""
    open_files: int

    def above(self, before: "Holdings") -> "Holdings":
        """What is left over; never less than nothing."""
        return Holdings(
            processes=max(0, self.processes - before.processes),
            mounts=max(0, self.mounts - before.mounts),
            groups=max(0, self.groups - before.groups),
            open_files=max(0, self.open_files - before.open_files),
        )


class SandboxServer:
    """A running service, by its calls."""

    def __init__(self, process: "subprocess.Popen[bytes]", stub: "SandboxServiceAsyncStub") -> None:
        self.stub = stub
        self._tree = psutil.Process(process.pid)

    async def create(self, files: Mapping[str, bytes] | None = None, limits: pb.BoxLimits | None = None) -> str:
        """A box."""
        request = pb.CreateSandboxRequest(lease=seconds_to_duration(_LEASE_S), limits=limits)
        request.files.extend(pb.BoxFile(path=path, content=content) for path, content in (files or {}).items())
        return str((await self.stub.CreateSandbox(request)).sandbox_id)

    async def command(self, box: str, argv: Sequence[str]) -> pb.RunResult:
        """Runs a command."""
        return await self._run(pb.RunRequest(sandbox_id=box, command=pb.Command(argv=argv)), 20.0)

    async def python(self, box: str, source: str, *, timeout_s: float = 20.0, cpu_s: float = 5.0) -> pb.RunResult:
        """Runs source in the warm interpreter."""
        request = pb.RunRequest(sandbox_id=box, python=pb.PythonProgram(source=source))
        request.cpu.CopyFrom(seconds_to_duration(cpu_s))
        return await self._run(request, timeout_s)

    async def destroy(self, *boxes: str) -> None:
        """Destroys boxes."""
        await self.stub.DestroySandboxes(pb.DestroySandboxesRequest(sandbox_ids=boxes))

    async def holdings(self) -> Holdings:
        """As they stand."""
        capabilities = await self.stub.GetCapabilities(pb.GetCapabilitiesRequest())
        num_ready = sum(image.num_ready for image in capabilities.images)
        tree = [self._tree, *self._tree.children(recursive=True)]
        makers = [process.pid for process in tree[: 1 + _NUM_MAKERS]]
        marks = tuple(f"journeyman-{pid}-" for pid in makers)
        folders = [folder for folder, _, _ in os.walk("/sys/fs/cgroup") if _is_box(folder, marks)]
        return Holdings(
            processes=len(tree) - num_ready,
            mounts=sum(_num_lines(f"/proc/{pid}/mountinfo") for pid in makers),
            groups=len(folders) - num_ready * len({folder.split("/journeyman-")[0] for folder in folders}),
            open_files=sum(len(os.listdir(f"/proc/{pid}/fd")) for pid in makers) - num_ready,
        )

    def cpu_s(self) -> float:
        """CPU seconds of the whole tree, boxes that have ended included."""
        total = 0.0
        for process in (self._tree, *self._tree.children(recursive=True)):
            with contextlib.suppress(psutil.Error):
                total += sum(process.cpu_times()[:4])
        return total

    async def _run(self, request: pb.RunRequest, timeout_s: float) -> pb.RunResult:
        request.timeout.CopyFrom(seconds_to_duration(timeout_s))
        answer = await self.stub.RunBatch(pb.RunBatchRequest(runs=[request]), timeout=timeout_s + 300.0)
        return answer.results[0]


_NUM_MAKERS = 2
"""The zygote's two halves come before the boxes in the list of a service's descendants."""


@contextlib.asynccontextmanager
async def sandbox_server(**settings: str) -> AsyncIterator[SandboxServer]:
    """Starts a service. ServerFailed tells why it does not come up."""
    with tempfile.TemporaryDirectory(prefix="benchmark-sandbox-") as folder:
        with socket.create_server(("127.0.0.1", 0)) as probe:
            target = f"127.0.0.1:{probe.getsockname()[1]}"
        process = _start(target, folder, settings)
        connection = channel(target, timeout_s=120.0)
        try:
            _wait_until_it_listens(process, target)
            yield SandboxServer(process, SandboxServiceStub(connection))
        finally:
            await connection.close(None)
            process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(_END_S)
            process.kill()
            process.wait()


def _start(target: str, folder: str, settings: Mapping[str, str]) -> "subprocess.Popen[bytes]":
    kept = {key: value for key, value in os.environ.items() if not key.startswith("SANDBOX_")}
    own = {"SANDBOX_LISTEN": target, "SANDBOX_LOG_FILE": f"{folder}/log", "SANDBOX_MAX_BOXES": "4096"}
    return subprocess.Popen(
        [sys.executable, "-m", "sandbox_service"],
        cwd=folder,
        env={**kept, "PYTHONPATH": str(ROOT), **own, **settings},
        stderr=subprocess.PIPE,
    )


def _wait_until_it_listens(process: "subprocess.Popen[bytes]", target: str) -> None:
    host, _, port = target.rpartition(":")
    deadline_s = time.monotonic() + _START_S
    while process.poll() is None and time.monotonic() < deadline_s:
        with contextlib.suppress(OSError):
            socket.create_connection((host, int(port)), 0.2).close()
            return
        time.sleep(0.05)
    told = process.stderr.read() if process.poll() is not None and process.stderr else b"it does not listen"
    raise ServerFailed(told.decode(errors="replace").strip()[-500:])


def _is_box(folder: str, marks: tuple[str, ...]) -> bool:
    parent, _, name = folder.rpartition("/")
    return name.startswith("box") and parent.rpartition("/")[2].startswith(marks)


def _num_lines(path: str) -> int:
    with open(path, "rb") as file:
        return sum(1 for _ in file)
