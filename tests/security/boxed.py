"""The scene with boxes: a sandbox service of one kind of isolation, attacked through gRPC like any client's programs would."""

import asyncio
import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from google.protobuf.duration_pb2 import Duration
from jm.sandbox.v1 import sandbox_pb2 as pb
from jm.sandbox.v1.sandbox_pb2_grpc import SandboxServiceStub

from journeyman.boxes.convert import run_result_from_proto
from journeyman.errors import ErrorCode, JourneymanError
from journeyman.rpc.client import channel
from tests.security.attack import PRELUDE, PROGRAM_CPU_S, PROGRAM_S, Cell, Hanging, HostFacts, Refused, Seen, facts_json
from tests.security.host import Host

MIB = 1 << 20
LIMITS = pb.BoxLimits(
    memory_bytes=192 * MIB, max_processes=24, disk_bytes=16 * MIB, max_files=400, output_bytes=64 * 1024
)
MAX_BOXES = 24
_CPU_FACTORS = {"runsc": 5.0}
_START_S, _END_S = 40.0, 15.0
_DYING_LOOKS = 30
_SYSTEM_PYTHON = "/usr/bin/python3"
_NAMESPACES = ("unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "--ipc", "--uts")
_WITH_VICTIM = ("sh", "-c", 'sleep 1000 & for number in $(seq 60); do (:); done; "$@"', "sh")
"""The service's own pid is to be none that a box has too."""
_VICTIM_PID = 2
_POLITE = frozenset({ErrorCode.INVALID_INPUT, ErrorCode.NOT_FOUND, ErrorCode.PRECONDITION, ErrorCode.EXHAUSTED})


class NotHere(Exception):
    """This kind of isolation cannot be had on this machine."""


class BoxedCell:
    """A box."""

    def __init__(self, scene: "BoxedScene", sandbox_id: str) -> None:
        self._scene = scene
        self._stub = scene.stub
        self.sandbox_id = sandbox_id

    async def run(self, source: str, timeout_s: float = PROGRAM_S, cpu_s: float | None = None) -> Seen:
        """See Cell."""
        program = pb.PythonProgram(source=PRELUDE + source, argv=[facts_json(self._scene.host)])
        request = pb.RunRequest(sandbox_id=self.sandbox_id, python=program)
        request.timeout.CopyFrom(_duration(timeout_s))
        request.cpu.CopyFrom(_duration(PROGRAM_CPU_S * self._scene.cpu_factor if cpu_s is None else cpu_s))
        return await self._seen(request, timeout_s)

    async def command(self, argv: Sequence[str]) -> Seen:
        """See Cell."""
        return await self._seen(pb.RunRequest(sandbox_id=self.sandbox_id, command=pb.Command(argv=argv)), PROGRAM_S)

    async def write(self, files: Mapping[str, bytes]) -> None:
        """See Cell."""
        contents = [pb.BoxFile(path=path, content=content) for path, content in files.items()]
        with _refusals():
            await self._stub.WriteFiles(pb.WriteFilesRequest(sandbox_id=self.sandbox_id, files=contents))

    async def read(self, paths: Sequence[str]) -> dict[str, bytes]:
        """See Cell."""
        with _refusals():
            found = await self._stub.ReadFiles(pb.ReadFilesRequest(sandbox_id=self.sandbox_id, paths=paths))
        return {file.path: file.content for file in found.files}

    async def fork(self) -> Cell:
        """See Cell."""
        request = pb.ForkSandboxRequest(sandbox_id=self.sandbox_id, count=1, lease=_duration(300.0))
        with _refusals():
            made = await self._stub.ForkSandbox(request)
        return self._scene.keep(made.sandbox_ids[0])

    async def _seen(self, request: pb.RunRequest, timeout_s: float) -> Seen:
        with _refusals():
            answer = await self._stub.RunBatch(pb.RunBatchRequest(runs=[request]), timeout=timeout_s + 60.0)
        result = run_result_from_proto(answer.results[0])
        stdout, stderr = (text.decode(errors="replace") for text in (result.stdout, result.stderr))
        return Seen(ending=str(result.ending), stdout=stdout, stderr=stderr + result.infra_reason)


class BoxedScene:
    """A box and, when asked for, others beside it."""

    def __init__(self, service: "Service", host: Host) -> None:
        self._service = service
        self._host = host
        self._cells: list[BoxedCell] = []
        self.stub = service.stub
        self.cpu_factor = service.cpu_factor
        self.host: HostFacts = replace(host.facts, victim_pid=_VICTIM_PID)
        self.cell: Cell

    async def open(self, lease_s: float = 300.0) -> BoxedCell:
        """See Scene."""
        request = pb.CreateSandboxRequest(limits=LIMITS, lease=_duration(lease_s))
        with _refusals():
            made = await self.stub.CreateSandbox(request)
        return self.keep(made.sandbox_id)

    def keep(self, sandbox_id: str) -> BoxedCell:
        """Notes a box, to be destroyed with the scene."""
        self._cells.append(BoxedCell(self, sandbox_id))
        return self._cells[-1]

    def datagrams(self) -> list[str]:
        """See Scene."""
        return self._host.datagrams()

    async def victim_lives(self) -> bool:
        """See Scene."""
        return self._service.victim_lives()

    async def close(self) -> None:
        """Destroys the boxes."""
        ids = [cell.sandbox_id for cell in self._cells]
        await self.stub.DestroySandboxes(pb.DestroySandboxesRequest(sandbox_ids=ids))


class Service:
    """A running sandbox service, in a pid namespace that it shares with a victim."""

    def __init__(self, process: "subprocess.Popen[bytes]", port: int, log: Path, cpu_factor: float) -> None:
        self._process = process
        self.cpu_factor = cpu_factor
        """Of what attacks may use: where waiting counts as use, less would end them before the limit that they are about does."""
        self._log = log
        self._channel = channel(f"127.0.0.1:{port}")
        self.port = port
        self.stub = SandboxServiceStub(self._channel)

    async def wait_until_ready(self) -> None:
        """NotHere tells the service's own words."""
        deadline_s = asyncio.get_running_loop().time() + _START_S
        while self._process.poll() is None and asyncio.get_running_loop().time() < deadline_s:
            with contextlib.suppress(OSError):
                socket.create_connection(("127.0.0.1", self.port), 0.2).close()
                return
            await asyncio.sleep(0.05)
        raise NotHere(self._log.read_text()[-1000:])

    async def survives(self) -> bool:
        """Whether it still lives a little later. A service whose maker of boxes is gone ends soon."""
        for _ in range(_DYING_LOOKS):
            if self._process.poll() is not None:
                return False
            await asyncio.sleep(0.1)
        return True

    def victim_lives(self) -> bool:
        """Whether the process beside it does."""
        return any(Path(f"/proc/{pid}/cmdline").read_text().startswith("sleep") for pid in self._inside())

    async def close(self) -> None:
        """Ends it, gently at first, so that it clears away its control groups."""
        await self._channel.close()
        for pid in self._inside():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            await asyncio.to_thread(self._process.wait, _END_S)
        self._process.kill()
        await asyncio.to_thread(self._process.wait)

    def _inside(self) -> list[int]:
        """The victim and the service."""
        return [pid for first in _children(self._process.pid) for pid in _children(first)]


@contextlib.asynccontextmanager
async def running_service(isolation: str, host: Host, folder: str) -> AsyncIterator[Service]:
    """A sandbox service of one kind of isolation. NotHere where it cannot be had."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    log = Path(folder, f"service-{port}.log")
    settings = {
        "SANDBOX_LISTEN": f"127.0.0.1:{port}",
        "SANDBOX_ISOLATION": isolation,
        "SANDBOX_MAX_BOXES": str(MAX_BOXES),
        "SANDBOX_PARALLEL_RUNS": "16",
        "JOURNEYMAN_TEST_SECRET": host.facts.secret,
        **_readable_python(isolation),
    }
    kept = {key: value for key, value in os.environ.items() if not key.startswith("SANDBOX_")}
    command = [*_NAMESPACES, *_WITH_VICTIM, sys.executable, "-m", "sandbox_service"]
    flags = ["--allow-weak"] if isolation == "weak" else []
    process = _start([*command, *flags], kept | settings, folder, log)
    service = Service(process, port, log, _CPU_FACTORS.get(isolation, 1.0))
    try:
        await service.wait_until_ready()
        yield service
    finally:
        await service.close()


def _start(command: Sequence[str], environment: Mapping[str, str], folder: str, log: Path) -> "subprocess.Popen[bytes]":
    with log.open("wb") as output:
        streams = {"stdin": subprocess.DEVNULL, "stdout": output, "stderr": output}
        return subprocess.Popen(command, env=environment, cwd=folder, **streams)  # type: ignore[call-overload]  # by name


def _readable_python(isolation: str) -> dict[str, str]:
    """Ordinary users must be able to read the interpreter of ns-rootless; where ours lies in root's home, the system's is taken."""
    if isolation != "ns-rootless" or os.geteuid() != 0 or not shutil.which(_SYSTEM_PYTHON):
        return {}
    folders = [Path(sys.base_prefix), *Path(sys.base_prefix).parents]
    return (
        {} if all(folder.stat().st_mode & 0o005 == 0o005 for folder in folders) else {"SANDBOX_PYTHON": _SYSTEM_PYTHON}
    )


def _children(pid: int) -> list[int]:
    try:
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def _duration(seconds: float) -> Duration:
    return Duration(seconds=int(seconds), nanos=int(seconds % 1 * 1e9))


@contextlib.contextmanager
def _refusals() -> Iterator[None]:
    try:
        yield
    except JourneymanError as error:
        if error.code in _POLITE:
            raise Refused(error.message) from error
        raise Hanging(error.message) from error
