"""What boxes do beyond Box, on every isolation and over gRPC: streams, cancelled runs, logs, parts of files, folders, use."""

import contextlib
import os
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from jm.sandbox.v1.sandbox_pb2_grpc import add_SandboxServiceServicer_to_server

from journeyman.boxes.client import ClientBox, SandboxBoxes
from journeyman.boxes.port import Ending, EntryKind, OutputPiece, RunResult, Stream
from journeyman.errors import ErrorCode, JourneymanError
from journeyman.rpc.client import channel
from journeyman.rpc.server import RpcServer
from journeyman.testing.missing import missing
from sandbox_service.adapters.isolation import IsolationChoice, open_backend
from sandbox_service.adapters.local_boxes import LocalBox, local_boxes
from sandbox_service.app import Sandboxes
from sandbox_service.core.programs import Program
from sandbox_service.core.shape import MIB, BoxShape
from sandbox_service.servicer import SandboxServicer

pytestmark = pytest.mark.asyncio(loop_scope="module")
StreamingBox = ClientBox | LocalBox
SHAPE = BoxShape(output_bytes=1000, log_bytes=16 * MIB)
FILES = {"a.txt": b"0123456789", "sub/b.txt": b"deep"}
COUNT = "for n in range(10_000): print(f'{n:07}')"
COUNTED = b"".join(b"%07d\n" % n for n in range(10_000))


async def _local(isolation: str) -> AsyncIterator[StreamingBox]:
    async with local_boxes(isolation, allow_weak=True, shape=SHAPE) as boxes:
        yield await boxes.open(FILES, key="", lease_s=600.0)


async def _grpc() -> AsyncIterator[StreamingBox]:
    app = Sandboxes(await open_backend(IsolationChoice()), max_boxes=10)
    server = RpcServer("127.0.0.1:0")
    servicer = SandboxServicer(app, SHAPE, Program())
    server.add(add_SandboxServiceServicer_to_server, servicer, "jm.sandbox.v1.SandboxService")
    await server.start()
    connection = channel(f"127.0.0.1:{server.port}")
    boxes = SandboxBoxes(connection)
    try:
        yield await boxes.open(FILES, key="", lease_s=600.0)
    finally:
        await boxes.close()
        await connection.close()
        await server.stop(0.0)
        await app.close()


@pytest_asyncio.fixture(loop_scope="module", scope="module", params=["auto", "weak", "bwrap", "runsc", "grpc"])
async def box(request: pytest.FixtureRequest) -> AsyncIterator[StreamingBox]:
    """One box for all tests, since some isolations take long to make one."""
    if request.param == "runsc" and os.geteuid() != 0:
        pytest.skip("runsc needs root")
    maker = _grpc() if request.param == "grpc" else _local(request.param)
    async with contextlib.aclosing(maker) as made:
        try:
            opened = await anext(made)
        except JourneymanError as error:
            missing(error.message)
        yield opened


async def collect(events: AsyncIterator[OutputPiece | RunResult]) -> tuple[dict[Stream, bytes], RunResult]:
    found = dict.fromkeys(Stream, b"")
    async for event in events:
        if isinstance(event, RunResult):
            return found, event
        found[event.stream] += event.content
    raise AssertionError("a stream without a result")


async def test_pieces_and_then_the_result(box: StreamingBox) -> None:
    found, result = await collect(box.exec_stream("cat sub/b.txt; read line; echo $line >&2", stdin=b"two\n"))
    assert found == {Stream.STDOUT: b"deep", Stream.STDERR: b"two\n"}
    assert (result.ending, result.exit_code, result.stdout, result.stderr) == (Ending.EXITED, 0, b"deep", b"two\n")


async def test_environment_and_folder(box: StreamingBox) -> None:
    found, _ = await collect(box.exec_stream(["sh", "-c", "echo $A; cat b.txt"], env=["A=x=y"], folder="sub"))
    assert found[Stream.STDOUT] == b"x=y\ndeep"
    _, result = await collect(box.exec_stream(["true"], folder="none"))
    assert (result.exit_code, result.stderr) == (126, b"none: No such file or directory\n")
    for entry in ("A", "=1", "A=\0"):
        with pytest.raises(JourneymanError, match="must be NAME=VALUE") as caught:
            await collect(box.exec_stream(["true"], env=[entry]))
        assert caught.value.code is ErrorCode.INVALID_INPUT


async def test_leaving_the_loop_kills_the_program_only(box: StreamingBox) -> None:
    async with contextlib.aclosing(box.exec_stream("echo now; sleep 30; echo late > late", timeout_s=30.0)) as events:
        assert await anext(events) == OutputPiece(stream=Stream.STDOUT, content=b"now\n")
    after = await box.run_python("import os; print(os.path.exists('late'))", timeout_s=20.0, cpu_s=10.0)
    assert after.stdout == b"False\n"


async def test_logs_hold_what_results_do_not(box: StreamingBox) -> None:
    result = await box.run_python(COUNT, timeout_s=20.0, cpu_s=10.0)
    assert (result.ending, result.truncated, result.stderr_cut) == (Ending.EXITED, True, None)
    assert result.stdout == COUNTED[:500] + COUNTED[-500:]
    cut = result.stdout_cut
    assert cut is not None
    assert (cut.head_bytes, cut.total_bytes) == (500, len(COUNTED))
    assert await box.read_log(cut.log) == COUNTED
    assert await box.read_log(cut.log, -8, 3) == b"000"
    found, heard = await collect(box.exec_stream(["cat", "/dev/zero"], timeout_s=60.0, cpu_s=60.0))
    assert (heard.ending, len(found[Stream.STDOUT])) == (Ending.OUTPUT_LIMIT, 1000 + 16 * MIB)


async def test_files_and_folders(box: StreamingBox) -> None:
    content = os.urandom(2 * MIB + 17)
    await box.write_files({"big/file": content})
    assert await box.read_file("big/file") == content
    assert await box.read_file("big/file", MIB - 5, 10) == content[MIB - 5 : MIB + 5]
    assert await box.read_file("big/file", -20) == content[-20:]
    await box.run_command(["ln", "-sf", "/etc/passwd", "sub/out"])
    entries = {entry.name: (entry.kind, entry.size_bytes) for entry in await box.list_directory("sub")}
    assert entries == {"b.txt": (EntryKind.FILE, 4), "out": (EntryKind.LINK, 0)}
    for path, why in (("sub/out", "leads out"), ("sub", "is a folder"), ("none", "is not there")):
        with pytest.raises(JourneymanError, match=why) as caught:
            await box.read_file(path)
        assert caught.value.code is ErrorCode.NOT_FOUND


async def test_use_never_shrinks_below_what_is_there(box: StreamingBox) -> None:
    result = await box.run_python("open('f', 'wb').write(bytes(1 << 20)); print(1)", timeout_s=20.0, cpu_s=10.0)
    assert result.used.output_bytes == 2
    assert result.used.disk_bytes == 0 or result.used.disk_bytes >= 1 << 20
    assert result.used.memory_peak_bytes == 0 or result.used.memory_peak_bytes >= 1 << 20
