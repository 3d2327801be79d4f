"""LocalBoxes: the sandbox's boxes without the service in between, for the one-file loop, benchmarks and tests.

Same surface as journeyman.boxes.client.SandboxBoxes, same backends, same results; leases hold until destroy, as nobody else would end them.
"""

import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping, Sequence

from journeyman.boxes.paths import checked_path
from journeyman.boxes.port import BoxFailure, DirectoryEntry, Ending, OutputPiece, RunResult
from journeyman.errors import ErrorCode, JourneymanError
from sandbox_service.adapters.box_logs import remove_stale_logs
from sandbox_service.adapters.isolation import AUTO, IsolationChoice, open_backend
from sandbox_service.app import Sandboxes
from sandbox_service.core.programs import BoxRun, FilePart, Program, checked_env
from sandbox_service.core.shape import BoxPlan, BoxShape
from sandbox_service.living import MAX_LEASE_S

_MAX_BOXES = 4096


class LocalBox:
    """A Box. Made by LocalBoxes."""

    def __init__(self, app: Sandboxes, sandbox_id: str) -> None:
        self._app = app
        self.sandbox_id = sandbox_id

    async def run_python(
        self, source: str, argv: Sequence[str] = (), *, timeout_s: float = 5.0, cpu_s: float = 2.0
    ) -> RunResult:
        """See Box."""
        return await self._run(Program(source=source, argv=tuple(argv), timeout_s=timeout_s, cpu_s=cpu_s))

    async def run_command(self, argv: Sequence[str], *, timeout_s: float = 5.0, cpu_s: float = 2.0) -> RunResult:
        """See Box."""
        return await self._run(Program(argv=tuple(argv), timeout_s=timeout_s, cpu_s=cpu_s))

    async def exec_stream(
        self,
        program: str | Sequence[str],
        *,
        stdin: bytes = b"",
        env: Sequence[str] = (),
        folder: str = "",
        timeout_s: float = 5.0,
        cpu_s: float = 2.0,
    ) -> AsyncGenerator[OutputPiece | RunResult, None]:
        """See ClientBox."""
        wanted = Program(
            argv=("sh", "-c", program) if isinstance(program, str) else tuple(program),
            stdin=stdin,
            env=checked_env(env),
            folder=checked_path(folder) if folder else "",
            timeout_s=timeout_s,
            cpu_s=cpu_s,
        )
        with _lost_is_failure():
            async with contextlib.aclosing(self._app.exec(self.sandbox_id, wanted)) as events:
                async for event in events:
                    yield self._evidence(event) if isinstance(event, BoxRun) else event

    async def read_file(self, path: str, offset: int = 0, length: int = 0) -> bytes:
        """See ClientBox."""
        return await self._joined(self._app.read_file(self.sandbox_id, path, offset, length))

    async def read_log(self, log: str, offset: int = 0, length: int = 0) -> bytes:
        """See ClientBox."""
        return await self._joined(self._app.read_log(self.sandbox_id, log, offset, length))

    async def list_directory(self, path: str = "") -> Sequence[DirectoryEntry]:
        """See ClientBox."""
        with self._lost_is_failure():
            entries, _ = await self._app.list_directory(self.sandbox_id, path)
        return entries

    async def write_files(self, files: Mapping[str, bytes]) -> None:
        """See Box."""
        with _lost_is_failure():
            await self._app.write(self.sandbox_id, files)

    async def read_files(self, paths: Sequence[str]) -> dict[str, bytes]:
        """See Box."""
        with _lost_is_failure():
            return await self._app.read(self.sandbox_id, [checked_path(path) for path in paths])

    async def _run(self, program: Program) -> RunResult:
        (run,) = await self._app.run_batch([(self.sandbox_id, program)])
        return self._evidence(run)

    def _evidence(self, run: BoxRun) -> RunResult:
        """The result, where it says something about the program."""
        if run.result.ending in (Ending.INFRA_ERROR, Ending.KILLED_BY_CALLER):
            raise BoxFailure(run.result.infra_reason or f"box {self.sandbox_id} was destroyed while its program ran")
        return run.result

    async def _joined(self, parts: AsyncGenerator[FilePart, None]) -> bytes:
        with self._lost_is_failure():
            return b"".join([part.content async for part in parts])

    @contextlib.contextmanager
    def _lost_is_failure(self) -> Iterator[None]:
        """A file that is not there is evidence, a box that is not there is the sandbox's failure."""
        try:
            yield
        except JourneymanError as error:
            is_there = error.code is ErrorCode.NOT_FOUND and self._app.has(self.sandbox_id)
            if is_there or error.code is ErrorCode.INVALID_INPUT:
                raise
            raise BoxFailure(str(error)) from error


class LocalBoxes:
    """Opens and destroys boxes of this process."""

    def __init__(self, app: Sandboxes, shape: BoxShape) -> None:
        self._app = app
        self._shape = shape
        self.isolation = app.isolation
        """Isolation in force."""
        self.enforced, self.not_enforced = app.limits_enforced

    async def open(self, files: Mapping[str, bytes], *, key: str, lease_s: float) -> LocalBox:
        """A box with files. Repeating key gives the same box. lease_s is ignored."""
        with _lost_is_failure():
            made = await self._app.create(key, files, BoxPlan(shape=self._shape), MAX_LEASE_S)
        return LocalBox(self._app, made.box_id)

    async def open_group(self, files: Mapping[str, bytes], count: int, *, key: str, lease_s: float) -> list[LocalBox]:
        """count boxes with the same files: one made, the rest forked from it."""
        first = await self.open(files, key=key, lease_s=lease_s)
        if count == 1:
            return [first]
        with _lost_is_failure():
            forked = await self._app.fork(first.sandbox_id, count - 1, MAX_LEASE_S)
        return [first, *(LocalBox(self._app, made.box_id) for made in forked)]

    async def destroy(self, boxes: Sequence[LocalBox]) -> None:
        """Destroys boxes."""
        await self._app.destroy([box.sandbox_id for box in boxes])


@contextlib.asynccontextmanager
async def local_boxes(
    isolation: str = AUTO, *, allow_weak: bool = False, shape: BoxShape | None = None
) -> AsyncIterator[LocalBoxes]:
    """Boxes of this machine's best isolation; all end with the context. PRECONDITION where there is none."""
    remove_stale_logs()
    backend = await open_backend(IsolationChoice(isolation=isolation, allow_weak=allow_weak))
    app = Sandboxes(backend, max_boxes=_MAX_BOXES)
    try:
        yield LocalBoxes(app, shape or BoxShape())
    finally:
        await app.close()


@contextlib.contextmanager
def _lost_is_failure() -> Iterator[None]:
    try:
        yield
    except JourneymanError as error:
        if error.code is ErrorCode.INVALID_INPUT:
            raise
        raise BoxFailure(str(error)) from error
