"""Running programs over gRPC: streams that hold their program back, cancelled calls, logs, ranges of files, folders, use."""

import asyncio
import contextlib
import os
import time
from collections.abc import AsyncIterator

import grpc
import pytest
import pytest_asyncio
from jm.sandbox.v1 import sandbox_pb2 as pb
from jm.sandbox.v1.sandbox_pb2_grpc import SandboxServiceStub, add_SandboxServiceServicer_to_server

from journeyman.boxes.client import ClientBox, SandboxBoxes
from journeyman.boxes.port import BoxFailure, BoxLimits, Ending, EntryKind, OutputPiece, RunResult, Stream
from journeyman.errors import ErrorCode, JourneymanError
from journeyman.rpc.client import channel
from journeyman.rpc.server import RpcServer
from journeyman.testing.missing import missing
from sandbox_service.adapters.isolation import IsolationChoice, open_backend
from sandbox_service.app import Sandboxes
from sandbox_service.core.programs import Program
from sandbox_service.core.shape import MIB, BoxShape
from sandbox_service.servicer import SandboxServicer

pytestmark = pytest.mark.asyncio(loop_scope="module")
OUTPUT_BYTES = 1000
LOG_BYTES = 256 * MIB
COUNT = "import sys\nfor n in range({}): sys.stdout.write(f'{{n:07}}\\n')"
"""Eight bytes a line."""


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def connection() -> AsyncIterator[grpc.aio.Channel]:
    """Boxes that keep 1,000 bytes of output and log much more."""
    try:
        backend = await open_backend(IsolationChoice())
    except JourneymanError as error:
        missing(error.message)
    app = Sandboxes(backend, max_boxes=100, num_parallel=8)
    server = RpcServer("127.0.0.1:0")
    shape = BoxShape(output_bytes=OUTPUT_BYTES, log_bytes=LOG_BYTES)
    servicer = SandboxServicer(app, shape, Program())
    server.add(add_SandboxServiceServicer_to_server, servicer, "jm.sandbox.v1.SandboxService")
    await server.start()
    opened = channel(f"127.0.0.1:{server.port}")
    yield opened
    await opened.close()
    await server.stop(0.0)
    await app.close()


@pytest_asyncio.fixture(loop_scope="module")
async def box(connection: grpc.aio.Channel) -> AsyncIterator[ClientBox]:
    boxes = SandboxBoxes(connection)
    opened = await boxes.open({"a.txt": b"0123456789"}, key="", lease_s=600.0)
    yield opened
    await boxes.destroy([opened])
    await boxes.close()


async def collect(events: AsyncIterator[OutputPiece | RunResult]) -> tuple[dict[Stream, bytes], RunResult]:
    found = dict.fromkeys(Stream, b"")
    async for event in events:
        if isinstance(event, RunResult):
            return found, event
        found[event.stream] += event.content
    raise AssertionError("a stream without a result")


async def test_output_comes_while_the_program_runs(box: ClientBox) -> None:
    async with contextlib.aclosing(box.exec_stream("echo one; read line; echo $line >&2", stdin=b"two\n")) as events:
        found, result = await collect(events)
    assert found == {Stream.STDOUT: b"one\n", Stream.STDERR: b"two\n"}
    assert (result.ending, result.exit_code, result.stdout, result.stderr) == (Ending.EXITED, 0, b"one\n", b"two\n")
    assert (result.truncated, result.stdout_cut) == (False, None)
    started_s = time.monotonic()
    async with contextlib.aclosing(box.exec_stream("echo now; sleep 30", timeout_s=30.0)) as events:
        assert await anext(events) == OutputPiece(stream=Stream.STDOUT, content=b"now\n")
    assert time.monotonic() - started_s < 10.0
    assert (await box.run_command(["echo", "next"])).stdout == b"next\n"


async def test_environment_and_folder(box: ClientBox) -> None:
    await box.write_files({"sub/folder/file": b"1"})
    script = ["sh", "-c", "echo $A $B; pwd"]
    found, _ = await collect(box.exec_stream(script, env=["A=1", "B=x=y"], folder="sub/folder"))
    assert found[Stream.STDOUT] == b"1 x=y\n/box/sub/folder\n"
    _, result = await collect(box.exec_stream(["true"], folder="none"))
    assert (result.ending, result.exit_code) == (Ending.EXITED, 126)
    assert result.stderr == b"none: No such file or directory\n"


