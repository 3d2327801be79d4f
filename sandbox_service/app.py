"""Use cases of the sandbox service: make, fork, run, read, renew, destroy. Called by the gRPC edge and, in process, by LocalBoxes."""

import asyncio
import os
import time
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import replace

from journeyman.boxes.paths import checked_path
from journeyman.boxes.port import DirectoryEntry, Ending, OutputPiece, RunResult
from journeyman.errors import ErrorCode, JourneymanError
from sandbox_service.core.programs import BoxRun, FilePart, Program
from sandbox_service.core.shape import BoxPlan
from sandbox_service.living import BoxLease, Living, LivingBoxes, checked_lease_s
from sandbox_service.parts import parts_of
from sandbox_service.pieces import Pieces
from sandbox_service.ports import Backend, LiveBox, SavedFiles
from sandbox_service.snapshots import Snapshot, Snapshots

MAX_WRITE_BYTES = 48 * 1024 * 1024
"""Of files in one call; a gRPC message holds 64 MiB."""
MAX_ENTRIES = 10_000
"""Of a folder in one answer."""
_EXPIRY_LOOK_S = 0.5


class Sandboxes:
    """The application."""

    def __init__(
        self,
        backend: Backend,
        *,
        max_boxes: int,
        num_parallel: int = 0,
        clock_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._backend = backend
        self._max_boxes = max_boxes
        self._slots = asyncio.Semaphore(num_parallel or 2 * (os.cpu_count() or 1))
        self._clock_s = clock_s
        self._boxes = LivingBoxes(clock_s)
        self._snapshots = Snapshots(backend, max_boxes)
        self._by_key: dict[str, asyncio.Task[BoxLease]] = {}
        self._num_coming = 0

    @property
    def isolation(self) -> str:
        """In force."""
        return self._backend.isolation

    @property
    def forking(self) -> str:
        """How files are forked: overlay, or copy with the reason."""
        return self._backend.forking

    @property
    def num_ready(self) -> int:
        """Boxes made ahead of demand."""
        return self._backend.num_ready

    @property
    def limits_enforced(self) -> tuple[Sequence[str], Sequence[str]]:
        """What is enforced, and what is not, each with its reason."""
        return self._backend.enforced, self._backend.not_enforced

    async def create(self, key: str, files: Mapping[str, bytes], plan: BoxPlan, lease_s: float) -> BoxLease:
        """A box with files. Repeating a key gives the box made first, for as long as it lives."""
        if not key:
            return await self._make(files, None, plan, lease_s)
        task = self._by_key.get(key)
        if task is None:
            task = self._by_key[key] = asyncio.ensure_future(self._make(files, None, plan, lease_s, key))
            task.add_done_callback(lambda done: self._forget_failure(key, done))
        made = await asyncio.shield(task)
        return self._boxes.lease(made.box_id)

    async def fork(self, box_id: str, count: int, lease_s: float) -> list[BoxLease]:
        """count more boxes with the same files. PRECONDITION while a program runs in the box."""
        living = self._boxes.get(box_id)
        saved = await living.box.save()
        try:
            return await self._make_all(saved, living.plan, count, lease_s)
        finally:
            self._backend.discard(saved)

    async def fork_snapshot(self, snapshot_id: str, count: int, lease_s: float) -> list[BoxLease]:
        """count boxes with the files of a snapshot."""
        snapshot = self._snapshots.get(snapshot_id)
        return await self._make_all(snapshot.saved, snapshot.plan, count, lease_s)

    async def snapshot(self, box_id: str, lease_s: float) -> BoxLease:
        """Keeps a box as it is; id and life of the snapshot. PRECONDITION while a program runs in the box."""
        until_s = self._clock_s() + checked_lease_s(lease_s)
        self._snapshots.refuse_more()
        living = self._boxes.get(box_id)
        snapshot = Snapshot(saved=await living.box.save(), plan=living.plan)
        return BoxLease(box_id=self._snapshots.add(snapshot, until_s), left_s=lease_s)

    async def restore(self, box_id: str, snapshot_id: str) -> None:
        """Makes a box what it was, or another was, at a snapshot; its limits stay. PRECONDITION while a program runs in it."""
        living, snapshot = self._boxes.get(box_id), self._snapshots.get(snapshot_id)
        await living.box.restore(snapshot.saved)
        self._boxes.change_plan(box_id, replace(snapshot.plan, shape=living.plan.shape))
        await living.box.settle(snapshot.plan.env, snapshot.plan.folder)

    def delete_snapshots(self, snapshot_ids: Sequence[str]) -> None:
        """Lets snapshots go; unknown ids are ignored."""
        self._snapshots.delete(snapshot_ids)

    async def run_batch(self, runs: Sequence[tuple[str, Program]]) -> list[BoxRun]:
        """Results in the order of the programs. A box that is not there is an infrastructure error of its own run only."""
        if len(runs) == 1:
            return [await self._run(*runs[0])]
        return list(await asyncio.gather(*(self._run(box_id, program) for box_id, program in runs)))

    async def run(self, box_id: str, program: Program) -> BoxRun:
        """One result. NOT_FOUND where the box is not there."""
        self._boxes.get(box_id)
        return await self._run(box_id, program)

    async def exec(self, box_id: str, program: Program) -> AsyncGenerator[OutputPiece | BoxRun, None]:
        """Output while the program runs, then the result. NOT_FOUND where the box is not there. Whoever stops listening kills the program."""
        self._boxes.get(box_id)
        pieces = Pieces()
        running = asyncio.ensure_future(self._run(box_id, program, pieces))
        running.add_done_callback(lambda _: pieces.close())
        try:
            async for piece in pieces:
                yield piece
            yield await running
        finally:
            running.cancel()
            await asyncio.wait([running])

    async def write(self, box_id: str, files: Mapping[str, bytes]) -> None:
        """Writes files below a box's working folder."""
        _check_files(files)
        await self._boxes.get(box_id).box.write(files)

    async def read(self, box_id: str, paths: Sequence[str]) -> dict[str, bytes]:
        """Regular files below a box's working folder; the rest is left out."""
        return await self._boxes.get(box_id).box.read([checked_path(path) for path in paths])

    async def read_file(
        self, box_id: str, path: str, offset: int = 0, length: int = 0
    ) -> AsyncGenerator[FilePart, None]:
        """Parts of a regular file below a box's working folder, at least one. NOT_FOUND says why there is none.

        A negative offset counts from the end; length 0 means to the end.
        """
        box, path = self._boxes.get(box_id).box, checked_path(path)
        async for part in parts_of(lambda start, most: box.read_part(path, start, most), offset, length):
            yield part

    async def read_log(self, box_id: str, log: str, offset: int = 0, length: int = 0) -> AsyncGenerator[FilePart, None]:
        """The same of a log that a result of this box names."""
        box = self._boxes.get(box_id).box
        async for part in parts_of(lambda start, most: box.read_log(log, start, most), offset, length):
            yield part

    async def list_directory(self, box_id: str, path: str) -> tuple[Sequence[DirectoryEntry], bool]:
        """The first MAX_ENTRIES entries of a folder by name, and whether there are more. NOT_FOUND says why there are none."""
        return await self._boxes.get(box_id).box.list_folder(checked_path(path) if path else "", MAX_ENTRIES)

    def has(self, box_id: str) -> bool:
        """Whether a box is there."""
        return box_id in self._boxes

    def renew(self, box_ids: Sequence[str], lease_s: float) -> list[str]:
        """Extends leases of boxes and snapshots; gives the ids that are gone."""
        until_s = self._clock_s() + checked_lease_s(lease_s)
        lost = []
        for box_id in box_ids:
            if not self._boxes.renew(box_id, until_s) and not self._snapshots.renew(box_id, until_s):
                lost.append(box_id)
        return lost

    async def destroy(self, box_ids: Sequence[str], reason: str = "") -> None:
        """Destroys boxes; unknown ids are ignored. An empty reason means that a client asked for it."""
        ending = [living for box_id in box_ids if (living := self._boxes.remove(box_id)) is not None]
        for living in ending:
            self._by_key.pop(living.key, None)
        await asyncio.gather(*(living.box.destroy(reason) for living in ending))

    def list_living(self) -> list[BoxLease]:
        """All boxes."""
        return self._boxes.leases()

    async def end_expired(self, stop: asyncio.Event) -> None:
        """Destroys boxes whose lease has ended, until stop is set. Raises where no more boxes can be made."""
        while not stop.is_set():
            await self.destroy(self._boxes.expired(), "its lease ended")
            self._snapshots.delete_expired(self._clock_s())
            if self._backend.lost.is_set():
                raise JourneymanError(ErrorCode.UNAVAILABLE, "the process that makes boxes has ended")
            try:
                async with asyncio.timeout(_EXPIRY_LOOK_S):
                    await stop.wait()
            except TimeoutError:
                continue

    async def close(self) -> None:
        """Destroys every box and the backend."""
        await self.destroy([lease.box_id for lease in self._boxes.leases()], "the service stops")
        await self._backend.close()

    async def _make_all(self, saved: SavedFiles, plan: BoxPlan, count: int, lease_s: float) -> list[BoxLease]:
        """count boxes, or none."""
        making = [asyncio.ensure_future(self._make({}, saved, plan, lease_s)) for _ in range(count)]
        made = await asyncio.gather(*making, return_exceptions=True)
        if not (failures := [failure for failure in made if isinstance(failure, BaseException)]):
            return [box for box in made if isinstance(box, BoxLease)]
        await self.destroy([box.box_id for box in made if isinstance(box, BoxLease)], "others could not be made")
        raise failures[0]

    async def _make(
        self, files: Mapping[str, bytes], saved: SavedFiles | None, plan: BoxPlan, lease_s: float, key: str = ""
    ) -> BoxLease:
        until_s = self._clock_s() + checked_lease_s(lease_s)
        _check_files(files)
        if len(self._boxes) + self._num_coming >= self._max_boxes:
            message = f"{self._max_boxes} boxes are alive, as many as SANDBOX_MAX_BOXES allows"
            raise JourneymanError(ErrorCode.EXHAUSTED, message)
        self._num_coming += 1
        try:
            box = await self._filled(files, saved, plan)
        finally:
            self._num_coming -= 1
        return self._boxes.add(Living(box=box, plan=plan, key=key), until_s)

    async def _filled(self, files: Mapping[str, bytes], saved: SavedFiles | None, plan: BoxPlan) -> LiveBox:
        box = await self._backend.create(plan.shape, saved)
        try:
            if plan.env or plan.folder:
                await box.settle(plan.env, plan.folder)
            if files:
                await box.write(files)
        except BaseException:
            await box.destroy("it could not be filled")
            raise
        return box

    async def _run(self, box_id: str, program: Program, pieces: Pieces | None = None) -> BoxRun:
        living = self._boxes.find(box_id)
        if living is None:
            return _lost(f"there is no box {box_id}: its lease ended or it was destroyed")
        async with self._slots:
            return await living.box.run(program, pieces)

    def _forget_failure(self, key: str, done: "asyncio.Task[BoxLease]") -> None:
        if done.cancelled() or done.exception() is not None:
            self._by_key.pop(key, None)


def _check_files(files: Mapping[str, bytes]) -> None:
    for path in files:
        checked_path(path)
    if (num_bytes := sum(map(len, files.values()))) > MAX_WRITE_BYTES:
        message = f"files of {num_bytes} bytes in one call: at most {MAX_WRITE_BYTES}; write them in several"
        raise JourneymanError(ErrorCode.INVALID_INPUT, message)


def _lost(reason: str) -> BoxRun:
    result = RunResult(
        ending=Ending.INFRA_ERROR,
        exit_code=None,
        stdout=b"",
        stderr=b"",
        wall_s=0.0,
        cpu_s=0.0,
        infra_reason=reason,
    )
    return BoxRun(result=result)
