"""The sandbox service on boxes that bwrap or runsc makes: kill -9 leaves nothing behind, and what a box does to itself is told as such."""

import asyncio
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import psutil
import pytest

from journeyman.boxes.client import SandboxBoxes
from journeyman.boxes.port import BoxFailure, Ending
from journeyman.rpc.client import channel
from journeyman.testing.missing import missing
from sandbox_service.adapters.local_boxes import LocalBoxes, local_boxes
from sandbox_service.core.shape import MIB, BoxShape

ROOT = Path(__file__).parents[2]
LISTENS_S = 30.0
HOLD = "import os, time\nif os.fork() == 0:\n    os.setsid()\nprint('up', flush=True)\nwhile True: time.sleep(1)"


@pytest.fixture(params=["bwrap", "runsc"])
def tool(request: pytest.FixtureRequest) -> str:
    name = str(request.param)
    if name == "runsc" and os.geteuid() != 0:
        pytest.skip("runsc needs root")
    if not shutil.which(name):
        missing(f"{name} is not on PATH")
    return name


@pytest.fixture
def running(tool: str, tmp_path: Path) -> Iterator[tuple["subprocess.Popen[bytes]", int]]:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    environment = {key: value for key, value in os.environ.items() if not key.startswith("SANDBOX_")} | {
        "PYTHONPATH": str(ROOT),
        "SANDBOX_LISTEN": f"127.0.0.1:{port}",
        "SANDBOX_LOG_FILE": str(tmp_path / "sandbox.jsonl"),
        "SANDBOX_ISOLATION": tool,
    }
    process = subprocess.Popen([sys.executable, "-m", "sandbox_service"], env=environment, cwd=tmp_path)
    yield process, port
    process.kill()
    process.wait()


def _await_children(process: psutil.Process, count: int) -> None:
    """A program of a box is a process of the host's, in whatever guise."""
    deadline_s = time.monotonic() + LISTENS_S
    while len(process.children(recursive=True)) < count:
        assert time.monotonic() < deadline_s, "the programs do not start"
        time.sleep(0.02)


def _mounts() -> str:
    return Path("/proc/self/mountinfo").read_text()


def _left(name: str) -> list[Path]:
    """Folders of makers of boxes, anywhere that they could be left."""
    return [
        Path(folder, found)
        for place in ("/sys/fs/cgroup", "/run", "/var/run")
        for folder, folders, _ in os.walk(place)
        for found in folders
        if found.startswith(name)
    ]


async def test_kill_9_leaves_nothing(running: tuple["subprocess.Popen[bytes]", int], tool: str) -> None:
    process, port = running
    connection = channel(f"127.0.0.1:{port}")
    boxes = SandboxBoxes(connection)
    await asyncio.wait_for(connection.channel_ready(), LISTENS_S)
    mounts = _mounts()
    group = [await boxes.open({}, key="", lease_s=60.0) for _ in range(2)]
    own = psutil.Process(process.pid)
    num_without_programs = len(own.children(recursive=True))
    runs = [asyncio.ensure_future(box.run_python(HOLD, timeout_s=60.0)) for box in group]
    await asyncio.to_thread(_await_children, own, num_without_programs + 2 * len(group))
    makers, family = own.children(), own.children(recursive=True)
    process.send_signal(signal.SIGKILL)
    process.wait()
    for run in runs:
        with pytest.raises(BoxFailure):
            await run
    _, alive = await asyncio.to_thread(psutil.wait_procs, family, 10.0)
    assert not alive
    assert _mounts() == mounts
    assert not [left for maker in makers for left in _left(f"journeyman-{maker.pid}-")]
    assert not _left("box1_sandbox")
    await boxes.close()
    await connection.close()


@pytest.fixture
async def boxes(tool: str) -> AsyncIterator[LocalBoxes]:
    async with local_boxes(tool, shape=BoxShape(memory_bytes=256 * MIB, max_processes=16)) as opened:
        assert opened.isolation == tool
        yield opened


async def test_a_broken_box_is_its_programs_doing_and_felt_by_no_other(boxes: LocalBoxes, tool: str) -> None:
    box, other = [await boxes.open({}, key="", lease_s=60.0) for _ in range(2)]
    storm = "import os\nwhile True:\n    try: os.fork()\n    except OSError: pass"
    told = await box.run_python(storm, timeout_s=20.0, cpu_s=5.0)
    expected = {Ending.TOO_MANY_PROCESSES, Ending.CPU_TIMEOUT}
    assert told.ending in expected | {Ending.OUT_OF_MEMORY} if tool == "runsc" else expected, told
    assert (await other.run_python("print('fine')")).stdout == b"fine\n"


async def test_programs_cannot_end_their_boxs_first_process(boxes: LocalBoxes) -> None:
    box = await boxes.open({}, key="", lease_s=60.0)
    await box.run_python(
        "import os, signal\nfor number in (9, 15, 19, 2):\n    for pid in (1, -1):\n        try: os.kill(pid, number)\n        except OSError: pass"
    )
    assert (await box.run_python("print('still here')")).stdout == b"still here\n"


async def test_disk_is_limited_and_the_root_is_not_written(boxes: LocalBoxes) -> None:
    box = await boxes.open({}, key="", lease_s=60.0)
    fill = "import sys\nfor part in range(100): open(f'{sys.argv[1]}/{part}', 'wb').write(bytes(1 << 21))"
    for folder in (".", "/tmp"):
        assert (await box.run_python(fill, [folder])).ending is Ending.DISK_FULL
    for path in ("/planted", "/usr/planted", "/dev/planted", "/etc/planted"):
        assert (await box.run_python("import sys; open(sys.argv[1], 'w')", [path])).ending is not Ending.EXITED or (
            await box.run_command(["test", "-e", path])
        ).exit_code == 1
