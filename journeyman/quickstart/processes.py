"""One service process: start it, keep the end of what it said on standard error, know its CPU seconds, stop it.

Called by the supervisor. The process gets a group of its own, so that Ctrl-C in the terminal reaches only the quickstart, which then stops
the services in order; by JOURNEYMAN_DIE_WITH_PARENT it dies with the quickstart whatever happens.
"""

import asyncio
import os
from collections import deque
from pathlib import Path

from journeyman.quickstart.services import ServiceCommand

KEPT_LINES = 40
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")


class ServiceProcess:
    """A running or ended process."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._stderr: deque[str] = deque(maxlen=KEPT_LINES)
        self._reader = asyncio.create_task(self._read_stderr())
        self._cpu_s = 0.0

    @classmethod
    async def start(cls, command: ServiceCommand) -> "ServiceProcess":
        """Starts the command; its standard output is not used."""
        process = await asyncio.create_subprocess_exec(
            *command.argv,
            env=dict(command.env),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
            process_group=0,
        )
        return cls(process)

    @property
    def pid(self) -> int:
        """Process id."""
        return self._process.pid

    @property
    def stderr(self) -> list[str]:
        """The last lines it wrote to standard error."""
        return list(self._stderr)

    @property
    def last_words(self) -> str:
        """The last line that says something, or nothing."""
        return next((line for line in reversed(self._stderr) if line.strip()), "")

    async def wait(self) -> int:
        """Its exit code, negative for a signal, once everything it wrote has been read."""
        code = await self._process.wait()
        await self._reader
        return code

    async def stop(self, grace_s: float) -> None:
        """Asks it to end, and kills it after grace_s."""
        if self._process.returncode is not None:
            return
        self._process.terminate()
        try:
            await asyncio.wait_for(self._process.wait(), grace_s)
        except TimeoutError:
            self.kill()
            await self._process.wait()

    def kill(self) -> None:
        """Ends it at once."""
        if self._process.returncode is None:
            self._process.kill()

    def cpu_s(self) -> float:
        """CPU seconds of it and of its ended children; the last known figure once it is gone."""
        try:
            text = Path(f"/proc/{self.pid}/stat").read_text("ascii", errors="replace")
        except OSError:
            return self._cpu_s
        fields = text.rpartition(")")[2].split()  # the name in brackets may hold anything
        if len(fields) > 14 and fields[0] != "Z":
            self._cpu_s = sum(int(ticks) for ticks in fields[11:15]) / _TICKS_PER_S
        return self._cpu_s

    async def _read_stderr(self) -> None:
        stream = self._process.stderr
        if stream is None:
            return
        while line := await _read_line(stream):
            self._stderr.append(line.decode(errors="replace").rstrip())


async def _read_line(stream: asyncio.StreamReader) -> bytes:
    try:
        return await stream.readline()
    except ValueError:  # longer than the stream's buffer: the buffer was dropped, the rest follows
        return b"(a line too long to keep)\n"
