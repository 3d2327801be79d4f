"""LinkedBox: a LiveBox over the connection to a box's init. The same for every kind of isolation.

A box that its own programs broke (its init died for want of memory, or did not answer any more) is spent: later runs end as the program
that broke it did, reads find nothing, writes vanish. So breaking a box is evidence about the program, never an infrastructure error.
"""

import asyncio
import signal
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace

from journeyman.boxes.port import DirectoryEntry, Ending, RunResult, Stream
from journeyman.errors import ErrorCode, JourneymanError
from sandbox_service.adapters.box.frames import Frame, FrameError, Header
from sandbox_service.adapters.box_link import BoxGone, BoxLink, BoxSilent
from sandbox_service.adapters.box_logs import BoxLogs
from sandbox_service.adapters.box_messages import entries_of, run_facts, run_request, usage_of, writes_of
from sandbox_service.adapters.launching import BoxCounters, LaunchedBox
from sandbox_service.adapters.run_output import RunOutput
from sandbox_service.core.endings import RunFacts, explain
from sandbox_service.core.programs import BoxRun, FilePart, Program
from sandbox_service.core.shape import BoxShape
from sandbox_service.ports import Listener

_GRACE_S = 5.0
"""How much longer than its program a box's init may take before it counts as broken: killing, a control program, a busy machine."""
_HELD_BACK_S = 0.5
"""How much longer than its program a listener may hold output back: then the program is over, and its box is wanted for others."""
_FILES_S = 20.0
_END_S = 10.0
_DYING_S = 2.0
"""From the end of a connection to the burial of the init that closed it by dying; killing it meanwhile would hide why it died."""


