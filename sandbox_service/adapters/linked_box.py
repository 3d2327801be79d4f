"""LinkedBox: a LiveBox over the connection to a box's init. The same for every kind of isolation.

A box that its own programs broke (its init died for want of memory, or did not answer any more) is spent: later runs end as the program
that broke it did, reads find nothing, writes vanish. So breaking a box is evidence about the program, never an infrastructure error.
"""

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable, Mapping, Sequence

from journeyman.boxes.port import Ending, RunResult
from journeyman.errors import ErrorCode, JourneymanError
from sandbox_service.adapters.box.frames import Frame, Header
from sandbox_service.adapters.box_link import BoxGone, BoxLink, BoxSilent
from sandbox_service.adapters.launching import BoxCounters, LaunchedBox
from sandbox_service.core.endings import RunFacts, explain
from sandbox_service.core.programs import BoxRun, Program
from sandbox_service.core.shape import BoxShape
from sandbox_service.ports import PackedFiles

_GRACE_S = 5.0
"""How much longer than its program a box's init may take before it counts as broken: killing, a control program, a busy machine."""
_FILES_S = 20.0
_END_S = 10.0
_DYING_S = 2.0
"""From the end of a connection to the burial of the init that closed it by dying; killing it meanwhile would hide why it died."""


class LinkedBox:
    """One box."""

    def __init__(self, launched: LaunchedBox, shape: BoxShape, control: Callable[[], Awaitable[bool]]) -> None:
        self._launched = launched
        self._link = BoxLink(launched)
        self._shape = shape
        self._control = control
        """Whether a trivial program runs normally in a fresh box."""
        self._lock = asyncio.Lock()
        self._counted = BoxCounters()
        self._has_run = False
        self._spent: Ending | None = None
        self._destroyed_for: str | None = None

    async def wait_until_ready(self, within_s: float) -> None:
        """UNAVAILABLE where it does not come up."""
        try:
            async with asyncio.timeout(within_s):
                frame = await self._link.next_frame()
        except (BoxGone, TimeoutError) as error:
            await self.destroy("it did not come up")
            raise JourneymanError(ErrorCode.UNAVAILABLE, f"a box did not come up: {error}") from error
        if frame.text("op") != "ready":
            await self.destroy("it did not come up")
            raise JourneymanError(ErrorCode.UNAVAILABLE, f"a box did not come up: {frame.text('error')}")

    async def run(self, program: Program) -> BoxRun:
        """See LiveBox."""
        async with self._lock:
            if self._spent is not None:
                return _without_output(self._spent, "")
            self._has_run = True
            within_s = program.timeout_s + _GRACE_S
            try:
                frame = await self._link.request(*_run_request(program, self._shape.output_bytes), within_s=within_s)
            except BoxSilent:
                return await self._break(Ending.WALL_TIMEOUT)
            except BoxGone as error:
                return await self._lose(str(error))
            if refusal := frame.text("error"):
                return await self._refuse(refusal)
            return await self._judge(frame)

    async def write(self, files: Mapping[str, bytes]) -> None:
        """See LiveBox."""
        frame = await self._ask({"op": "write", "paths": list(files)}, list(files.values()))
        if frame is not None and (error := frame.text("error")):
            if not self._has_run:
                raise JourneymanError(ErrorCode.INVALID_INPUT, f"files do not fit into the box: {error}")
            self._spent = Ending.DISK_FULL

    async def read(self, paths: Sequence[str]) -> dict[str, bytes]:
        """See LiveBox."""
        frame = await self._ask({"op": "read", "paths": list(paths)}, ())
        return {} if frame is None else dict(zip(frame.texts("paths"), frame.blobs, strict=False))

    async def pack(self) -> PackedFiles:
        """See LiveBox."""
        frame = await self._ask({"op": "pack"}, ())
        error = "its programs broke it" if frame is None else frame.text("error")
        if frame is None or error:
            raise JourneymanError(ErrorCode.PRECONDITION, f"the box cannot be forked: {error}")
        return PackedFiles(frame.raw)

    async def unpack(self, packed: PackedFiles) -> None:
        """See LiveBox."""
        frame = await self._ask({"op": "unpack"}, (packed,))
        if frame is None or (error := frame.text("error")):
            reason = "it is gone" if frame is None else error
            raise JourneymanError(ErrorCode.UNAVAILABLE, f"a forked box could not be filled: {reason}")

    async def destroy(self, reason: str) -> None:
        """See LiveBox."""
        if self._destroyed_for is None:
            self._destroyed_for = reason
        await self._end()

    async def _ask(self, header: Header, blobs: Sequence[bytes]) -> Frame | None:
        """The answer about files; None where the box is spent. NOT_FOUND where it is gone for another reason."""
        async with self._lock:
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

    async def _judge(self, frame: Frame) -> BoxRun:
        """The result told by the box's init."""
        status = int(frame.number("status"))
        facts = RunFacts(
            exit_code=os.WEXITSTATUS(status) if os.WIFEXITED(status) else 0,
            signal=os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0,
            killed_for=frame.text("killed_for"),
            note=int(frame.number("note")),
            is_full=frame.flag("is_full"),
            truncated=frame.flag("truncated"),
        )
        if facts.calls_for_counters:
            facts = await self._with_counters(facts)
        ending = explain(facts)
        control_passed = frame.flag("control_passed")
        if ending is Ending.WALL_TIMEOUT and not control_passed:
            control_passed = await self._control()
        result = RunResult(
            ending=ending,
            exit_code=facts.exit_code if ending is Ending.EXITED else None,
            stdout=frame.blobs[0],
            stderr=frame.blobs[1],
            wall_s=frame.number("wall_s"),
            cpu_s=frame.number("cpu_s"),
            control_passed=control_passed and ending is Ending.WALL_TIMEOUT,
            truncated=facts.truncated,
        )
        return BoxRun(result=result, signal=facts.signal if ending is Ending.SIGNALLED else 0)

    async def _with_counters(self, facts: RunFacts) -> RunFacts:
        found = await self._launched.counters()
        before, self._counted = self._counted, found
        return RunFacts(
            exit_code=facts.exit_code,
            signal=facts.signal,
            killed_for=facts.killed_for,
            note=facts.note,
            is_full=facts.is_full,
            truncated=facts.truncated,
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


def _run_request(program: Program, output_bytes: int) -> tuple[Header, Sequence[bytes]]:
    header: Header = {
        "op": "run",
        "python": program.source is not None,
        "argv": program.argv,
        "env": program.env,
        "timeout_s": program.timeout_s,
        "cpu_s": program.cpu_s,
        "output_bytes": output_bytes,
    }
    return header, ((program.source or "").encode(errors="surrogateescape"), program.stdin)


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
