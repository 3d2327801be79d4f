"""Runs one program at a time in a box and watches it from the box's init. Called by init.serve.

It reports facts, not judgements: exit status, what it was killed for, what it wrote, what it used. When it returns, no process of the
program is left. Short output comes with the report; longer output is sent while the program runs, and a service that does not take it
holds the program back but never this watcher. The service watches this watcher from outside.
"""

import mmap
import os
import select
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from sandbox_service.adapters.box.exits import ExitWatch
from sandbox_service.adapters.box.frames import Header, receive
from sandbox_service.adapters.box.job import Job
from sandbox_service.adapters.box.meter import Meter
from sandbox_service.adapters.box.outlet import Outlet, Output
from sandbox_service.adapters.box.program import (
    Note,
    become_command,
    become_python,
    enter_folder,
    limit_itself,
    make_streams,
    take_streams,
)

_READ_BYTES = 64 * 1024
_LOOK_S = 0.05
"""Shortest time between two looks at the CPU that a program uses."""
_CONTROL_SOURCE = "print(6 * 7)"
_CONTROL_OUTPUT = b"42\n"
_CONTROL_S = 2.0


@dataclass(slots=True)
class Watched:
    """A running program as its watcher sees it."""

    pid: int
    started_s: float
    outputs: dict[int, Output]
    """By our end of the pipe: stdout, then stderr."""
    open_fds: set[int]
    """Those of them that have not ended."""
    killed_for: str = ""
    """wall | cpu | output | caller; empty while it was not."""
    status: int | None = None
    cpu_s: float = 0.0
    """Of processes already reaped."""

    @property
    def is_over(self) -> bool:
        """Whether it wrote more than it may."""
        return any(output.is_over for output in self.outputs.values())


