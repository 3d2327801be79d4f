"""Runs one program at a time in a box and watches it from the box's init. Called by init.serve.

It reports facts, not judgements: exit status, what it was killed for, what it wrote, what it used. When it returns, no process of the
program is left. The service watches this watcher from outside.
"""

import contextlib
import mmap
import os
import resource
import select
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from sandbox_service.adapters.box.exits import ExitWatch
from sandbox_service.adapters.box.frames import Frame, Header
from sandbox_service.adapters.box.program import (
    Note,
    become_command,
    become_python,
    limit_cpu,
    make_streams,
    take_streams,
)

_READ_BYTES = 64 * 1024
_LOOK_S = 0.05
"""Shortest time between two looks at the CPU that a program uses."""
_CONTROL_SOURCE = "print(6 * 7)"
_CONTROL_OUTPUT = b"42\n"
_CONTROL_S = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One program with its limits."""

    source: str | None
    """Python; None where argv is a command."""
    argv: Sequence[str]
    environment: dict[str, str]
    stdin: bytes
    timeout_s: float
    cpu_s: float
    output_bytes: int

    @classmethod
    def from_frame(cls, frame: Frame, environment: dict[str, str]) -> "Job":
        """From the wire."""
        extra = dict(entry.split("=", 1) for entry in frame.texts("env") if "=" in entry)
        return cls(
            source=frame.blobs[0].decode(errors="surrogateescape") if frame.flag("python") else None,
            argv=frame.texts("argv"),
            environment={**environment, **extra},
            stdin=frame.blobs[1],
            timeout_s=frame.number("timeout_s"),
            cpu_s=frame.number("cpu_s"),
            output_bytes=int(frame.number("output_bytes")),
        )


@dataclass(slots=True)
class Watched:
    """A running program as its watcher sees it."""

    pid: int
    started_s: float
    outputs: dict[int, bytearray]
    """What came out, by our end of the pipe: stdout, then stderr."""
    killed_for: str = ""
    """wall | cpu | output; empty while it was not."""
    status: int | None = None
    cpu_s: float = 0.0
    """Of processes already reaped."""
    truncated: bool = False
    open_fds: set[int] = field(default_factory=set)


class Runner:
    """The box's one place for programs."""

    def __init__(self, folder: str, kill_rest: Callable[[], None], cpu_in_use_s: Callable[[], float]) -> None:
        self._folder = folder
        self._kill_rest = kill_rest
        self._cpu_in_use_s = cpu_in_use_s
        self._notes = mmap.mmap(-1, mmap.PAGESIZE)
        self._nothing_fd = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
        self._num_cpus = os.cpu_count() or 1
        make_streams()

    def run(self, job: Job) -> tuple[Header, Sequence[bytes]]:
        """Facts about the program, and its two outputs."""
        watched = self._start(job)
        self._watch(watched, job)
        self._end(watched, job.output_bytes)
        wall_s = time.monotonic() - watched.started_s
        stdout, stderr = (bytes(output[: job.output_bytes]) for output in watched.outputs.values())
        facts: dict[str, str | int | float | bool] = {
            "status": watched.status or 0,
            "killed_for": watched.killed_for,
            "note": int(self._notes[0]),
            "wall_s": wall_s,
            "cpu_s": watched.cpu_s,
            "truncated": watched.truncated,
            "is_full": self._is_full() if watched.status else False,
        }
        if watched.killed_for == "wall":
            facts["control_passed"] = self._control_passes()
        return facts, (stdout, stderr)

    def _start(self, job: Job) -> Watched:
        self._notes[0] = Note.NONE
        stdin_fd = _memory_file(job.stdin) if job.stdin else self._nothing_fd
        pipes = [os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK) for _ in range(2)]
        started_s = time.monotonic()
        pid = os.fork()
        if pid == 0:
            self._become(job, stdin_fd, [write for _, write in pipes])
        for _, write in pipes:
            os.close(write)
        if stdin_fd != self._nothing_fd:
            os.close(stdin_fd)
        watched = Watched(pid, started_s, {read: bytearray() for read, _ in pipes})
        watched.open_fds = set(watched.outputs)
        return watched

    def _become(self, job: Job, stdin_fd: int, output_fds: Sequence[int]) -> None:
        try:
            for fd in output_fds:
                os.set_blocking(fd, True)
            os.setsid()
            take_streams(stdin_fd, *output_fds)
            limit_cpu(job.cpu_s)
            os.chdir(self._folder)
            if job.source is not None:
                become_python(job.source, job.argv, self._notes)
            become_command(job.argv, job.environment)
        finally:
            os._exit(126)

    def _watch(self, watched: Watched, job: Job) -> None:
        """Until the program ends or must."""
        exit_watch = ExitWatch(watched.pid)
        poll = select.poll()
        for fd in (exit_watch.fd, *watched.open_fds):
            if fd >= 0:
                poll.register(fd, select.POLLIN)
        deadline_s = watched.started_s + job.timeout_s
        look_s = watched.started_s + max(_LOOK_S, job.cpu_s / self._num_cpus)
        while not watched.killed_for:
            now_s = time.monotonic()
            wait_ms = max(0.0, (min(deadline_s, look_s) - now_s) * 1000 + 1)
            ready_fds = {fd for fd, _ in poll.poll(exit_watch.wait_ms(wait_ms))}
            for fd in ready_fds - {exit_watch.fd}:
                if not self._read(watched, fd, job.output_bytes):
                    poll.unregister(fd)
            if exit_watch.has_ended(ready_fds):
                break
            now_s = time.monotonic()
            if now_s >= deadline_s:
                watched.killed_for = "wall"
            elif now_s >= look_s:
                look_s = self._look_at_cpu(watched, job.cpu_s)
        exit_watch.close()

    def _look_at_cpu(self, watched: Watched, cpu_s: float) -> float:
        """Marks a program over its CPU limit; otherwise says when to look again."""
        self._reap(watched, os.WNOHANG)
        left_s = cpu_s - watched.cpu_s - self._cpu_in_use_s()
        if left_s <= 0:
            watched.killed_for = "cpu"
        return time.monotonic() + max(_LOOK_S, left_s / self._num_cpus)

    def _read(self, watched: Watched, fd: int, output_bytes: int) -> bool:
        """Takes what is there; False at the end of the stream."""
        try:
            data = os.read(fd, _READ_BYTES)
        except BlockingIOError:
            return True
        output = watched.outputs[fd]
        output += data
        if len(output) > output_bytes:
            watched.killed_for, watched.truncated = "output", True
        if not data:
            watched.open_fds.discard(fd)
        return bool(data)

    def _end(self, watched: Watched, output_bytes: int) -> None:
        """Ends every process of the program, counts what they used and takes what they wrote last."""
        self._kill_rest()
        self._reap(watched, 0)
        for fd, output in watched.outputs.items():
            while fd in watched.open_fds and not watched.truncated and self._has_more(fd):
                self._read(watched, fd, output_bytes)
            watched.truncated |= len(output) > output_bytes
            os.close(fd)

    def _has_more(self, fd: int) -> bool:
        return bool(select.select([fd], [], [], 0)[0])

    def _reap(self, watched: Watched, options: int) -> None:
        while True:
            try:
                pid, status, usage = os.wait4(-1, options)
            except ChildProcessError:
                return
            if pid == 0:
                return
            watched.cpu_s += usage.ru_utime + usage.ru_stime
            if pid == watched.pid:
                watched.status = status

    def _is_full(self) -> bool:
        facts = os.statvfs(self._folder)
        return facts.f_bavail == 0 or (facts.f_files > 0 and facts.f_favail == 0)

    def _control_passes(self) -> bool:
        """Whether a trivial program runs normally here and now."""
        job = Job(
            source=_CONTROL_SOURCE,
            argv=(),
            environment={},
            stdin=b"",
            timeout_s=_CONTROL_S,
            cpu_s=_CONTROL_S,
            output_bytes=len(_CONTROL_OUTPUT) + 1,
        )
        control = self._start(job)
        self._watch(control, job)
        self._end(control, job.output_bytes)
        return control.status == 0 and next(iter(control.outputs.values())) == _CONTROL_OUTPUT


