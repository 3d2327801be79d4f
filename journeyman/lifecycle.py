"""Runs a service process: settings, logs, server, background work, graceful stop. Called by every __main__ and nothing else.

Invariants: bad input at start ends with one line on standard error and exit code 2; SIGTERM and SIGINT drain and exit 0; a background
task that fails ends the process with exit code 1, so that whoever supervises it starts it again.
"""

import asyncio
import contextlib
import ctypes
import logging
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import NoReturn, TypeVar

from journeyman.errors import JourneymanError
from journeyman.observe import logs, metrics
from journeyman.rpc.server import RpcServer
from journeyman.settings import ServiceSettings, load

log = logging.getLogger(__name__)
S = TypeVar("S", bound=ServiceSettings)
DIE_WITH_PARENT = "JOURNEYMAN_DIE_WITH_PARENT"
STOP_GRACE_S = 5.0
BAD_INPUT = 2
_PR_SET_PDEATHSIG = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Assembly:
    """What a composition root hands over to be run."""

    server: RpcServer
    background: Sequence[Callable[[asyncio.Event], Awaitable[None]]] = ()
    """Each runs until the event is set; returning earlier is fine, raising ends the process."""
    drain: Callable[[], Awaitable[None]] | None = None
    """Called first on stop, while the server still answers: give back what is held."""
    close: Sequence[Callable[[], Awaitable[None]]] = ()
    """Called last, in order."""


def run(name: str, settings_class: type[S], build: Callable[[S], Awaitable[Assembly]]) -> NoReturn:
    """Runs the service until it is told to stop; never returns."""
    die_with_parent()
    try:
        settings = load(settings_class)
        logs.setup(name, settings.log_file)
        if settings.metrics_listen:
            metrics.serve(settings.metrics_listen)
        code = asyncio.run(_serve(name, settings, build))
    except JourneymanError as error:
        if logging.getLogger().handlers:  # else the one line on standard error would be two
            log.error("start refused", extra={"code": error.code.value, "reason": error.message})
        _refuse(name, error.message)
    except OSError as error:
        _refuse(name, f"{error.strerror or error} ({error.filename})" if error.filename else str(error))
    sys.exit(code)


def _refuse(name: str, message: str) -> NoReturn:
    sys.stderr.write(f"{name}: {message}\n")
    sys.exit(BAD_INPUT)


def die_with_parent() -> None:
    """Where the environment asks for it: this process is killed when its parent dies, whatever killed that."""
    parent = os.environ.get(DIE_WITH_PARENT)
    if not parent or not sys.platform.startswith("linux"):
        return
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if parent.isdigit() and int(parent) > 1 and os.getppid() != int(parent):
        sys.exit(1)  # the parent died before the line above


async def _serve(name: str, settings: S, build: Callable[[S], Awaitable[Assembly]]) -> int:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    assembly = await build(settings)
    await assembly.server.start()
    tasks = [asyncio.ensure_future(work(stop)) for work in assembly.background]
    await assembly.server.set_serving(True)
    log.info("serving", extra={"port": assembly.server.port})
    code = await _until_stopped(stop, tasks)
    await _stop(assembly, stop, tasks)
    log.info("stopped", extra={"exit_code": code})
    return code


async def _until_stopped(stop: asyncio.Event, tasks: Sequence[asyncio.Future[None]]) -> int:
    """0 when told to stop, 1 when a background task failed."""
    waiter = asyncio.ensure_future(stop.wait())
    pending: set[asyncio.Future[object]] = {waiter, *tasks}  # type: ignore[arg-type]  # futures of different results
    while not waiter.done():
        done, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            if task is not waiter and (error := task.exception()) is not None:
                log.critical("background task failed", exc_info=error)
                waiter.cancel()
                return 1
    return 0


async def _stop(assembly: Assembly, stop: asyncio.Event, tasks: Sequence[asyncio.Future[None]]) -> None:
    await assembly.server.set_serving(False)
    if assembly.drain is not None:
        await assembly.drain()
    stop.set()
    _, late = await asyncio.wait(tasks, timeout=STOP_GRACE_S) if tasks else (set(), set())
    for task in late:
        task.cancel()
    for task in tasks:
        with contextlib.suppress(asyncio.CancelledError, Exception):  # failures were logged when they ended the process
            await task
    await assembly.server.stop(STOP_GRACE_S)
    for close in assembly.close:
        await close()
