"""The sandbox service as a process: kill -9 leaves nothing behind, leases end, and no isolation means exit code 2 and one line."""

import asyncio
import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from jm.sandbox.v1 import sandbox_pb2 as pb
from jm.sandbox.v1.sandbox_pb2_grpc import SandboxServiceStub

from journeyman.boxes.client import SandboxBoxes
from journeyman.boxes.port import BoxFailure, Ending
from journeyman.rpc.client import channel

ROOT = Path(__file__).parents[2]
UID_FIRST = 1_900_000_000 + os.getpid() % 1000 * 100_000
"""Marks the processes of this test: it is on the command line of everything that the service starts."""


def service(tmp_path: Path, port: int, *arguments: str, **settings: str) -> "subprocess.Popen[str]":
    environment = {key: value for key, value in os.environ.items() if not key.startswith("SANDBOX_")}
    environment |= {
        "PYTHONPATH": str(ROOT),
        "SANDBOX_LISTEN": f"127.0.0.1:{port}",
        "SANDBOX_LOG_FILE": str(tmp_path / "sandbox.jsonl"),
        "SANDBOX_UID_FIRST": str(UID_FIRST),
        **settings,
    }
    return subprocess.Popen(
        [sys.executable, "-m", "sandbox_service", *arguments],
        env=environment,
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        text=True,
    )


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture
def running(tmp_path: Path) -> Iterator[tuple["subprocess.Popen[str]", int]]:
    port = free_port()
    process = service(tmp_path, port)
    try:
        _await(lambda: process.poll() is not None or _listens(port), "the service does not listen")
        if process.poll() is not None:
            reason = process.stderr.read() if process.stderr else ""
            if os.environ.get("CI") or "no isolation" not in reason:
                pytest.fail(reason)
            pytest.skip(reason)
        yield process, port
    finally:
        process.kill()
        process.wait()
        if process.stderr:
            process.stderr.close()


def _listens(port: int) -> bool:
    with contextlib.suppress(OSError):
        socket.create_connection(("127.0.0.1", port), 0.2).close()
        return True
    return False


def _await(condition: Callable[[], bool], what: str, within_s: float = 20.0) -> None:
    deadline_s = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < deadline_s, what
        time.sleep(0.02)


def _ours() -> list[int]:
    """Processes of boxes and their makers: a clone keeps the command line, a program its uid."""
    found = []
    for name in os.listdir("/proc"):
        with contextlib.suppress(OSError, ValueError):
            line = Path("/proc", name, "cmdline").read_text() if name.isdigit() else ""
            uid = Path("/proc", name).stat().st_uid if name.isdigit() else 0
            if f'"uid_first": {UID_FIRST}' in line or UID_FIRST <= uid < UID_FIRST + 65_000:
                found.append(int(name))
    return found


def _groups(makers: list[int]) -> list[str]:
    marks = tuple(f"journeyman-{pid}-" for pid in makers)
    return [name for _, folders, _ in os.walk("/sys/fs/cgroup") for name in folders if name.startswith(marks)]


def _mounts() -> str:
    return Path("/proc/self/mountinfo").read_text()


async def test_kill_9_leaves_no_process_no_mount_and_no_group(running: tuple["subprocess.Popen[str]", int]) -> None:
    process, port = running
    connection = channel(f"127.0.0.1:{port}")
    boxes = SandboxBoxes(connection)
    group = await boxes.open_group({"a": b"1"}, 4, key="k", lease_s=60.0)
    hold = "import os, time\nif os.fork() == 0:\n    os.setsid()\nwhile True: time.sleep(1)"
    runs = [asyncio.ensure_future(box.run_python(hold, timeout_s=60.0)) for box in group]
    await asyncio.to_thread(_await, lambda: len(_ours()) >= 2 + 4 * 3, "the programs do not start")
    makers = _ours()
    mounts = _mounts()
    process.send_signal(signal.SIGKILL)
    process.wait()
    for run in runs:
        with pytest.raises(BoxFailure):
            await run
    _await(lambda: not _ours(), f"processes survive: {_ours()}", 10.0)
    _await(lambda: not _groups(makers), f"groups survive: {_groups(makers)}", 10.0)
    assert _mounts() == mounts
    assert "journeyman /" not in mounts
    await boxes.close()
    await connection.close()


