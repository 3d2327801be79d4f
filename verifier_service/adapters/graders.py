"""Grader processes of this service: a few long-lived ones, each killed and replaced when it dies or takes too long."""

import asyncio
import contextlib
import pickle
import sys
from typing import cast

from journeyman.errors import JourneymanError
from verifier_service.adapters.questions import LENGTH, Answer, Question, Refusal
from verifier_service.core.grading import Climb, Grading
from verifier_service.ports import GraderLost

START_TIMEOUT_S = 60.0
"""Added to the first question of a process, which also pays for its imports on a busy machine."""


class GraderProcess:
    """One process, one question at a time."""

    def __init__(self, *, timeout_s: float, memory_bytes: int) -> None:
        self._timeout_s = timeout_s
        self._memory_bytes = memory_bytes
        self._process: asyncio.subprocess.Process | None = None

    async def ask(self, question: Question) -> Answer:
        """GraderLost where it dies or takes longer than timeout_s."""
        is_new = self._process is None
        process = self._process or await self._start()
        deadline_s = self._timeout_s + (START_TIMEOUT_S if is_new else 0.0)
        try:
            async with asyncio.timeout(deadline_s):
                return await _exchange(process, question)
        except TimeoutError as error:
            raise GraderLost(f"no answer within {deadline_s:.0f} s", has_timed_out=True) from error
        except (EOFError, ConnectionError, asyncio.IncompleteReadError) as error:
            await process.wait()
            raise GraderLost(f"ended with status {process.returncode}", has_timed_out=False) from error
        finally:
            if sys.exc_info()[0] is not None:  # also when cancelled: half an exchange must not meet the next question
                await self.kill()

    async def kill(self) -> None:
        """The next question starts a fresh one."""
        process, self._process = self._process, None
        if process is not None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()

    async def _start(self) -> asyncio.subprocess.Process:
        self._process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "verifier_service.adapters.grader_worker", str(self._memory_bytes)),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )
        return self._process


class Graders:
    """Implements ports.Grader over a fixed number of processes."""

    def __init__(self, count: int, *, timeout_s: float, memory_bytes: int) -> None:
        self._idle: asyncio.LifoQueue[GraderProcess] = asyncio.LifoQueue()
        self._all = [GraderProcess(timeout_s=timeout_s, memory_bytes=memory_bytes) for _ in range(count)]
        for process in self._all:
            self._idle.put_nowait(process)

    async def grade(self, data: bytes) -> Grading:
        return cast(Grading, await self._ask(Question(data=data)))

    async def read(self, data: bytes) -> Grading:
        return cast(Grading, await self._ask(Question(data=data, is_reading=True)))

    async def grade_one(self, data: bytes, place: int) -> Climb:
        return cast(Climb, await self._ask(Question(data=data, only=place), is_fresh=True))

    async def control(self, data: bytes) -> Climb:
        return cast(Climb, await self._ask(Question(data=data, is_control=True), is_fresh=True))

    async def close(self) -> None:
        """Ends all processes."""
        for process in self._all:
            await process.kill()

    async def _ask(self, question: Question, *, is_fresh: bool = False) -> Answer:
        process = await self._idle.get()
        try:
            if is_fresh:
                await process.kill()
            answer = await process.ask(question)
        finally:
            self._idle.put_nowait(process)
        if isinstance(answer, Refusal):
            raise JourneymanError(answer.code, answer.message)
        return answer


async def _exchange(process: asyncio.subprocess.Process, question: Question) -> Answer:
    assert process.stdin is not None
    assert process.stdout is not None
    frame = pickle.dumps(question)
    process.stdin.write(LENGTH.pack(len(frame)) + frame)
    await process.stdin.drain()
    head = await process.stdout.readexactly(LENGTH.size)
    answer: Answer = pickle.loads(await process.stdout.readexactly(LENGTH.unpack(head)[0]))
    return answer
