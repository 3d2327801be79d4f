"""What a box costs: making, using, forking and destroying one through gRPC, beside bare programs and other sandboxes, in one interleaved run.

`python -m benchmarks.sandbox --json - [--quick] [--load]`. Every round does each thing once, so that other load on the machine falls on
all; figures are medians. What the service cannot do (a snapshot where its isolation has none) is reported as such.
"""

import asyncio
import tempfile
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import click
from jm.sandbox.v1 import sandbox_pb2 as pb

from benchmarks.report import Metric, compared, unmeasured, write
from benchmarks.sandbox_load import load, load_metrics
from benchmarks.sandbox_peers import PYTHON, TRUE, Peer, make_project, peers
from benchmarks.sandbox_server import SandboxServer, ServerFailed, sandbox_server
from journeyman.convert.times import seconds_to_duration
from journeyman.errors import JourneymanError
from sandbox_service.settings import SandboxSettings

CONCURRENCIES = (1, 8, 32)
RATE_TARGET = 150.0
_WRITE_FILES = 100
"""Files of the project in one call."""
_POOL_SETTING = "max_spares"
_REFILL_S = 0.03
"""Between two takings from the pool, for it to be ready again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """How much is measured."""

    rounds: int
    slow_rounds: int
    """Of what takes a tenth of a second or more."""
    rate_s: float
    load_boxes: int
    load_concurrency: int


FULL = Size(rounds=120, slow_rounds=12, rate_s=6.0, load_boxes=2_000, load_concurrency=64)
QUICK = Size(rounds=25, slow_rounds=4, rate_s=2.0, load_boxes=400, load_concurrency=32)


class Stopwatch:
    """Milliseconds by name, and why something has none."""

    def __init__(self) -> None:
        self._taken: dict[str, list[float]] = {}
        self.failed: dict[str, str] = {}

    async def time(self, name: str, what: Callable[[], Awaitable[str | None]]) -> str:
        """Times one call. A refusal is noted and not tried again; gives an empty text then."""
        if name in self.failed:
            return ""
        start = time.perf_counter()
        try:
            given = await what()
        except JourneymanError as error:
            self.failed[name] = error.message or str(error.code)
            return ""
        self._taken.setdefault(name, []).append(1e3 * (time.perf_counter() - start))
        return given or ""

    def time_peer(self, peer: Peer) -> None:
        """Times a command."""
        if peer.why_not:
            self.failed[peer.name] = peer.why_not
            return
        start = time.perf_counter()
        peer.run()
        self._taken.setdefault(peer.name, []).append(1e3 * (time.perf_counter() - start))

    def median_ms(self, name: str) -> float | None:
        """None where it was never measured."""
        return median(self._taken[name]) if name in self._taken else None


async def fast_round(server: SandboxServer, cold: SandboxServer | None, live: str, watch: Stopwatch) -> None:
    """What takes milliseconds."""
    await asyncio.sleep(_REFILL_S)
    taken = await watch.time("checkout", server.create)
    await watch.time("destroy", lambda: server.destroy(taken))
    await watch.time("exec_true", lambda: _done(server.command(live, TRUE)))
    await watch.time("exec_python", lambda: _done(server.command(live, ("python3", *PYTHON[1:]))))
    await watch.time("warm_python", lambda: _done(server.python(live, "print(1)")))
    if cold is not None:
        made = await watch.time("create_cold", cold.create)
        await cold.destroy(made)


async def slow_round(server: SandboxServer, project: str, copied: Path, watch: Stopwatch) -> None:
    """Snapshots, forks and their peer, a copy."""
    snapshot = await watch.time("snapshot", lambda: _snapshot(server, project))
    request = pb.ForkSandboxRequest(count=1, lease=seconds_to_duration(60.0))
    request.snapshot_id, request.sandbox_id = snapshot, "" if snapshot else project
    forked = await watch.time("fork", lambda: _fork(server, request))
    if forked:
        counted = await server.python(forked, "import os\nprint(sum(len(files) for _, _, files in os.walk('.')))")
        if counted.stdout != b"2000\n":
            watch.failed["fork"] = f"a fork has {counted.stdout!r} files"
        await server.destroy(forked)
    if snapshot:
        await server.stub.DeleteSnapshots(pb.DeleteSnapshotsRequest(snapshot_ids=[snapshot]))
    target = copied.with_name("copy")
    watch.time_peer(Peer(name="copy", argv=("cp", "-a", str(copied), str(target))))
    Peer(name="", argv=("rm", "-rf", str(target))).run()
    await watch.time("create_exec_python_destroy", lambda: _whole_life(server, ("python3", *PYTHON[1:])))


async def rate(server: SandboxServer, concurrency: int, for_s: float) -> tuple[float, float]:
    """Boxes a second from creation over a command to destruction, and CPU milliseconds a box."""
    until = time.perf_counter() + for_s
    num_done = 0

    async def one_after_another() -> None:
        nonlocal num_done
        while time.perf_counter() < until:
            await _whole_life(server, TRUE)
            num_done += 1

    start, start_cpu = time.perf_counter(), server.cpu_s()
    await asyncio.gather(*(one_after_another() for _ in range(concurrency)))
    return num_done / (time.perf_counter() - start), 1e3 * (server.cpu_s() - start_cpu) / max(1, num_done)


async def _whole_life(server: SandboxServer, argv: tuple[str, ...]) -> None:
    box = await server.create()
    await _done(server.command(box, argv))
    await server.destroy(box)


async def _done(run: Awaitable[pb.RunResult]) -> None:
    result = await run
    if result.ending != pb.ENDING_EXITED or result.exit_code != 0:
        raise click.ClickException(
            f"a program ended {pb.Ending.Name(result.ending)}: {result.stderr[-200:]!r}{result.infra_reason}"
        )


async def _snapshot(server: SandboxServer, box: str) -> str:
    request = pb.SnapshotSandboxRequest(sandbox_id=box, lease=seconds_to_duration(60.0))
    return str((await server.stub.SnapshotSandbox(request)).snapshot_id)


async def _fork(server: SandboxServer, request: pb.ForkSandboxRequest) -> str:
    return str((await server.stub.ForkSandbox(request)).sandbox_ids[0])


async def _filled(server: SandboxServer, files: Mapping[str, bytes]) -> str:
    box = await server.create()
    paths = list(files)
    for start in range(0, len(paths), _WRITE_FILES):
        some = [pb.BoxFile(path=path, content=files[path]) for path in paths[start : start + _WRITE_FILES]]
        await server.stub.WriteFiles(pb.WriteFilesRequest(sandbox_id=box, files=some))
    return box


async def measure(size: Size, with_load: bool) -> dict[str, Metric]:
    """The whole run."""
    watch = Stopwatch()
    report: dict[str, Metric] = {}
    with tempfile.TemporaryDirectory(prefix="benchmark-sandbox-") as name:
        copied = Path(name, "project")
        files = make_project(copied)
        found = peers(Path(name))
        async with sandbox_server() as server, sandbox_server(**_without_pool()) as cold:
            live, project = await server.create(), await _filled(server, files)
            for number in range(size.rounds):
                await fast_round(server, cold, live, watch)
                for peer in found.values():
                    if peer.name.startswith("bare_") or number % (size.rounds // size.slow_rounds) == 0:
                        watch.time_peer(peer)
                if number % (size.rounds // size.slow_rounds) == 0:
                    await slow_round(server, project, copied, watch)
            await server.destroy(live, project)
            for concurrency in CONCURRENCIES:
                per_s, cpu_ms = await rate(server, concurrency, size.rate_s)
                target = None if concurrency == 1 else RATE_TARGET
                report[f"rate_at_{concurrency}"] = Metric(
                    value=per_s, unit="boxes/s", target=target, higher_is_better=True
                )
                report[f"cpu_per_box_at_{concurrency}"] = Metric(value=cpu_ms, unit="ms")
            report["cpu_total"] = Metric(value=server.cpu_s() + cold.cpu_s(), unit="s")
            if with_load:
                report |= load_metrics(await load(server, size.load_boxes, size.load_concurrency))
    return medians(watch) | report


def medians(watch: Stopwatch) -> dict[str, Metric]:
    """Medians beside what they are measured against, with the targets."""

    def alone(name: str, target: float | None = None) -> Metric:
        value = watch.median_ms(name)
        why = watch.failed.get(name, "not measured")
        return unmeasured("ms", why, target=target) if value is None else Metric(value=value, unit="ms", target=target)

    def beside(name: str, peer: str, target: float | None = None) -> Metric:
        value, reference = watch.median_ms(name), watch.median_ms(peer)
        if value is None or reference is None:
            missing = name if value is None else peer
            return unmeasured("ms", f"{missing}: {watch.failed.get(missing, 'not measured')}", target=target)
        return compared(value, reference, unit="ms", against=peer, target=target)

    report = {name: alone(name) for name in ("bare_true", "bare_python", "copy", "snapshot", "destroy")}
    report |= {name: alone(name, target) for name, target in (("create_cold", 10.0), ("checkout", 3.0), ("fork", 5.0))}
    report["exec_true"] = beside("exec_true", "bare_true")
    report["exec_true_above_bare"] = _above(watch, "exec_true", "bare_true", 3.0)
    report["exec_python"] = beside("exec_python", "bare_python")
    report["warm_python"] = alone("warm_python", 5.0)
    report["warm_python_to_bare"] = beside("warm_python", "bare_python", 0.5)
    report["copy_to_fork"] = _times_cheaper(watch, "fork", "copy", 50.0)
    for name in ("bwrap", "runsc"):
        for program in ("true", "python"):
            report[f"{name}_{program}"] = beside(f"{name}_{program}", f"bare_{program}")
    report["lite_python"] = beside("lite_python", "bare_python")
    report["create_exec_python_destroy"] = beside("create_exec_python_destroy", "lite_python")
    return report


def _above(watch: Stopwatch, name: str, peer: str, target: float) -> Metric:
    value, reference = watch.median_ms(name), watch.median_ms(peer)
    if value is None or reference is None:
        return unmeasured("ms", watch.failed.get(name, "not measured"), target=target)
    return Metric(value=value - reference, unit="ms", target=target)


def _times_cheaper(watch: Stopwatch, name: str, peer: str, target: float) -> Metric:
    value, reference = watch.median_ms(name), watch.median_ms(peer)
    if value is None or reference is None:
        return unmeasured("times", watch.failed.get(name, "not measured"), target=target)
    return Metric(value=reference / value, unit="times", target=target, higher_is_better=True)


def _without_pool() -> dict[str, str]:
    """Settings of a service that makes every box when it is asked for."""
    return {f"SANDBOX_{_POOL_SETTING.upper()}": "0"} if _POOL_SETTING in SandboxSettings.model_fields else {}


@click.command()
@click.option("--json", "destination", default="-", show_default=True, help="Where the report goes; - is the screen.")
@click.option("--quick", is_flag=True, help="Fewer rounds: the same figures in under a minute, with more noise.")
@click.option(
    "--load",
    "with_load",
    is_flag=True,
    help="Also 2,000 short boxes at once, one in twenty hostile; fewer with --quick.",
)
def main(destination: str, quick: bool, with_load: bool) -> None:
    """Measures the sandbox."""
    try:
        report = asyncio.run(measure(QUICK if quick else FULL, with_load))
    except (ServerFailed, click.ClickException) as error:
        report = {"exec_true": unmeasured("ms", str(error))}
    write("sandbox", report, destination)


if __name__ == "__main__":
    main()