async def _log_something(port: int) -> None:
    connection = channel(f"127.0.0.1:{port}")
    stub = SandboxServiceStub(connection)
    limits = pb.BoxLimits(output_bytes=10, log_bytes=1000)
    made = await stub.CreateSandbox(pb.CreateSandboxRequest(limits=limits))
    run = pb.RunRequest(sandbox_id=made.sandbox_id, shell="echo 0123456789012345")
    (result,) = (await stub.RunBatch(pb.RunBatchRequest(runs=[run]))).results
    assert result.stdout_cut.log, result
    await connection.close()


async def test_logs_of_a_killed_service_are_removed_by_the_next(tmp_path: Path) -> None:
    folder = tmp_path / "temporary"
    folder.mkdir(mode=0o777)
    kept: list[set[Path]] = []
    for ending in (signal.SIGKILL, signal.SIGTERM):
        port = free_port()
        process = service(tmp_path, port, TMPDIR=str(folder))
        await asyncio.to_thread(_await, lambda p=port, q=process: q.poll() is not None or _listens(p), "no service")
        if process.poll() is not None and not os.environ.get("CI"):
            pytest.skip("no isolation here")
        kept.append(set(folder.glob("journeyman-log-*")))
        await _log_something(port)
        kept.append(set(folder.glob("journeyman-log-*")))
        process.send_signal(ending)
        process.wait()
        if process.stderr:
            process.stderr.close()
    assert [len(folders) for folders in kept] == [0, 1, 0, 1]
    assert not set(folder.glob("journeyman-log-*")), "a service that stops removes them"


async def test_the_death_of_the_maker_ends_the_service(running: tuple["subprocess.Popen[str]", int]) -> None:
    process, _ = running
    for pid in _ours():
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    _await(lambda: process.poll() is not None, "the service goes on without its maker of boxes")
    assert process.returncode == 1


async def test_leases_end_and_are_renewed(running: tuple["subprocess.Popen[str]", int]) -> None:
    _, port = running
    connection = channel(f"127.0.0.1:{port}")
    stub = SandboxServiceStub(connection)
    request = pb.CreateSandboxRequest(idempotency_key="one")
    request.lease.FromSeconds(1)
    left = await stub.CreateSandbox(request)
    again = await stub.CreateSandbox(request)
    assert left.sandbox_id == again.sandbox_id
    boxes = SandboxBoxes(connection)
    kept = await boxes.open({}, key="two", lease_s=1.0)
    deadline_s = time.monotonic() + 20.0
    while [box.sandbox_id for box in (await stub.ListSandboxes(pb.ListSandboxesRequest())).sandboxes] != [
        kept.sandbox_id
    ]:
        assert time.monotonic() < deadline_s
        await asyncio.sleep(0.05)
    assert (await kept.run_python("print(1)")).stdout == b"1\n"
    lost = await stub.RunBatch(
        pb.RunBatchRequest(
            runs=[
                pb.RunRequest(sandbox_id=left.sandbox_id, python=pb.PythonProgram(source="1")),
                pb.RunRequest(sandbox_id=kept.sandbox_id, python=pb.PythonProgram(source="print(2)")),
            ]
        )
    )
    assert [result.ending for result in lost.results] == [pb.ENDING_INFRA_ERROR, pb.ENDING_EXITED]
    await boxes.destroy([kept])
    with pytest.raises(BoxFailure):
        await kept.run_python("print(1)")
    with pytest.raises(BoxFailure):
        await kept.read_files(["a"])
    await boxes.close()
    await connection.close()


