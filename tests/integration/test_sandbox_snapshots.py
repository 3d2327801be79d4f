"""Snapshots over gRPC on every kind of isolation that this machine has: what is kept, what is shared, what is refused."""

import asyncio
import os
import shutil
from collections.abc import AsyncIterator, Sequence

import grpc
import pytest
import pytest_asyncio
from jm.sandbox.v1 import sandbox_pb2 as pb
from jm.sandbox.v1.sandbox_pb2_grpc import SandboxServiceStub, add_SandboxServiceServicer_to_server

from journeyman.boxes.client import SandboxBoxes
from journeyman.errors import ErrorCode, JourneymanError
from journeyman.rpc.client import channel
from journeyman.rpc.server import RpcServer
from journeyman.testing.missing import missing
from sandbox_service.adapters.isolation import IsolationChoice, open_backend
from sandbox_service.app import Sandboxes
from sandbox_service.core.programs import Program
from sandbox_service.core.shape import BoxShape
from sandbox_service.servicer import SandboxServicer


@pytest_asyncio.fixture(loop_scope="module", scope="module", params=["auto", "bwrap", "weak"])
async def target(request: pytest.FixtureRequest) -> AsyncIterator[str]:
    if request.param == "bwrap" and not shutil.which("bwrap") and not os.environ.get("CI"):
        pytest.skip("bwrap is not on PATH")
    try:
        backend = await open_backend(IsolationChoice(isolation=request.param, allow_weak=request.param == "weak"))
    except JourneymanError as error:
        missing(error.message)
    app = Sandboxes(backend, max_boxes=200)
    server = RpcServer("127.0.0.1:0")
    servicer = SandboxServicer(app, BoxShape(), Program())
    server.add(add_SandboxServiceServicer_to_server, servicer, "jm.sandbox.v1.SandboxService")
    await server.start()
    yield f"127.0.0.1:{server.port}"
    await server.stop(0.0)
    await app.close()


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def stub(target: str) -> AsyncIterator[SandboxServiceStub]:
    connection = channel(target)
    yield SandboxServiceStub(connection)
    await connection.close()


pytestmark = pytest.mark.asyncio(loop_scope="module")


async def create(stub: SandboxServiceStub, files: dict[str, bytes], env: Sequence[str] = (), folder: str = "") -> str:
    request = pb.CreateSandboxRequest(
        files=[pb.BoxFile(path=path, content=content) for path, content in files.items()], env=env, folder=folder
    )
    return str((await stub.CreateSandbox(request)).sandbox_id)


async def snapshot(stub: SandboxServiceStub, box: str) -> str:
    return str((await stub.SnapshotSandbox(pb.SnapshotSandboxRequest(sandbox_id=box))).snapshot_id)


async def fork(stub: SandboxServiceStub, count: int = 1, **source: str) -> list[str]:
    made = await stub.ForkSandbox(pb.ForkSandboxRequest(count=count, **source))
    return list(made.sandbox_ids)


async def python(stub: SandboxServiceStub, box: str, source: str) -> str:
    run = await stub.RunPython(pb.RunPythonRequest(sandbox_id=box, python=pb.PythonProgram(source=source)))
    assert run.result.ending == pb.ENDING_EXITED, run.result
    return str((run.result.stdout + run.result.stderr).decode())


LOOK = """
import os
for folder, _, files in sorted(os.walk('.')):
    for name in sorted(files):
        path = os.path.join(folder, name)
        print(path, open(path).read())
"""


async def test_a_snapshot_stays_what_it_was(stub: SandboxServiceStub) -> None:
    box = await create(stub, {"a": b"1", "deep/b": b"2"})
    kept = await snapshot(stub, box)
    await python(stub, box, "import shutil; shutil.rmtree('deep'); open('a', 'w').write('changed'); open('new', 'w')")
    (other,) = await fork(stub, snapshot_id=kept)
    assert await python(stub, other, LOOK) == "./a 1\n./deep/b 2\n"
    assert await python(stub, box, LOOK) == "./a changed\n./new \n"
    await stub.RestoreSandbox(pb.RestoreSandboxRequest(sandbox_id=box, snapshot_id=kept))
    assert await python(stub, box, LOOK) == "./a 1\n./deep/b 2\n"


async def test_forks_do_not_see_each_other(stub: SandboxServiceStub) -> None:
    box = await create(stub, {"a": b"0"})
    forks = await fork(stub, 4, sandbox_id=box)
    told = await asyncio.gather(
        *(python(stub, each, f"open('a', 'a').write('{n}'); print(open('a').read())") for n, each in enumerate(forks))
    )
    assert told == [f"0{n}\n" for n in range(4)]
    assert await python(stub, box, LOOK) == "./a 0\n"


async def test_folders_below_can_be_replaced_emptied_and_moved(stub: SandboxServiceStub) -> None:
    box = await create(stub, {"d/one": b"1", "d/two": b"2", "e/three": b"3"})
    (other,) = await fork(stub, sandbox_id=box)
    await python(
        stub, other, "import os, shutil; shutil.rmtree('d'); os.mkdir('d'); shutil.move('e', 'f'); os.unlink('f/three')"
    )
    (third,) = await fork(stub, sandbox_id=other)
    assert (
        await python(stub, third, "import os; print(sorted(entry[0] for entry in os.walk('.')))")
        == "['.', './d', './f']\n"
    )