class Runner:
    """The box's one place for programs."""

    def __init__(
        self,
        folder: str,
        outlet: Outlet,
        meter: Meter,
        kill_rest: Callable[[], None],
        cpu_in_use_s: Callable[[], float],
    ) -> None:
        self._folder = folder
        self._outlet = outlet
        self._meter = meter
        self._kill_rest = kill_rest
        self._cpu_in_use_s = cpu_in_use_s
        self._environment = dict(os.environ)
        self._notes = mmap.mmap(-1, mmap.PAGESIZE)
        self._nothing_fd = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
        self._num_cpus = os.cpu_count() or 1
        make_streams()

    def run(self, job: Job) -> tuple[Header, Sequence[bytes]]:
        """Facts about the program, and what of its two outputs has not been sent."""
        watched = self._start(job)
        self._watch(watched, job)
        self._end(watched)
        wall_s = time.monotonic() - watched.started_s
        used = self._meter.read()
        facts: dict[str, str | int | float | bool] = {
            "status": watched.status or 0,
            "killed_for": watched.killed_for,
            "note": int(self._notes[0]),
            "wall_s": wall_s,
            "cpu_s": watched.cpu_s,
            "is_full": used.is_full and bool(watched.status),
            "disk_bytes": used.disk_bytes,
            "num_files": used.num_files,
            "memory_peak_bytes": used.memory_peak_bytes,
            "processes_peak": used.processes_peak,
        }
        outputs = watched.outputs.values()
        facts |= {f"{output.name}_is_over": True for output in outputs if output.is_over}
        if watched.killed_for == "wall":
            facts["control_passed"] = self._control_passes()
        return facts, [output.pop() for output in outputs]

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
        names = ("stdout", "stderr")
        outputs = {
            read: Output(name, job.hold_bytes, job.max_bytes) for name, (read, _) in zip(names, pipes, strict=True)
        }
        return Watched(pid, started_s, outputs, set(outputs))

    def _become(self, job: Job, stdin_fd: int, output_fds: Sequence[int]) -> None:
        try:
            for fd in output_fds:
                os.set_blocking(fd, True)
            os.setsid()
            take_streams(stdin_fd, *output_fds)
            limit_itself(job.cpu_s, job.file_bytes)
            enter_folder(self._folder, job.folder)
            if job.source is not None:
                if job.environment:
                    os.environ.update(job.environment)
                become_python(job.source, job.argv, self._notes)
            become_command(job.argv, {**self._environment, **job.environment})
        finally:
            os._exit(126)

    def _watch(self, watched: Watched, job: Job) -> None:
        """Until the program ends or must."""
        exit_watch = ExitWatch(watched.pid)
        poll = select.poll()
        poll.register(self._outlet.fd, select.POLLIN)
        for fd in (exit_watch.fd, *watched.open_fds):
            if fd >= 0:
                poll.register(fd, select.POLLIN)
        deadline_s = watched.started_s + job.timeout_s
        look_s = watched.started_s + max(_LOOK_S, job.cpu_s / self._num_cpus)
        while not watched.killed_for:
            now_s = time.monotonic()
            wait_ms = max(0.0, (min(deadline_s, look_s) - now_s) * 1000 + 1)
            ready = dict(poll.poll(exit_watch.wait_ms(wait_ms)))
            self._pass_on(watched, poll, ready)
            if exit_watch.has_ended(ready):
                break
            now_s = time.monotonic()
            if now_s >= deadline_s:
                watched.killed_for = "wall"
            elif now_s >= look_s:
                look_s = self._look_at_cpu(watched, job.cpu_s)
        exit_watch.close()

    def _pass_on(self, watched: Watched, poll: select.poll, ready: Mapping[int, int]) -> None:
        """Reads what is ready and sends what is due, until the service takes no more; then the program's pipes have to wait for it."""
        was_free = self._outlet.is_free
        if events := ready.get(self._outlet.fd):
            self._listen(watched, events)
        for fd, output in watched.outputs.items():
            if fd not in ready or not self._outlet.is_free:
                continue
            if not self._read(watched, fd):
                poll.unregister(fd)
            if output.is_due:
                self._outlet.send(output.name, output.pop())
        if self._outlet.is_free == was_free:
            return
        poll.modify(self._outlet.fd, select.POLLIN if self._outlet.is_free else select.POLLIN | select.POLLOUT)
        for fd in watched.open_fds:
            if self._outlet.is_free:
                poll.register(fd, select.POLLIN)
            else:
                poll.unregister(fd)  # the end of a pipe would be told whatever it is polled for

    def _listen(self, watched: Watched, events: int) -> None:
        """The service, while a program runs, says only that it is to stop; or it is gone."""
        if events & select.POLLOUT:
            self._outlet.push()
        if events & ~select.POLLOUT:
            receive(self._outlet.connection)
            watched.killed_for = "caller"

    def _look_at_cpu(self, watched: Watched, cpu_s: float) -> float:
        """Marks a program over its CPU limit; otherwise says when to look again."""
        self._reap(watched, os.WNOHANG)
        left_s = cpu_s - watched.cpu_s - self._cpu_in_use_s()
        if left_s <= 0:
            watched.killed_for = "cpu"
        return time.monotonic() + max(_LOOK_S, left_s / self._num_cpus)

    def _read(self, watched: Watched, fd: int) -> bool:
        """Takes what is there; False at the end of the stream."""
        try:
            data = os.read(fd, _READ_BYTES)
        except BlockingIOError:
            return True
        output = watched.outputs[fd]
        output.add(data)
        if output.is_over:
            watched.killed_for = "output"
        if not data:
            watched.open_fds.discard(fd)
        return bool(data)

    def _end(self, watched: Watched) -> None:
        """Ends every process of the program, counts what they used and takes what they wrote last."""
        self._kill_rest()
        self._reap(watched, 0)
        killed_for = watched.killed_for
        for fd in watched.outputs:
            while fd in watched.open_fds and not watched.is_over and self._has_more(fd):
                self._read(watched, fd)
            os.close(fd)
        watched.killed_for = killed_for

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

    def _control_passes(self) -> bool:
        """Whether a trivial program runs normally here and now."""
        num_bytes = len(_CONTROL_OUTPUT) + 1
        job = Job(
            source=_CONTROL_SOURCE,
            argv=(),
            environment={},
            folder="",
            stdin=b"",
            timeout_s=_CONTROL_S,
            cpu_s=_CONTROL_S,
            hold_bytes=num_bytes,
            max_bytes=num_bytes,
            file_bytes=0,
        )
        control = self._start(job)
        self._watch(control, job)
        self._end(control)
        return control.status == 0 and next(iter(control.outputs.values())).pop() == _CONTROL_OUTPUT


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
