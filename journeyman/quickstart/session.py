"""One sitting of a quickstart: services up, pipeline through, report written, services down - whatever ends it.

Called by the command with a folder that holds run.toml. Invariants: services are stopped before this returns; a refusal of the first start
leaves no trace of a new folder; everything else keeps all that was made.
"""

import asyncio
import contextlib
import signal
import sys
import time
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass

from journeyman.errors import ErrorCode, JourneymanError
from journeyman.quickstart.cluster import Cluster
from journeyman.quickstart.folder import RunFolder
from journeyman.quickstart.journal import Journal, Stage
from journeyman.quickstart.pipeline import Outcome, Pipeline
from journeyman.quickstart.recipe import Recipe
from journeyman.quickstart.sampler import Sampler
from journeyman.quickstart.screen import Screen
from journeyman.quickstart.services import SERVICES, STOP_ORDER, allocate_targets, service_commands
from journeyman.quickstart.supervisor import ServiceEnded, Supervisor

MIN_FREE_BYTES = 32 * 1024 * 1024
"""On the run's disk, below which it is stopped."""
_DISK_LOOK_S = 0.5


class Interrupted(Exception):
    """The user (SIGINT) or the system (SIGTERM) asked to stop."""

    def __init__(self, number: signal.Signals) -> None:
        super().__init__(number.name)
        self.number = number


@dataclass(frozen=True, slots=True, kw_only=True)
class Sitting:
    """What a sitting is given."""

    folder: RunFolder
    recipe: Recipe
    inherited: Mapping[str, str]
    """The environment of the command."""
    extra: Mapping[str, str]
    """Environment added for all services by the command's options."""
    max_s: float | None
    """Time for everything; training is cut so that the rest fits. None: as long as the recipe asks for."""


class Session:
    """Runs a sitting."""

    def __init__(self, sitting: Sitting, screen: Screen) -> None:
        self._sitting = sitting
        self._screen = screen
        self._journal = Journal(sitting.folder.journal)
        self._began_at = time.monotonic()
        self._sampler: Sampler | None = None

    @property
    def has_made_something(self) -> bool:
        """Whether a model was made or taken up, so that the folder is worth keeping."""
        return self._sampler is not None and self._sampler.has_finished(Stage.INIT)

    async def run(self) -> Outcome:
        """The pipeline's outcome. Raises Interrupted or the JourneymanError that ended it, with all services stopped."""
        sitting = self._sitting
        targets = allocate_targets(SERVICES, sitting.inherited)
        commands = service_commands(sitting.folder, targets, sitting.extra, sitting.inherited)
        supervisor = Supervisor(commands, STOP_ORDER, self._on_ended)
        self._journal.append("sitting", max_s=sitting.max_s)
        sampler = self._sampler = Sampler(sitting.recipe, self._journal, supervisor.cpu_s)
        signals = _Signals(supervisor)
        disk_full = asyncio.ensure_future(self._until_disk_full())
        is_idle = False
        try:
            work = self._work(supervisor, sampler, targets)
            outcome = await _first_of(work, disk_full, supervisor.failed, signals.received)
            is_idle = True
            return outcome
        finally:
            disk_full.cancel()
            await supervisor.stop(is_idle=is_idle)
            signals.close()
            self._journal.close()

    async def _work(self, supervisor: Supervisor, sampler: Sampler, targets: Mapping[str, str]) -> Outcome:
        sampler.enter(Stage.START)
        self._screen.show(sampler.view)
        await supervisor.start()
        sampler.leave()
        cluster = Cluster(targets)
        watching = asyncio.create_task(sampler.run(cluster, self._screen.show))
        try:
            max_s = self._sitting.max_s
            deadline = None if max_s is None else self._began_at + max_s
            return await Pipeline(self._sitting.recipe, cluster, sampler, deadline).run()
        finally:
            watching.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await watching
            await cluster.close()

    async def _until_disk_full(self) -> None:
        """Raises while there is still room to stop in order."""
        folder = self._sitting.folder
        while (free_bytes := folder.free_bytes()) >= MIN_FREE_BYTES:  # noqa: ASYNC110  # nobody tells when a disk fills
            await asyncio.sleep(_DISK_LOOK_S)
        message = (
            f"the disk of {folder.path} is full ({free_bytes >> 20} MiB free, {MIN_FREE_BYTES >> 20} MiB are needed):"
            " stopped, free some"
        )
        raise JourneymanError(ErrorCode.INVALID_INPUT, message)

    def _on_ended(self, ended: ServiceEnded) -> None:
        if ended.will_restart and self._sampler is not None:
            self._sampler.note(
                f"{ended.name} ended ({ended.how}) and is started again",
                service=ended.name,
                exit_code=ended.exit_code,
                stderr=list(ended.stderr),
            )


class _Signals:
    """Turns the first SIGINT or SIGTERM into an exception; a second one kills everything at once."""

    def __init__(self, supervisor: Supervisor) -> None:
        self._supervisor = supervisor
        self._loop = asyncio.get_running_loop()
        self.received: asyncio.Future[None] = self._loop.create_future()
        for number in (signal.SIGINT, signal.SIGTERM):
            self._loop.add_signal_handler(number, self._on_signal, number)

    def close(self) -> None:
        """Gives the signals back."""
        for number in (signal.SIGINT, signal.SIGTERM):
            self._loop.remove_signal_handler(number)
        self.received.cancel()

    def _on_signal(self, number: signal.Signals) -> None:
        if not self.received.done():
            self.received.set_exception(Interrupted(number))
            return
        self._supervisor.kill()
        sys.exit(128 + number)


async def _first_of(work: Coroutine[None, None, Outcome], *enders: "asyncio.Future[None]") -> Outcome:
    """The work's result, unless one of the others fails first; then the work is cancelled and waited for."""
    task = asyncio.ensure_future(work)
    waited: set[asyncio.Future[Outcome] | asyncio.Future[None]] = {task, *enders}
    await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
    for ender in enders:
        if ender.done() and not task.done():
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError, JourneymanError, OSError):  # the ender knows the reason
                await task
            ender.result()
    return await task


def exit_code_of(error: JourneymanError) -> int:
    """2 where the user's input is to blame, else 1."""
    return 2 if error.code is ErrorCode.INVALID_INPUT else 1
