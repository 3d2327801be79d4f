"""Use cases on a backend that makes boxes of nothing."""

import asyncio
from collections.abc import Mapping, Sequence

import pytest

from journeyman.boxes.port import DirectoryEntry, Ending, EntryKind, OutputPiece, RunResult, Stream
from journeyman.errors import ErrorCode, JourneymanError
from sandbox_service.app import MAX_WRITE_BYTES, Sandboxes
from sandbox_service.core.programs import BoxRun, FilePart, Program
from sandbox_service.core.shape import BoxPlan, BoxShape
from sandbox_service.ports import Listener, SavedFiles


class PaperBox:
    """Files in a dict; a program echoes its source."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.settled: tuple[Sequence[str], str] = ((), "")
        self.destroyed_for: str | None = None
        self.num_running = 0
        self.gate: asyncio.Event | None = None

    async def run(self, program: Program, listener: Listener | None = None) -> BoxRun:
        if listener is not None:
            listener.put(OutputPiece(stream=Stream.STDOUT, content=b"so far"))
        if self.gate is not None:
            self.num_running += 1
            try:
                await self.gate.wait()
            finally:
                self.num_running -= 1
        output = (program.source or "").encode()
        result = RunResult(ending=Ending.EXITED, exit_code=0, stdout=output, stderr=b"", wall_s=0.0, cpu_s=0.0)
        return BoxRun(result=result)

    async def settle(self, env: Sequence[str], folder: str) -> None:
        self.settled = (env, folder)

    async def read_part(self, path: str, offset: int, length: int) -> FilePart:
        return _part(self.files[path], offset, length)

    async def read_log(self, log: str, offset: int, length: int) -> FilePart:
        return _part(log.encode(), offset, length)

    async def list_folder(self, path: str, max_entries: int) -> tuple[Sequence[DirectoryEntry], bool]:
        entries = [DirectoryEntry(name=name, kind=EntryKind.FILE, size_bytes=0, mode=0) for name in sorted(self.files)]
        return entries[:max_entries], len(entries) > max_entries

    async def write(self, files: Mapping[str, bytes]) -> None:
        self.files |= files

    async def read(self, paths: Sequence[str]) -> dict[str, bytes]:
        return {path: self.files[path] for path in paths if path in self.files}

    async def save(self) -> SavedFiles:
        return SavedFiles(packed=repr(self.files).encode())

    async def restore(self, saved: SavedFiles) -> None:
        self.files = eval((saved.packed or b"{}").decode())

    async def destroy(self, reason: str) -> None:
        self.destroyed_for = reason


def _part(content: bytes, offset: int, length: int) -> FilePart:
    return FilePart(content=content[offset : offset + length], start=offset, total_bytes=len(content))


class PaperBackend:
    """Makes PaperBoxes; refuses when told to."""

    isolation = "paper"
    enforced = ("wall",)
    not_enforced = ("host: it is paper",)
    forking = "copy: it is paper"
    num_ready = 0

    def __init__(self) -> None:
        self.lost = asyncio.Event()
        self.made: list[PaperBox] = []
        self.refuses = False
        self.num_discarded = 0

    async def create(self, shape: BoxShape, saved: SavedFiles | None = None) -> PaperBox:
        await asyncio.sleep(0)
        if self.refuses:
            raise JourneymanError(ErrorCode.UNAVAILABLE, "no more paper")
        self.made.append(PaperBox())
        if saved is not None:
            await self.made[-1].restore(saved)
        return self.made[-1]

    def discard(self, saved: SavedFiles) -> None:
        self.num_discarded += 1

    async def close(self) -> None:
        self.lost.set()


class Clock:
    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def backend() -> PaperBackend:
    return PaperBackend()


@pytest.fixture
def app(backend: PaperBackend, clock: Clock) -> Sandboxes:
    return Sandboxes(backend, max_boxes=5, clock_s=clock)


SHAPE = BoxPlan(shape=BoxShape())


async def test_a_key_gives_one_box_however_often_and_at_once(app: Sandboxes, backend: PaperBackend) -> None:
    made = await asyncio.gather(*(app.create("k", {"a": b"1"}, SHAPE, 10.0) for _ in range(4)))
    assert len({lease.box_id for lease in made}) == len(backend.made) == 1
    assert (await app.create("", {}, SHAPE, 10.0)).box_id != (await app.create("", {}, SHAPE, 10.0)).box_id


async def test_a_key_is_free_again_after_failure_and_destruction(app: Sandboxes, backend: PaperBackend) -> None:
    backend.refuses = True
    with pytest.raises(JourneymanError):
        await app.create("k", {}, SHAPE, 10.0)
    backend.refuses = False
    first = await app.create("k", {}, SHAPE, 10.0)
    await app.destroy([first.box_id])
    assert (await app.create("k", {}, SHAPE, 10.0)).box_id != first.box_id


async def test_forks_have_the_files_and_lives_of_their_own(app: Sandboxes) -> None:
    first = await app.create("", {"a": b"1"}, SHAPE, 10.0)
    forks = await app.fork(first.box_id, 2, 10.0)
    await app.write(forks[0].box_id, {"a": b"2"})
    assert await app.read(first.box_id, ["a"]) == await app.read(forks[1].box_id, ["a"]) == {"a": b"1"}
    await app.destroy([first.box_id])
    assert {lease.box_id for lease in app.list_living()} == {lease.box_id for lease in forks}


async def test_boxes_are_counted(app: Sandboxes) -> None:
    boxes = await asyncio.gather(*(app.create("", {}, SHAPE, 10.0) for _ in range(5)))
    with pytest.raises(JourneymanError) as refused:
        await app.create("", {}, SHAPE, 10.0)
    assert refused.value.code is ErrorCode.EXHAUSTED
    await app.destroy([boxes[0].box_id, "unknown"])
    await app.create("", {}, SHAPE, 10.0)


async def test_leases_end_unless_renewed(app: Sandboxes, backend: PaperBackend, clock: Clock) -> None:
    left, kept = await app.create("", {}, SHAPE, 10.0), await app.create("", {}, SHAPE, 10.0)
    clock.now_s += 9.0
    assert app.renew([kept.box_id, "unknown"], 10.0) == ["unknown"]
    clock.now_s += 2.0
    stop = asyncio.Event()
    watch = asyncio.ensure_future(app.end_expired(stop))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert [lease.box_id for lease in app.list_living()] == [kept.box_id]
    assert backend.made[0].destroyed_for == "its lease ended"
    (lost,) = await app.run_batch([(left.box_id, Program(source="1"))])
    assert lost.result.ending is Ending.INFRA_ERROR
    stop.set()
    await watch


async def test_a_renewal_never_shortens_a_lease(app: Sandboxes) -> None:
    made = await app.create("", {}, SHAPE, 100.0)
    app.renew([made.box_id], 5.0)
    assert app.list_living()[0].left_s == 100.0


async def test_the_loss_of_the_backend_is_raised(app: Sandboxes, backend: PaperBackend) -> None:
    backend.lost.set()
    with pytest.raises(JourneymanError):
        await app.end_expired(asyncio.Event())


async def test_one_lost_box_spoils_no_other_run(app: Sandboxes) -> None:
    made = await app.create("", {}, SHAPE, 10.0)
    runs = await app.run_batch([("gone", Program(source="a")), (made.box_id, Program(source="b"))])
    assert [run.result.ending for run in runs] == [Ending.INFRA_ERROR, Ending.EXITED]
    assert runs[1].result.stdout == b"b"


@pytest.mark.parametrize("lease_s", [0.0, 0.5, 3601.0])
async def test_bad_leases_are_refused(app: Sandboxes, lease_s: float) -> None:
    with pytest.raises(JourneymanError) as refused:
        await app.create("", {}, SHAPE, lease_s)
    assert refused.value.code is ErrorCode.INVALID_INPUT


async def test_files_are_checked(app: Sandboxes) -> None:
    for files in ({"../a": b""}, {"a": bytes(MAX_WRITE_BYTES + 1)}):
        with pytest.raises(JourneymanError) as refused:
            await app.create("", files, SHAPE, 10.0)
        assert refused.value.code is ErrorCode.INVALID_INPUT
    assert app.list_living() == []


async def test_a_listener_hears_pieces_and_then_the_result(app: Sandboxes) -> None:
    made = await app.create("", {}, SHAPE, 10.0)
    piece, run = [event async for event in app.exec(made.box_id, Program(source="a"))]
    assert piece == OutputPiece(stream=Stream.STDOUT, content=b"so far")
    assert isinstance(run, BoxRun)
    assert run.result.stdout == b"a"
    with pytest.raises(JourneymanError) as caught:
        await anext(app.exec("gone", Program(source="a")))
    assert caught.value.code is ErrorCode.NOT_FOUND


async def test_whoever_stops_listening_ends_the_run(app: Sandboxes, backend: PaperBackend) -> None:
    made = await app.create("", {}, SHAPE, 10.0)
    (box,) = backend.made
    box.gate = asyncio.Event()
    events = app.exec(made.box_id, Program(source="a"))
    await anext(events)
    assert box.num_running == 1
    await events.aclose()
    assert box.num_running == 0


async def test_reads_name_their_box_and_a_path_below_its_folder(app: Sandboxes) -> None:
    made = await app.create("", {"a": b"0123"}, SHAPE, 10.0)
    assert [part.content async for part in app.read_file(made.box_id, "a", 1, 2)] == [b"12"]
    assert [part.content async for part in app.read_log(made.box_id, "log")] == [b"log"]
    entries, truncated = await app.list_directory(made.box_id, "")
    assert ([entry.name for entry in entries], truncated) == (["a"], False)
    for path in ("../a", "/a"):
        with pytest.raises(JourneymanError):
            await anext(app.read_file(made.box_id, path))
        with pytest.raises(JourneymanError):
            await app.list_directory(made.box_id, path)
    with pytest.raises(JourneymanError):
        await anext(app.read_log("gone", "log"))
    with pytest.raises(JourneymanError, match="length = -1"):
        await anext(app.read_file(made.box_id, "a", 0, -1))


async def test_a_box_goes_back_to_a_snapshot_and_others_start_from_it(app: Sandboxes, backend: PaperBackend) -> None:
    made = await app.create("", {"a": b"1"}, BoxPlan(shape=BoxShape(), env=("A=1",), folder="sub"), 10.0)
    snapshot = await app.snapshot(made.box_id, 10.0)
    await app.write(made.box_id, {"a": b"2"})
    (other,) = await app.fork_snapshot(snapshot.box_id, 1, 10.0)
    assert await app.read(other.box_id, ["a"]) == {"a": b"1"}
    await app.restore(made.box_id, snapshot.box_id)
    assert await app.read(made.box_id, ["a"]) == {"a": b"1"}
    assert [box.settled for box in backend.made] == [(("A=1",), "sub")] * 2


async def test_snapshots_end_with_their_lease_and_when_deleted(
    app: Sandboxes, backend: PaperBackend, clock: Clock
) -> None:
    made = await app.create("", {}, SHAPE, 100.0)
    first, second, third = [await app.snapshot(made.box_id, 10.0) for _ in range(3)]
    app.delete_snapshots([first.box_id, "unknown"])
    assert app.renew([second.box_id, first.box_id], 100.0) == [first.box_id]
    clock.now_s += 11.0
    stop = asyncio.Event()
    watch = asyncio.ensure_future(app.end_expired(stop))
    await asyncio.sleep(0)
    stop.set()
    await watch
    for gone in (first, third):
        with pytest.raises(JourneymanError) as refused:
            await app.fork_snapshot(gone.box_id, 1, 10.0)
        assert refused.value.code is ErrorCode.NOT_FOUND
    await app.restore(made.box_id, second.box_id)
    assert backend.num_discarded == 2


async def test_snapshots_are_counted(backend: PaperBackend) -> None:
    app = Sandboxes(backend, max_boxes=1)
    made = await app.create("", {}, SHAPE, 10.0)
    await app.snapshot(made.box_id, 10.0)
    with pytest.raises(JourneymanError) as refused:
        await app.snapshot(made.box_id, 10.0)
    assert refused.value.code is ErrorCode.EXHAUSTED


async def test_forks_are_all_there_or_none(app: Sandboxes) -> None:
    made = await app.create("", {}, SHAPE, 10.0)
    with pytest.raises(JourneymanError):
        await app.fork(made.box_id, 5, 10.0)
    assert [lease.box_id for lease in app.list_living()] == [made.box_id]
