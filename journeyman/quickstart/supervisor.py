"""Keeps the service processes alive: starts them, waits until they serve, restarts one that dies on the same port, stops all in order.

Called by the session. Invariants: a service that ends with code 2 before it ever served refuses its input, and that ends the quickstart with
its own line; one that dies later is restarted, at most MAX_RESTARTS times in RESTART_WINDOW_S; every ending is reported.
"""

import asyncio
import contextlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from journeyman.errors import ErrorCode, JourneymanError
from journeyman.quickstart.processes import ServiceProcess
from journeyman.quickstart.services import ServiceCommand

MAX_RESTARTS = 5
RESTART_WINDOW_S = 60.0
FIRST_BACKOFF_S = 0.1
START_TIMEOUT_S = 180.0
"""Importing torch takes long on a busy machine."""
STOP_GRACE_S = 15.0
REFUSED = 2
"""Exit code of a service whose input is bad."""

_EAGER = (
    ("grpc.initial_reconnect_backoff_ms", 50),
    ("grpc.min_reconnect_backoff_ms", 50),
    ("grpc.max_reconnect_backoff_ms", 200),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceEnded:
    """A service process ended without being asked to."""

    name: str
    exit_code: int
    """Negative for a signal."""
    last_words: str
    stderr: tuple[str, ...]
    will_restart: bool

    @property
    def how(self) -> str:
        """In words."""
        if self.exit_code < 0:
            return f"killed by signal {-self.exit_code}"
        return f"exit code {self.exit_code}"


class Supervisor:
    """All services of one quickstart."""

    def __init__(
        self,
        commands: Sequence[ServiceCommand],
        stop_order: Sequence[Sequence[str]],
        on_ended: Callable[[ServiceEnded], None],
    ) -> None:
        self._commands = {command.name: command for command in commands}
        self._stop_order = stop_order
        self._on_ended = on_ended
        self._processes: dict[str, ServiceProcess] = {}
        self._has_served: set[str] = set()
        self._ended_at: dict[str, list[float]] = {name: [] for name in self._commands}
        self._spent_cpu_s = 0.0
        self._keepers: list[asyncio.Task[None]] = []
        self._is_stopping = False
        self.failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Gets an exception when a service refuses its input or cannot be kept alive."""

    async def start(self) -> None:
        """Starts all; returns when all serve. INVALID_INPUT with the service's own line when one refuses."""
        for command in self._commands.values():
            self._processes[command.name] = await ServiceProcess.start(command)
            self._keepers.append(asyncio.create_task(self._keep(command)))
        serving = asyncio.ensure_future(self.until_serving())
        await asyncio.wait((serving, self.failed), return_when=asyncio.FIRST_COMPLETED)
        if self.failed.done():
            serving.cancel()
            with contextlib.suppress(asyncio.CancelledError, JourneymanError):
                await serving
            self.failed.result()
        await serving

    async def until_serving(self) -> None:
        """Returns when all services serve. TIMED_OUT when one takes too long."""
        await asyncio.gather(*(self._until_serving(command) for command in self._commands.values()))

    def pid(self, name: str) -> int:
        """Process id of a service as it runs now."""
        return self._processes[name].pid

    def cpu_s(self) -> float:
        """CPU seconds that all services used so far, ended processes included."""
        return self._spent_cpu_s + sum(process.cpu_s() for process in self._processes.values())

    async def stop(self, *, is_idle: bool = False) -> None:
        """Stops all in order, those of one row together; all together where nothing is in flight that the order protects."""
        self._is_stopping = True
        for row in [list(self._commands)] if is_idle else self._stop_order:
            alive = [self._processes[name] for name in row if name in self._processes]
            await asyncio.gather(*(process.stop(STOP_GRACE_S) for process in alive))
        for keeper in self._keepers:
            keeper.cancel()
        await asyncio.gather(*self._keepers, return_exceptions=True)
        if not self.failed.done():
            self.failed.cancel()

    def kill(self) -> None:
        """Ends all at once."""
        self._is_stopping = True
        for process in self._processes.values():
            process.kill()

    async def _keep(self, command: ServiceCommand) -> None:
        while True:
            process = self._processes[command.name]
            exit_code = await process.wait()
            if self._is_stopping:
                return
            refuses = exit_code == REFUSED and command.name not in self._has_served
            will_restart = not refuses and self._may_restart(command.name)
            ended = _ending(command.name, exit_code, process, will_restart=will_restart)
            self._on_ended(ended)
            if not will_restart:
                self._fail(ended, refuses=refuses)
                return
            await asyncio.sleep(FIRST_BACKOFF_S * 2 ** (len(self._ended_at[command.name]) - 1))
            if self._is_stopping:
                return
            self._spent_cpu_s += process.cpu_s()
            self._processes[command.name] = await ServiceProcess.start(command)

    def _may_restart(self, name: str) -> bool:
        now = time.monotonic()
        recent = [at for at in self._ended_at[name] if now - at < RESTART_WINDOW_S]
        self._ended_at[name] = [*recent, now]
        return len(recent) < MAX_RESTARTS

    def _fail(self, ended: ServiceEnded, *, refuses: bool) -> None:
        if self.failed.done():
            return
        if refuses:
            error = JourneymanError(ErrorCode.INVALID_INPUT, ended.last_words or f"{ended.name} refused to start")
        else:
            words = f": {ended.last_words}" if ended.last_words else ""
            error = JourneymanError(
                ErrorCode.INTERNAL, f"{ended.name} ends again and again ({ended.how}{words}); see its log"
            )
        self.failed.set_exception(error)

    async def _until_serving(self, command: ServiceCommand) -> None:
        deadline = time.monotonic() + START_TIMEOUT_S
        async with grpc.aio.insecure_channel(command.target, options=_EAGER) as channel:
            stub = health_pb2_grpc.HealthStub(channel)
            while time.monotonic() < deadline:
                if await _is_serving(stub):
                    self._has_served.add(command.name)
                    return
                await asyncio.sleep(0.05)
        raise JourneymanError(
            ErrorCode.TIMED_OUT, f"{command.name} does not serve after {START_TIMEOUT_S:g} s; see its log"
        )


async def _is_serving(stub: health_pb2_grpc.HealthStub) -> bool:
    try:
        answer = await stub.Check(health_pb2.HealthCheckRequest(), timeout=1.0, wait_for_ready=True)
    except grpc.aio.AioRpcError:
        return False
    return bool(answer.status == health_pb2.HealthCheckResponse.SERVING)


def _ending(name: str, exit_code: int, process: ServiceProcess, *, will_restart: bool) -> ServiceEnded:
    return ServiceEnded(
        name=name,
        exit_code=exit_code,
        last_words=process.last_words,
        stderr=tuple(process.stderr),
        will_restart=will_restart,
    )