async def test_runs_of_one_tick_travel_together_and_apart(running: tuple["subprocess.Popen[str]", int]) -> None:
    _, port = running
    connection = channel(f"127.0.0.1:{port}")
    boxes = SandboxBoxes(connection)
    group = await boxes.open_group({"a": b"1"}, 8, key="k", lease_s=60.0)
    results = await asyncio.gather(
        *(box.run_python("import sys; print(sys.argv[1])", [str(n)]) for n, box in enumerate(group))
    )
    assert [result.stdout for result in results] == [f"{n}\n".encode() for n in range(8)]
    assert boxes.isolation in ("ns-root", "ns-rootless", "bwrap")
    long = asyncio.ensure_future(group[0].run_python("import time; time.sleep(50)", timeout_s=50.0))
    await asyncio.sleep(0.2)
    await boxes.destroy(group)
    with pytest.raises(BoxFailure):
        await long
    capabilities = await SandboxServiceStub(connection).GetCapabilities(pb.GetCapabilitiesRequest())
    assert {"wall", "cpu", "output", "network"} <= set(capabilities.enforced)
    await boxes.close()
    await connection.close()


async def test_wall_timeout_is_told_apart_from_a_slow_machine(running: tuple["subprocess.Popen[str]", int]) -> None:
    _, port = running
    connection = channel(f"127.0.0.1:{port}")
    boxes = SandboxBoxes(connection)
    box = await boxes.open({}, key="", lease_s=60.0)
    result = await box.run_python("import time; print('so far', flush=True); time.sleep(50)", timeout_s=0.5)
    assert (result.ending, result.control_passed, result.stdout) == (Ending.WALL_TIMEOUT, True, b"so far\n")
    await boxes.close()
    await connection.close()


def test_no_isolation_is_one_clear_line_and_exit_code_2(tmp_path: Path) -> None:
    process = service(tmp_path, 0, SANDBOX_ISOLATION="ns-root", SANDBOX_PYTHON="/no/such/python")
    _, stderr = process.communicate(timeout=30)
    assert process.returncode == 2
    assert len(stderr.strip().splitlines()) == 1, stderr
    assert "ns-root" in stderr
    assert "--allow-weak" in stderr


@pytest.mark.skipif(not shutil.which("unshare"), reason="unshare is not on PATH")
def test_a_machine_without_namespaces_is_told_what_to_do(tmp_path: Path) -> None:
    closed = "echo 0 > /proc/sys/user/max_user_namespaces && exec "
    if subprocess.run(
        ["unshare", "-Ur", "-m", "--propagation", "private", "sh", "-c", f"{closed} true"], check=False
    ).returncode:
        pytest.skip("user namespaces cannot be closed here, or are closed already")
    command = f"{closed} {sys.executable} -m sandbox_service"
    environment = os.environ | {
        "PYTHONPATH": str(ROOT),
        "SANDBOX_LOG_FILE": str(tmp_path / "log"),
        "PATH": "/usr/sbin:/sbin:/no",
    }
    done = subprocess.run(
        [
            shutil.which("unshare") or "",
            "-Ur",
            "-m",
            "--propagation",
            "private",
            shutil.which("sh") or "",
            "-c",
            command,
        ],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 2, done.stderr
    assert len(done.stderr.strip().splitlines()) == 1, done.stderr
    for word in ("ns-root:", "ns-rootless:", "bwrap: not on PATH", "--allow-weak", "fix:"):
        assert word in done.stderr


def test_weak_is_refused_unless_allowed(tmp_path: Path) -> None:
    process = service(tmp_path, 0, SANDBOX_ISOLATION="weak")
    _, stderr = process.communicate(timeout=30)
    assert process.returncode == 2
    assert "weak: refused" in stderr


def test_unknown_isolation_is_refused(tmp_path: Path) -> None:
    process = service(tmp_path, 0, SANDBOX_ISOLATION="strong")
    _, stderr = process.communicate(timeout=30)
    assert process.returncode == 2
    assert "SANDBOX_ISOLATION='strong'" in stderr


def test_sigterm_ends_it_cleanly(running: tuple["subprocess.Popen[str]", int]) -> None:
    process, _ = running
    process.terminate()
    assert process.wait(20) == 0
    _await(lambda: not _ours(), "processes survive", 10.0)