async def test_snapshots_stand_on_each_other(stub: SandboxServiceStub) -> None:
    box = await create(stub, {})
    kept = []
    for number in range(12):
        await python(stub, box, f"open('f{number}', 'w').write('{number}')")
        kept.append(await snapshot(stub, box))
    await stub.DeleteSnapshots(pb.DeleteSnapshotsRequest(snapshot_ids=kept[:-1]))
    await stub.DestroySandboxes(pb.DestroySandboxesRequest(sandbox_ids=[box]))
    (other,) = await fork(stub, snapshot_id=kept[-1])
    assert await python(stub, other, "import os; print(len(os.listdir('.')), open('f0').read())") == "12 0\n"


async def test_environment_and_folder_come_back(stub: SandboxServiceStub) -> None:
    box = await create(stub, {"sub/a": b"1"}, env=["WHERE=here"], folder="sub")
    kept = await snapshot(stub, box)
    other = await create(stub, {})
    await stub.RestoreSandbox(pb.RestoreSandboxRequest(sandbox_id=other, snapshot_id=kept))
    run = pb.RunRequest(sandbox_id=other, shell="echo $WHERE; ls")
    (result,) = (await stub.RunBatch(pb.RunBatchRequest(runs=[run]))).results
    assert result.stdout == b"here\na\n"


async def test_a_box_that_its_programs_broke_can_be_restored(stub: SandboxServiceStub) -> None:
    box = await create(stub, {"a": b"1"})
    kept = await snapshot(stub, box)
    run = pb.RunRequest(sandbox_id=box, shell="head -c 100000000 /dev/zero > big; rm -f a")
    await stub.RunBatch(pb.RunBatchRequest(runs=[run]))
    await stub.RestoreSandbox(pb.RestoreSandboxRequest(sandbox_id=box, snapshot_id=kept))
    assert await python(stub, box, LOOK) == "./a 1\n"


async def test_nothing_is_kept_while_a_program_runs(stub: SandboxServiceStub) -> None:
    box = await create(stub, {})
    kept = await snapshot(stub, box)
    run = pb.RunRequest(sandbox_id=box, shell="echo started; cat /dev/zero > /dev/null")
    running = stub.Exec(pb.ExecRequest(run=run))
    assert (await running.read()).stdout == b"started\n"
    refused = (
        stub.SnapshotSandbox(pb.SnapshotSandboxRequest(sandbox_id=box)),
        stub.RestoreSandbox(pb.RestoreSandboxRequest(sandbox_id=box, snapshot_id=kept)),
        stub.ForkSandbox(pb.ForkSandboxRequest(sandbox_id=box, count=1)),
    )
    for call in refused:
        with pytest.raises(JourneymanError) as error:
            await call
        assert error.value.code is ErrorCode.PRECONDITION
        assert "a program runs" in error.value.message
    running.cancel()
    with pytest.raises((asyncio.CancelledError, grpc.aio.AioRpcError)):
        await running.read()


async def test_the_client_prepares_once_and_opens_a_group(stub: SandboxServiceStub, target: str) -> None:
    connection = channel(target)
    boxes = SandboxBoxes(connection)
    box = await boxes.open({"a": b"1"}, key="", lease_s=60.0, env=["WHO=me"], folder="sub")
    await box.run_command(["sh", "-c", "echo $WHO > who"])
    prepared = await boxes.snapshot(box, lease_s=60.0)
    await box.write_files({"sub/who": b"changed"})
    group = await boxes.open_snapshot(prepared, 3, lease_s=60.0)
    assert [await each.read_files(["sub/who"]) for each in group] == [{"sub/who": b"me\n"}] * 3
    await boxes.restore(box, prepared)
    assert await box.read_files(["sub/who"]) == {"sub/who": b"me\n"}
    await boxes.delete_snapshots([prepared])
    with pytest.raises(JourneymanError) as gone:
        await boxes.open_snapshot(prepared, lease_s=60.0)
    assert gone.value.code is ErrorCode.NOT_FOUND
    await boxes.destroy([box, *group])
    await boxes.close()
    await connection.close()


async def test_what_is_gone_or_senseless_is_refused(stub: SandboxServiceStub) -> None:
    box = await create(stub, {})
    kept = await snapshot(stub, box)
    await stub.DeleteSnapshots(pb.DeleteSnapshotsRequest(snapshot_ids=[kept, "unknown"]))
    gone = (
        stub.RestoreSandbox(pb.RestoreSandboxRequest(sandbox_id=box, snapshot_id=kept)),
        stub.ForkSandbox(pb.ForkSandboxRequest(snapshot_id=kept, count=1)),
        stub.SnapshotSandbox(pb.SnapshotSandboxRequest(sandbox_id="unknown")),
        stub.CreateSandbox(pb.CreateSandboxRequest(image="unknown")),
    )
    for call in gone:
        with pytest.raises(JourneymanError) as error:
            await call
        assert error.value.code is ErrorCode.NOT_FOUND
    with pytest.raises(JourneymanError) as both:
        await stub.ForkSandbox(pb.ForkSandboxRequest(sandbox_id=box, snapshot_id=kept, count=1))
    assert both.value.code is ErrorCode.INVALID_INPUT
