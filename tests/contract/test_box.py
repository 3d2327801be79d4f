"""The contract of Box, on every implementation: in process, on this machine's isolation, and over gRPC."""

import os
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping

import pytest
import pytest_asyncio
from jm.sandbox.v1.sandbox_pb2_grpc import add_SandboxServiceServicer_to_server

from journeyman.boxes.client import SandboxBoxes
from journeyman.boxes.inprocess import inprocess_box
from journeyman.boxes.port import Box, Ending, OutputCut
from journeyman.errors import JourneymanError
from journeyman.rpc.client import channel
from journeyman.rpc.server import RpcServer
from journeyman.testing.missing import missing
from sandbox_service.adapters.isolation import IsolationChoice, open_backend
from sandbox_service.adapters.local_boxes import local_boxes
from sandbox_service.app import Sandboxes
from sandbox_service.core.programs import Program
from sandbox_service.core.shape import BoxShape
from sandbox_service.servicer import SandboxServicer

pytestmark = pytest.mark.asyncio(loop_scope="module")
OpenBox = Callable[[Mapping[str, bytes]], Awaitable[Box]]


async def _inprocess() -> AsyncIterator[OpenBox]:
    open_ones = []

    async def open_box(files: Mapping[str, bytes]) -> Box:
        context = inprocess_box(files)
        open_ones.append(context)
        return context.__enter__()

    yield open_box
    for context in open_ones:
        context.__exit__(None, None, None)


async def _local(isolation: str) -> AsyncIterator[OpenBox]:
    try:
        context = local_boxes(isolation, allow_weak=True)
        boxes = await context.__aenter__()
    except JourneymanError as error:
        missing(error.message)

    async def open_box(files: Mapping[str, bytes]) -> Box:
        return await boxes.open(files, key="", lease_s=60.0)

    yield open_box
    await context.__aexit__(None, None, None)


async def _runsc() -> AsyncIterator[OpenBox]:
    """One box, emptied in between, since it takes long to make one."""
    if os.geteuid() != 0:
        pytest.skip("runsc needs root")
    async for opener in _local("runsc"):
        box = await opener({})

        async def open_box(files: Mapping[str, bytes], box: Box = box) -> Box:
            emptied = await box.run_command(["find", ".", "-mindepth", "1", "-delete"])
            assert emptied.exit_code == 0, emptied
            await box.write_files(files)
            return box

        yield open_box


async def _grpc() -> AsyncIterator[OpenBox]:
    try:
        backend = await open_backend(IsolationChoice())
    except JourneymanError as error:
        missing(error.message)
    app = Sandboxes(backend, max_boxes=100)
    server = RpcServer("127.0.0.1:0")
    servicer = SandboxServicer(app, BoxShape(), Program())
    server.add(add_SandboxServiceServicer_to_server, servicer, "jm.sandbox.v1.SandboxService")
    await server.start()
    connection = channel(f"127.0.0.1:{server.port}")
    boxes = SandboxBoxes(connection)

    async def open_box(files: Mapping[str, bytes]) -> Box:
        return await boxes.open(files, key="", lease_s=60.0)

    yield open_box
    await boxes.close()
    await connection.close()
    await server.stop(0.0)
    await app.close()


@pytest_asyncio.fixture(
    loop_scope="module", scope="module", params=["inprocess", "ns", "weak", "bwrap", "runsc", "grpc"]
)
async def open_box(request: pytest.FixtureRequest) -> AsyncIterator[OpenBox]:
    makers = {
        "inprocess": _inprocess,
        "ns": lambda: _local("auto"),
        "weak": lambda: _local("weak"),
        "bwrap": lambda: _local("bwrap"),
        "runsc": _runsc,
        "grpc": _grpc,
    }
    async for opener in makers[request.param]():
        yield opener


async def test_python_sees_argv_main_and_folder(open_box: OpenBox) -> None:
    box = await open_box({"a.txt": b"hello", "sub/b.txt": b"deep"})
    source = "import sys\nprint(__name__, sys.argv[1:], open('a.txt').read(), open('sub/b.txt').read(), sys.stdin.read() == '')"
    result = await box.run_python(source, ["x", "y z"])
    assert result.stderr == b""
    assert (result.ending, result.exit_code) == (Ending.EXITED, 0)
    assert result.stdout == b"__main__ ['x', 'y z'] hello deep True\n"
    assert result.wall_s > 0