async def test_long_output_arrives_whole_and_in_order(box: ClientBox) -> None:
    num_lines = 500_000
    program = ["python3", "-c", COUNT.format(num_lines)]
    found, result = await collect(box.exec_stream(program, timeout_s=60.0, cpu_s=30.0))
    expected = b"".join(b"%07d\n" % n for n in range(num_lines))
    assert result.ending is Ending.EXITED, result
    assert found[Stream.STDOUT] == expected
    assert result.stdout == expected[: OUTPUT_BYTES // 2] + expected[-OUTPUT_BYTES // 2 :]
    assert result.used.output_bytes == len(expected)


async def test_a_reader_that_stops_holds_the_program_back(box: ClientBox) -> None:
    flood = "while :; do echo 0123456789012345678901234567890123456789; done"
    async with contextlib.aclosing(box.exec_stream("yes", timeout_s=3.0, cpu_s=30.0)) as events:
        first = await anext(events)
        assert isinstance(first, OutputPiece)
        await asyncio.sleep(4.0)  # past the program's time: it must end though nobody reads
        ran = await box.run_command(["echo", "free"])
        assert ran.stdout == b"free\n"
        rest, result = await collect(events)
    assert result.ending is Ending.WALL_TIMEOUT
    assert result.used.output_bytes == len(first.content) + len(rest[Stream.STDOUT])
    assert result.used.output_bytes < 32 * MIB, "it was not held back"
    assert result.cpu_s < 1.5, result
    _, result = await collect(box.exec_stream(flood, timeout_s=20.0, cpu_s=0.5))
    assert result.ending is Ending.CPU_TIMEOUT


async def test_a_cancelled_call_kills_the_program_and_not_the_box(box: ClientBox, connection: grpc.aio.Channel) -> None:
    stub = SandboxServiceStub(connection)
    shell = "echo 1 >> ran; while :; do echo x >> alive; sleep 0.02; done"
    for _ in range(3):
        call = stub.Exec(pb.ExecRequest(run=pb.RunRequest(sandbox_id=box.sandbox_id, shell=f"echo up; {shell}")))
        assert await call.read() == pb.ExecResponse(stdout=b"up\n")
        call.cancel()
        listed = await box.run_command(["sh", "-c", "wc -l < alive; sleep 0.1; wc -l < alive"])
        before, after = listed.stdout.split()
        assert before == after, "the program lives on"
    run = asyncio.ensure_future(box.run_command(["sh", "-c", shell]))
    flood = stub.Exec(pb.ExecRequest(run=pb.RunRequest(sandbox_id=box.sandbox_id, shell="yes")))
    await run
    await flood.read()
    flood.cancel()
    assert (await box.run_python("print(open('ran').read())")).stdout == b"1\n" * 4 + b"\n"


async def test_cancelled_batches_leave_the_box_usable(box: ClientBox, connection: grpc.aio.Channel) -> None:
    stub = SandboxServiceStub(connection)
    request = pb.RunBatchRequest(
        runs=[pb.RunRequest(sandbox_id=box.sandbox_id, shell="echo late > f; sleep 4; echo no")]
    )
    with pytest.raises(JourneymanError):
        await stub.RunBatch(request, timeout=0.5)
    result = await box.run_command(["cat", "f"])
    assert (result.stdout, result.wall_s < 2.0) == (b"late\n", True)


async def test_logs_hold_what_results_do_not(box: ClientBox) -> None:
    result = await box.run_python(COUNT.format(10_000))
    expected = b"".join(b"%07d\n" % n for n in range(10_000))
    cut = result.stdout_cut
    assert (result.ending, result.truncated, result.stderr_cut) == (Ending.EXITED, True, None)
    assert result.stdout == expected[:500] + expected[-500:]
    assert cut is not None
    assert (cut.head_bytes, cut.total_bytes) == (500, len(expected))
    assert await box.read_log(cut.log) == expected
    assert await box.read_log(cut.log, 8, 16) == b"0000001\n0000002\n"
    assert await box.read_log(cut.log, -8) == b"0009999\n"
    with pytest.raises(JourneymanError, match="there is no log 'none'") as caught:
        await box.read_log("none")
    assert caught.value.code is ErrorCode.NOT_FOUND


async def test_more_than_the_log_holds_ends_the_program(connection: grpc.aio.Channel) -> None:
    boxes = SandboxBoxes(connection)
    limits = BoxLimits(output_bytes=1000, log_bytes=100_000)
    box = await boxes.open({}, key="", lease_s=60.0, limits=limits)
    result = await box.run_python("print('x' * 300_000)")
    assert (result.ending, result.truncated) == (Ending.OUTPUT_LIMIT, True)
    assert result.stdout == b"x" * 1000
    assert result.stdout_cut is not None
    assert result.stdout_cut.total_bytes == 101_000
    assert await box.read_log(result.stdout_cut.log) == b"x" * 101_000
    _, heard = await collect(box.exec_stream("yes"))
    assert heard.ending is Ending.OUTPUT_LIMIT
    await boxes.destroy([box])
    await boxes.close()


async def test_files_of_any_length_are_read_in_parts(box: ClientBox) -> None:
    content = os.urandom(5 * MIB + 17)
    await box.write_files({"big": content, "small": b"1"})
    assert await box.read_file("big") == content
    assert await box.read_file("big", 3 * MIB - 5, 2 * MIB) == content[3 * MIB - 5 : 5 * MIB - 5]
    assert await box.read_file("big", -20) == content[-20:]
    assert await box.read_file("a.txt", 20) == b""
    assert (await box.run_command(["wc", "-c", "big"])).stdout == b"5242897 big\n"


async def test_links_and_special_files_are_not_read(box: ClientBox) -> None:
    made = "ln -s /etc/passwd out; ln -s /etc etc; ln -s a.txt in; mkfifo fifo; mkdir folder; chmod 000 a.txt; touch \"$(printf 'b\\377')\""
    assert (await box.run_command(["sh", "-c", made])).exit_code == 0
    for path in ("out", "etc/passwd"):
        with pytest.raises(JourneymanError, match="leads out of the working folder by a link"):
            await box.read_file(path)
    for path, why in (("fifo", "is no regular file"), ("folder", "is a folder"), ("none", "is not there")):
        with pytest.raises(JourneymanError, match=why) as caught:
            await box.read_file(path)
        assert caught.value.code is ErrorCode.NOT_FOUND
    for path in ("etc", "a.txt", "none", "folder/none"):
        with pytest.raises(JourneymanError) as caught:
            await box.list_directory(path)
        assert caught.value.code is ErrorCode.NOT_FOUND
    with pytest.raises(JourneymanError, match="must be relative"):
        await box.list_directory("../etc")
    entries = await box.list_directory()
    assert [(entry.name, entry.kind) for entry in entries] == [
        ("a.txt", EntryKind.FILE),
        ("b\N{REPLACEMENT CHARACTER}", EntryKind.FILE),
        ("etc", EntryKind.LINK),
        ("fifo", EntryKind.OTHER),
        ("folder", EntryKind.FOLDER),
        ("in", EntryKind.LINK),
        ("out", EntryKind.LINK),
    ]
    assert (entries[0].size_bytes, entries[0].mode) == (10, 0)
    assert await box.list_directory("folder") == []


async def test_folders_asked_for_as_files_cost_no_descriptors(box: ClientBox) -> None:
    await box.write_files({"folder/file": b"1"})
    for _ in range(3):
        assert await box.read_files(["folder"] * 200) == {}
    assert await box.read_files(["folder/file"]) == {"folder/file": b"1"}


async def test_use_is_told(box: ClientBox, connection: grpc.aio.Channel) -> None:
    before = (await box.run_command(["true"])).used
    source = "open('f', 'wb').write(bytes(1 << 20)); import os; os.mkdir('d'); print('12345')"
    used = (await box.run_python(source)).used
    assert used.output_bytes == 6
    assert used.num_files - before.num_files == 2
    assert 1 << 20 <= used.disk_bytes - before.disk_bytes < (1 << 20) + (1 << 16)
    if used.memory_peak_bytes:
        assert used.memory_peak_bytes >= 1 << 20
        assert used.processes_peak >= 1


async def test_file_and_descriptor_limits_hold(connection: grpc.aio.Channel) -> None:
    stub = SandboxServiceStub(connection)
    limits = pb.BoxLimits(file_bytes=10_000, max_open_files=40)
    made = await stub.CreateSandbox(pb.CreateSandboxRequest(limits=limits))
    box = ClientBox(SandboxBoxes(connection), made.sandbox_id)
    result = await box.run_command(["sh", "-c", "head -c 20000 /dev/zero > f"])
    assert (await box.read_file("f")) == bytes(10_000), result
    assert (await box.run_python("open('g', 'wb').write(bytes(20_000))")).ending is Ending.DISK_FULL
    opened = await box.run_python("for n in range(100): globals()[f'f{n}'] = open('f')")
    assert b"Too many open files" in opened.stderr
    await box.write_files({"large": bytes(100_000)})
    await stub.DestroySandboxes(pb.DestroySandboxesRequest(sandbox_ids=[made.sandbox_id]))


async def test_bad_requests_say_what_to_do(box: ClientBox, connection: grpc.aio.Channel) -> None:
    stub = SandboxServiceStub(connection)
    for request, text in (
        (pb.BoxLimits(memory_bytes=1), r"limits\.memory_bytes = 1: must be from 16777216"),
        (pb.BoxLimits(max_open_files=-4), r"limits\.max_open_files = -4"),
    ):
        with pytest.raises(JourneymanError, match=text) as caught:
            await stub.CreateSandbox(pb.CreateSandboxRequest(limits=request))
        assert caught.value.code is ErrorCode.INVALID_INPUT
    with pytest.raises(JourneymanError, match="at most 50331648; write them in several"):
        await box.write_files({"f": bytes(49 * MIB)})
    gone = ClientBox(SandboxBoxes(connection), "none")
    with pytest.raises(BoxFailure):
        await collect(gone.exec_stream("true"))
    with pytest.raises(BoxFailure):
        await gone.read_file("a")
    with pytest.raises(BoxFailure):
        await gone.list_directory()
    with pytest.raises(JourneymanError) as missing:
        await stub.RunPython(pb.RunPythonRequest(sandbox_id="none", python=pb.PythonProgram(source="1")))
    assert missing.value.code is ErrorCode.NOT_FOUND


async def test_python_unary(box: ClientBox, connection: grpc.aio.Channel) -> None:
    stub = SandboxServiceStub(connection)
    program = pb.PythonProgram(source="import sys; print(sys.argv[1:], input())", argv=["a"])
    answer = await stub.RunPython(pb.RunPythonRequest(sandbox_id=box.sandbox_id, python=program, stdin=b"b\n"))
    assert answer.result.stdout == b"['a'] b\n"
    assert answer.result.used.output_bytes == len(answer.result.stdout)


async def test_a_destroyed_box_ends_its_stream(connection: grpc.aio.Channel) -> None:
    boxes = SandboxBoxes(connection)
    box = await boxes.open({}, key="", lease_s=60.0)
    async with contextlib.aclosing(box.exec_stream("yes", timeout_s=60.0, cpu_s=60.0)) as events:
        await anext(events)
        await boxes.destroy([box])
        with pytest.raises(BoxFailure):
            await collect(events)
    await boxes.close()


async def test_a_box_has_an_environment_and_a_folder_of_its_own() -> None:
    try:
        backend = await open_backend(IsolationChoice())
    except JourneymanError as error:
        missing(error.message)
    try:
        box = await backend.create(BoxShape())
        await box.settle(("A=box", "B=box"), "project/here")
        shell = await box.run(Program(argv=("sh", "-c", "echo $A $B; pwd"), env=("B=program",)))
        assert shell.result.stdout == b"box program\n/box/project/here\n"
        python = await box.run(Program(source="import os; print(os.environ['A'], os.getcwd())"))
        assert python.result.stdout == b"box /box/project/here\n"
        await box.write({"project/other/f": b"1"})
        elsewhere = await box.run(Program(argv=("ls",), folder="project/other"))
        assert elsewhere.result.stdout == b"f\n"
        with pytest.raises(JourneymanError, match="the box's folder cannot be made"):
            await box.settle((), "project/other/f")
    finally:
        await backend.close()
