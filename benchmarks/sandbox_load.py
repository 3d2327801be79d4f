"""Many short boxes at once, some of them hostile: no answer may be wrong, nothing may be left.

Called by benchmarks.sandbox --load and by a test.
"""

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import quantiles

from jm.sandbox.v1 import sandbox_pb2 as pb

from benchmarks.report import Metric
from benchmarks.sandbox_server import Holdings, SandboxServer
from journeyman.errors import JourneymanError

_HOSTILE_EVERY = 20
"""One in so many boxes: 5 %."""
_SETTLE_S = 15.0
_LIMITS = pb.BoxLimits(memory_bytes=192 << 20, max_processes=32, disk_bytes=16 << 20, max_files=400)
_E = pb.Ending
_HOSTILE: tuple[tuple[str, frozenset[int]], ...] = (
    ("import os\nwhile True: os.fork()", frozenset({_E.ENDING_TOO_MANY_PROCESSES})),
    ("hoard = []\nwhile True: hoard.append(b'x' * (1 << 24))", frozenset({_E.ENDING_OUT_OF_MEMORY})),
    ("while True: print('x' * 4096)", frozenset({_E.ENDING_OUTPUT_LIMIT})),
    (
        "import signal\nfor number in (2, 15, 24): signal.signal(number, signal.SIG_IGN)\nwhile True: pass",
        frozenset({_E.ENDING_CPU_TIMEOUT, _E.ENDING_WALL_TIMEOUT}),
    ),
    (
        "with open('big', 'wb', buffering=0) as file:\n    while True: file.write(bytes(1 << 20))",
        frozenset({_E.ENDING_DISK_FULL}),
    ),
    (
        "import os\nfor pid in (1, -1):\n    try: os.kill(pid, 9)\n    except OSError: pass",
        frozenset({_E.ENDING_EXITED}),
    ),
    (
        "import os, time\nif os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0:\n"
        "        os.closerange(0, 100)\n        time.sleep(60)\n    os._exit(0)",
        frozenset({_E.ENDING_EXITED}),
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadOutcome:
    """What came of a load."""

    num_boxes: int
    wrong: tuple[str, ...]
    """Answers that are not what they should be; a hostile program's ending counts too."""
    failed: tuple[str, ...]
    """Calls that the service did not carry out."""
    seconds: tuple[float, ...]
    """From the creation of a harmless box to its destruction."""
    total_s: float
    cpu_s: float
    left: Holdings


async def load(server: SandboxServer, num_boxes: int, concurrency: int) -> LoadOutcome:
    """Creates, uses and destroys num_boxes, so many at once."""
    for _ in range(2):  # whatever is made once is made before it counts
        await server.destroy(await server.create())
    before = await server.holdings()
    slots = asyncio.Semaphore(concurrency)
    wrong: list[str] = []
    failed: list[str] = []
    seconds: list[float] = []

    async def one(number: int) -> None:
        async with slots:
            start = time.perf_counter()
            try:
                mistake = await _short_life(server, number)
            except JourneymanError as error:
                failed.append(str(error))
                return
            if mistake:
                wrong.append(mistake)
            if number % _HOSTILE_EVERY:
                seconds.append(time.perf_counter() - start)

    start, start_cpu = time.perf_counter(), server.cpu_s()
    await asyncio.gather(*(one(number) for number in range(num_boxes)))
    total_s, cpu_s = time.perf_counter() - start, server.cpu_s() - start_cpu
    return LoadOutcome(
        num_boxes=num_boxes,
        wrong=tuple(wrong),
        failed=tuple(failed),
        seconds=tuple(seconds),
        total_s=total_s,
        cpu_s=cpu_s,
        left=await _left(server, before),
    )


async def _short_life(server: SandboxServer, number: int) -> str:
    """One box. Says what was wrong; empty where nothing was."""
    box = await server.create({"number": str(number).encode()}, _LIMITS)
    try:
        if number % _HOSTILE_EVERY == 0:
            source, endings = _HOSTILE[number // _HOSTILE_EVERY % len(_HOSTILE)]
            result = await server.python(box, source, cpu_s=1.0)
            told = f"hostile {source[:30]!r} ended {_E.Name(result.ending)} {result.infra_reason}"
            return "" if result.ending in endings else told
        result = await server.python(box, "number = int(open('number').read())\nprint(number, number ** 3)")
        again = await server.command(box, ["cat", "number"])
    finally:
        await server.destroy(box)
    wanted = f"{number} {number**3}\n".encode(), str(number).encode()
    got = result.stdout, again.stdout
    return (
        ""
        if got == wanted
        else f"box {number}: {got}, {_E.Name(result.ending)} {result.infra_reason}{again.infra_reason}"
    )


async def _left(server: SandboxServer, before: Holdings) -> Holdings:
    """What is still there when the dying have had time to die."""
    deadline_s = time.monotonic() + _SETTLE_S
    nothing = Holdings(processes=0, mounts=0, groups=0, open_files=0)
    left = (await server.holdings()).above(before)
    while left != nothing and time.monotonic() < deadline_s:  # nobody tells when a process is gone
        await asyncio.sleep(0.1)
        left = (await server.holdings()).above(before)
    return left


def load_metrics(outcome: LoadOutcome) -> Mapping[str, Metric]:
    """As reported."""
    cuts = quantiles(outcome.seconds, n=100)
    first = next(iter((*outcome.wrong, *outcome.failed)), "")
    return {
        "load_boxes": Metric(value=outcome.num_boxes, unit="boxes"),
        "load_wrong_answers": Metric(value=len(outcome.wrong), unit="answers", target=0, why=first),
        "load_failed_calls": Metric(value=len(outcome.failed), unit="calls", target=0),
        "load_rate": Metric(value=outcome.num_boxes / outcome.total_s, unit="boxes/s", higher_is_better=True),
        "load_p50": Metric(value=1e3 * cuts[49], unit="ms"),
        "load_p99": Metric(value=1e3 * cuts[98], unit="ms"),
        "load_cpu_per_box": Metric(value=1e3 * outcome.cpu_s / outcome.num_boxes, unit="ms"),
        "load_left_processes": Metric(value=outcome.left.processes, unit="processes", target=0),
        "load_left_mounts": Metric(value=outcome.left.mounts, unit="mounts", target=0),
        "load_left_groups": Metric(value=outcome.left.groups, unit="groups", target=0),
        "load_left_open_files": Metric(value=outcome.left.open_files, unit="files", target=0),
    }