def _memory_file(content: bytes) -> int:
    fd = os.memfd_create("stdin", os.MFD_CLOEXEC)
    rest = memoryview(content)
    while rest:
        rest = rest[os.write(fd, rest) :]
    os.lseek(fd, 0, os.SEEK_SET)
    return fd


def processes_of_box_s() -> float:
    """CPU seconds of all living processes of this pid namespace but its first and ours, with those of their reaped children."""
    ticks = 0
    others = ("1", str(os.getpid()))
    for name in os.listdir("/proc"):
        if name.isdigit() and name not in others:
            try:
                with open(f"/proc/{name}/stat", "rb", buffering=0) as file:
                    ticks += sum(map(int, file.read(1024).rpartition(b")")[2].split()[11:15]))
            except OSError:
                continue  # it ended meanwhile
    return ticks / os.sysconf("SC_CLK_TCK")


def apply_rlimits(memory_bytes: int, max_processes: int, disk_bytes: int) -> None:
    """The kernel's limits for each process of the box, never above what we are allowed ourselves."""
    wanted = {
        resource.RLIMIT_AS: memory_bytes,
        resource.RLIMIT_NPROC: max_processes,
        resource.RLIMIT_FSIZE: disk_bytes,
        resource.RLIMIT_NOFILE: 256,
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_MEMLOCK: 0,
    }
    for which, value in wanted.items():
        _, hard = resource.getrlimit(which)
        limit = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(which, (limit, limit))
    with contextlib.suppress(ValueError):  # gVisor's kernel has no message queues, so it refuses to limit them
        resource.setrlimit(resource.RLIMIT_MSGQUEUE, (0, 0))