class LinkedBox:
    """One box."""

    def __init__(
        self, launched: LaunchedBox, link: BoxLink, shape: BoxShape, control: Callable[[], Awaitable[bool]]
    ) -> None:
        self._launched = launched
        self._link = link
        self._shape = shape
        self._control = control
        """Whether a trivial program runs normally in a fresh box."""
        self._lock = asyncio.Lock()
        self._counted = BoxCounters()
        self._num_runs = 0
        self._is_running = False
        self._env: tuple[str, ...] = ()
        self._folder = ""
        self._logs = BoxLogs()
        self._listener: Listener | None = None
        """Of the program that runs."""
        self._spent: Ending | None = None
        self._destroyed_for: str | None = None

    async def run(self, program: Program, listener: Listener | None = None) -> BoxRun:
        """See LiveBox."""
        async with self._lock:
            if self._spent is not None:
                return _without_output(self._spent, "")
            self._num_runs += 1
            self._is_running = True
            output = RunOutput(self._shape, self._logs, self._num_runs, listener)
            try:
                frame = await self._converse(program, output, listener)
                if refusal := frame.text("error"):
                    return await self._refuse(refusal)
                return await self._judge(frame, output)
            except BoxSilent:
                return await self._break(Ending.WALL_TIMEOUT)
            except (BoxGone, FrameError) as error:
                return await self._lose(str(error))
            finally:
                self._is_running = False
                output.close()

    async def settle(self, env: Sequence[str], folder: str) -> None:
        """See LiveBox."""
        async with self._lock:
            self._env, self._folder = tuple(env), folder
            await self._make_folder()

    async def write(self, files: Mapping[str, bytes]) -> None:
        """See LiveBox."""
        async with self._lock:
            for message in writes_of(files):
                frame = await self._ask_now(*message)
                if frame is None or not (error := frame.text("error")):
                    continue
                if not self._num_runs:
                    raise JourneymanError(ErrorCode.INVALID_INPUT, f"files do not fit into the box: {error}")
                self._spent = Ending.DISK_FULL
                return

    async def read(self, paths: Sequence[str]) -> dict[str, bytes]:
        """See LiveBox."""
        frame = await self._ask({"op": "read", "paths": list(paths)}, ())
        return {} if frame is None else dict(zip(frame.texts("paths"), frame.blobs, strict=False))

    async def read_part(self, path: str, offset: int, length: int) -> FilePart:
        """See LiveBox."""
        frame = await self._find(path, {"op": "part", "path": path, "offset": offset, "length": length})
        content = frame.blobs[0] if frame.blobs else b""
        return FilePart(content=content, start=int(frame.number("start")), total_bytes=int(frame.number("total_bytes")))

    async def read_log(self, log: str, offset: int, length: int) -> FilePart:
        """See LiveBox."""
        return self._logs.read(log, offset, length)

    async def list_folder(self, path: str, max_entries: int) -> tuple[Sequence[DirectoryEntry], bool]:
        """See LiveBox."""
        frame = await self._find(path, {"op": "list", "path": path, "max_entries": max_entries})
        return entries_of(frame), frame.flag("truncated")

    async def destroy(self, reason: str) -> None:
        """See LiveBox."""
        if self._destroyed_for is None:
            self._destroyed_for = reason
        if self._listener is not None:
            self._listener.release()
        await self._end()
        self._logs.remove()

    async def _make_folder(self) -> None:
        """Makes the folder that programs start in."""
        frame = await self._ask_now({"op": "folder", "path": self._folder}, ()) if self._folder else None
        if frame is not None and (error := frame.text("error")):
            raise JourneymanError(ErrorCode.INVALID_INPUT, f"the box's folder cannot be made: {error}")

    async def _converse(self, program: Program, output: RunOutput, listener: Listener | None) -> Frame:
        """Runs the program; takes its output and gives the answer."""
        request = run_request(program, self._shape, self._env, self._folder, is_heard=listener is not None)
        within_s = program.timeout_s + _GRACE_S
        if listener is None:
            frame = await self._link.request(*request, within_s=within_s, take=output.take)
        else:
            over = asyncio.get_running_loop().call_later(program.timeout_s + _HELD_BACK_S, listener.release)
            self._listener = listener
            try:
                frame = await self._link.request(*request, within_s=within_s, take=output.take)
            finally:
                over.cancel()
                self._listener = None
        if not frame.text("error"):
            output.finish(frame)
        return frame

    async def _find(self, path: str, header: Header) -> Frame:
        """An answer about what lies at path. NOT_FOUND where nothing does."""
        frame = await self._ask(header, ())
        if frame is None:
            message = f"its programs broke the box ({self._spent}), and its files went with it; make another box"
            raise JourneymanError(ErrorCode.NOT_FOUND, message)
        if absent := frame.text("absent") or frame.text("error"):
            where = f"{path!r} in the box" if path else "the working folder"
            raise JourneymanError(ErrorCode.NOT_FOUND, f"{where} {absent}; ListDirectory shows what there is")
        return frame

    async def _ask(self, header: Header, blobs: Sequence[bytes]) -> Frame | None:
        """The answer about files; None where the box is spent. NOT_FOUND where it is gone for another reason."""
        async with self._lock:
            return await self._ask_now(header, blobs)

    async def _ask_now(self, header: Header, blobs: Sequence[bytes]) -> Frame | None:
        """The same for those who have the lock."""
        if self._spent is not None:
            return None
        try:
            return await self._link.request(header, blobs, within_s=_FILES_S)
        except BoxSilent:
            await self._break(Ending.WALL_TIMEOUT)
        except BoxGone as error:
            await self._lose(str(error))
            if self._spent is None:
                raise JourneymanError(ErrorCode.NOT_FOUND, f"the box is gone: {error}") from error
        return None

    async def _judge(self, frame: Frame, output: RunOutput) -> BoxRun:
        """The result told by the box's init."""
        facts = run_facts(frame)
        if facts.calls_for_counters:
            facts = await self._with_counters(facts)
        ending = explain(facts)
        control_passed = frame.flag("control_passed")
        if ending is Ending.WALL_TIMEOUT and not control_passed:
            control_passed = await self._control()
        stdout, stdout_cut = output.kept(Stream.STDOUT)
        stderr, stderr_cut = output.kept(Stream.STDERR)
        result = RunResult(
            ending=ending,
            exit_code=facts.exit_code if ending is Ending.EXITED else None,
            stdout=stdout,
            stderr=stderr,
            wall_s=frame.number("wall_s"),
            cpu_s=frame.number("cpu_s"),
            control_passed=control_passed and ending is Ending.WALL_TIMEOUT,
            truncated=stdout_cut is not None or stderr_cut is not None,
            used=usage_of(frame, output.total_bytes),
            stdout_cut=stdout_cut,
            stderr_cut=stderr_cut,
        )
        return BoxRun(result=result, signal=facts.signal if ending is Ending.SIGNALLED else 0)

    async def _with_counters(self, facts: RunFacts) -> RunFacts:
        found = await self._launched.counters()
        before, self._counted = self._counted, found
        return replace(
            facts,
            num_oom_kills=found.num_oom_kills - before.num_oom_kills,
            num_fork_refusals=found.num_fork_refusals - before.num_fork_refusals,
        )

    async def _refuse(self, refusal: str) -> BoxRun:
        """The init could not even start the program: its earlier programs left no room, or we are at fault."""
        if await self._control():
            return await self._break(Ending.OUT_OF_MEMORY)
        return _without_output(Ending.INFRA_ERROR, refusal)

    async def _break(self, ending: Ending) -> BoxRun:
        """Kills a box that its programs broke."""
        self._spent = ending
        await self._end()
        control_passed = ending is Ending.WALL_TIMEOUT and await self._control()
        return _without_output(ending, "", control_passed=control_passed)

    async def _lose(self, reason: str) -> BoxRun:
        """The init is dead: because it was destroyed, for want of memory, or because of us."""
        counters = await self._await_end(_DYING_S) or await self._end()
        if self._destroyed_for is not None:
            ending = Ending.INFRA_ERROR if self._destroyed_for else Ending.KILLED_BY_CALLER
            return _without_output(ending, self._destroyed_for)
        if counters.num_oom_kills > self._counted.num_oom_kills:
            self._spent = Ending.OUT_OF_MEMORY
        elif counters.num_fork_refusals > self._counted.num_fork_refusals:  # gVisor's kernel does not survive that
            self._spent = Ending.TOO_MANY_PROCESSES
        if self._spent is not None:
            return _without_output(self._spent, "")
        self._destroyed_for = reason
        return _without_output(Ending.INFRA_ERROR, reason)

    async def _end(self) -> BoxCounters:
        """Kills the init and waits until it is buried."""
        self._launched.kill()
        try:
            return await self._await_end(_END_S) or BoxCounters()
        finally:
            self._link.close()

    async def _await_end(self, within_s: float) -> BoxCounters | None:
        try:
            async with asyncio.timeout(within_s):
                return await asyncio.shield(self._launched.ended)
        except TimeoutError:
            return None


async def wait_until_ready(launched: LaunchedBox, link: BoxLink, within_s: float) -> None:
    """Until a new box's init serves. UNAVAILABLE where it does not come up; then it is ended."""
    try:
        async with asyncio.timeout(within_s):
            frame = await link.next_frame()
        error = "" if frame.text("op") == "ready" else frame.text("error")
    except (BoxGone, FrameError, TimeoutError) as failure:
        error = str(failure) or "no answer"
    except asyncio.CancelledError:
        launched.kill()
        link.close()
        raise
    if error:
        launched.kill()
        link.close()
        raise JourneymanError(ErrorCode.UNAVAILABLE, f"a box did not come up: {error}")


def _without_output(ending: Ending, reason: str, *, control_passed: bool = False) -> BoxRun:
    result = RunResult(
        ending=ending,
        exit_code=None,
        stdout=b"",
        stderr=b"",
        wall_s=0.0,
        cpu_s=0.0,
        infra_reason=reason if ending is Ending.INFRA_ERROR else "",
        control_passed=control_passed,
    )
    return BoxRun(result=result, signal=signal.SIGKILL if ending is Ending.SIGNALLED else 0)