@pytest.mark.parametrize(
    ("source", "exit_code", "stderr"),
    [
        ("import sys; sys.exit(3)", 3, b""),
        ("import sys; sys.exit('bye')", 1, b"bye\n"),
        ("import sys; sys.exit()", 0, b""),
        ("raise SystemExit(257)", 1, b""),
    ],
)
async def test_exit_codes_are_those_of_python(open_box: OpenBox, source: str, exit_code: int, stderr: bytes) -> None:
    result = await (await open_box({})).run_python(source)
    assert (result.ending, result.exit_code, result.stderr) == (Ending.EXITED, exit_code, stderr)


async def test_traceback_shows_the_program_and_nothing_of_ours(open_box: OpenBox) -> None:
    result = await (await open_box({})).run_python("x = 1\nassert x == 2, 'not two'")
    assert (result.ending, result.exit_code) == (Ending.EXITED, 1)
    first, where, line, *_, last = result.stderr.decode().splitlines()
    assert (first, where) == ("Traceback (most recent call last):", '  File "<program>", line 2, in <module>')
    assert (line, last) == ("    assert x == 2, 'not two'", "AssertionError: not two")


async def test_syntax_error_is_the_programs(open_box: OpenBox) -> None:
    result = await (await open_box({})).run_python("def f(:\n")
    assert result.exit_code == 1
    assert b"SyntaxError: invalid syntax" in result.stderr


async def test_imports_come_from_the_folder_as_it_is_now(open_box: OpenBox) -> None:
    box = await open_box({"answer.py": b"VALUE = 1\n"})
    assert (await box.run_python("import answer; print(answer.VALUE)")).stdout == b"1\n"
    await box.write_files({"answer.py": b"VALUE = 2\n"})
    assert (await box.run_python("import answer; print(answer.VALUE)")).stdout == b"2\n"


async def test_programs_share_files_but_no_memory(open_box: OpenBox) -> None:
    box = await open_box({})
    await box.run_python("left = 5; open('left', 'w').write('1')")
    result = await box.run_python("import __main__; print(open('left').read(), hasattr(__main__, 'left'))")
    assert result.stdout == b"1 False\n"


async def test_unicode_and_bytes_pass_unchanged(open_box: OpenBox) -> None:
    box = await open_box({})
    result = await box.run_python(
        "import sys; print('größe €'); sys.stdout.flush(); sys.stdout.buffer.write(b'\\xff\\0')"
    )
    assert result.stdout == "größe €\n".encode() + b"\xff\0"


async def test_commands_run_in_the_folder(open_box: OpenBox) -> None:
    box = await open_box({"a.txt": b"one\ntwo\n"})
    result = await box.run_command(["grep", "-c", "o", "a.txt"])
    assert (result.ending, result.exit_code, result.stdout) == (Ending.EXITED, 0, b"2\n")
    assert (await box.run_command(["sh", "-c", "exit 7"])).exit_code == 7
    missing = await box.run_command(["no-such-program"])
    assert (missing.exit_code, missing.stderr) == (127, b"no-such-program: command not found\n")


async def test_python_as_a_command_is_this_interpreter(open_box: OpenBox) -> None:
    result = await (await open_box({})).run_command(["python3", "-c", "print(6 * 7)"], timeout_s=20.0, cpu_s=10.0)
    assert (result.stdout, result.exit_code) == (b"42\n", 0), result


async def test_signals_are_told(open_box: OpenBox) -> None:
    result = await (await open_box({})).run_command(["sh", "-c", "kill -TERM $$"])
    assert (result.ending, result.exit_code) == (Ending.SIGNALLED, None)


async def test_too_much_output_is_cut_and_said(open_box: OpenBox) -> None:
    result = await (await open_box({})).run_python("print('x' * 300_000)")
    assert result.ending is Ending.OUTPUT_LIMIT
    assert result.truncated
    assert result.stdout == b"x" * 65536
    assert result.stdout_cut == OutputCut(head_bytes=65536, total_bytes=65536)
    assert result.stderr_cut is None


async def test_files_are_written_replaced_and_read(open_box: OpenBox) -> None:
    box = await open_box({"a": b"1"})
    await box.write_files({"a": b"2", "deep/er/b": bytes(range(256))})
    assert await box.read_files(["a", "deep/er/b", "deep", "none"]) == {"a": b"2", "deep/er/b": bytes(range(256))}


@pytest.mark.parametrize("path", ["/etc/passwd", "../up", "a/../../b", "", "a//b", "nul\0"])
async def test_bad_paths_are_refused(open_box: OpenBox, path: str) -> None:
    box = await open_box({})
    with pytest.raises(JourneymanError):
        await box.write_files({path: b"x"})
    with pytest.raises(JourneymanError):
        await box.read_files([path])
