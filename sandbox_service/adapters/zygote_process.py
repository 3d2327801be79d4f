"""The service's end of the zygote: starts it, orders boxes, hears of their end. A Launcher, for ns and weak.

Every box has a connection of its own, which the service makes and hands over; so orders are small and a box's traffic never passes the zygote.
"""

import asyncio
import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from journeyman.errors import ErrorCode, JourneymanError
from sandbox_service.adapters.launching import BoxCounters, LaunchedBox
from sandbox_service.core.shape import BoxShape

_START_S = 10.0
MAX_SPARES = 16
"""Boxes made ahead of demand at most."""
_MAX_MESSAGE_BYTES = 64 * 1024
_SOURCES = Path(__file__).resolve().parents[2]
_BOOT = "import sys; sys.path.insert(0, sys.argv.pop(1)); from sandbox_service.adapters.zygote.main import main; main(sys.argv[1:])"
PYTHON_FLAGS = ("-s", "-P", "-B")


class ZygoteProcess:
    """A running zygote."""

    def __init__(self, control: socket.socket, process: "subprocess.Popen[bytes]", life_fd: int) -> None:
        self._control = control
        self._process = process
        self._life_fd = life_fd
        self._num_started = 0
        self._ready: asyncio.Future[Mapping[str, str | int]] = asyncio.get_running_loop().create_future()
        self._endings: dict[int, asyncio.Future[BoxCounters]] = {}
        self._counters: dict[int, asyncio.Future[BoxCounters]] = {}
        self._kept: dict[int, asyncio.Future[str]] = {}
        """Answers awaited about files to be kept, by box number; empty where they were."""
        self.num_ready = 0
        """Boxes that the zygote has made ahead of demand."""
        self.controllers: frozenset[str] = frozenset()
        """Which of memory and pids are limited for whole boxes."""
        self.no_cgroups = ""
        """Why one is not."""
        self.lost: asyncio.Event = asyncio.Event()
        """Set when the zygote is gone and with it every box."""

    @classmethod
    async def start(
        cls, isolation: str, uid_first: int, python: str = sys.executable, max_spares: int = MAX_SPARES
    ) -> "ZygoteProcess":
        """PRECONDITION names the cause where this kind of isolation cannot be had."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        life_read, life_write = os.pipe()
        orders = {
            "isolation": isolation,
            "uid_first": uid_first,
            "max_spares": max_spares,
            "control_fd": theirs.fileno(),
            "life_fd": life_read,
            "tool": shutil.which(isolation) or "",
        }
        try:
            process = subprocess.Popen(  # noqa: ASYNC220  # it only starts it
                [python, *PYTHON_FLAGS, "-c", _BOOT, str(_SOURCES), json.dumps(orders)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=(theirs.fileno(), life_read),
                env=box_environment(),
                cwd="/",
                start_new_session=True,
            )
        except OSError as error:
            ours.close()
            os.close(life_write)
            message = f"{isolation}: SANDBOX_PYTHON={python!r} cannot be started ({error.strerror})"
            raise JourneymanError(ErrorCode.PRECONDITION, message) from error
        finally:
            theirs.close()
            os.close(life_read)
        ours.setblocking(False)
        zygote = cls(ours, process, life_write)
        await zygote._wait_until_ready(isolation)
        return zygote

    async def _wait_until_ready(self, isolation: str) -> None:
        asyncio.get_running_loop().add_reader(self._control, self._hear)
        try:
            answer = await asyncio.wait_for(self._ready, _START_S)
        except (TimeoutError, ConnectionError) as error:
            await self.close()
            message = f"{isolation}: its maker ended or did not answer ({error})"
            raise JourneymanError(ErrorCode.PRECONDITION, message) from error
        if answer["op"] == "failed":
            await self.close()
            raise JourneymanError(ErrorCode.PRECONDITION, f"{isolation}: {answer['error']}")
        self.controllers = frozenset(filter(None, str(answer["controllers"]).split(",")))
        self.no_cgroups = str(answer["no_cgroups"])

    async def launch(self, shape: BoxShape, layers: Sequence[int] = ()) -> LaunchedBox:
        """See Launcher."""
        self._num_started += 1
        number = self._num_started
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        ours.setblocking(False)
        start = {"op": "start", "number": number, "shape": shape.to_json(), "layers": list(layers)}
        order = json.dumps(start).encode()
        with theirs:
            try:
                socket.send_fds(self._control, [order], [theirs.fileno()])
            except OSError as error:
                ours.close()
                raise JourneymanError(ErrorCode.UNAVAILABLE, f"the maker of boxes takes no orders: {error}") from error
        ended = self._endings[number] = asyncio.get_running_loop().create_future()
        ended.add_done_callback(lambda _: self._endings.pop(number, None))
        return LaunchedBox(
            connection=ours,
            ended=ended,
            kill=lambda: self._order("kill", number),
            counters=lambda: self._ask_counters(number),
            keep=lambda layer: self._keep(number, layer),
        )

    def drop(self, layer: int) -> None:
        """See Launcher."""
        self._order("drop", layer)

    async def _keep(self, number: int, layer: int) -> None:
        """Makes what box number has written a layer; PRECONDITION where it cannot be."""
        answer = self._kept[number] = asyncio.get_running_loop().create_future()
        self._order("keep", number, layer=layer)
        if error := await answer:
            raise JourneymanError(ErrorCode.PRECONDITION, f"the files of the box cannot be kept: {error}")

    async def _ask_counters(self, number: int) -> BoxCounters:
        ended = self._endings.get(number)
        if ended is None or self.lost.is_set():
            return BoxCounters()
        if number not in self._counters:
            self._counters[number] = asyncio.get_running_loop().create_future()
            self._order("counters", number)
        return await asyncio.shield(self._counters[number])

    async def close(self) -> None:
        """Ends the zygote and every box, and waits for it."""
        if self._life_fd >= 0:
            os.close(self._life_fd)
            self._life_fd = -1
        self._lose("closed")
        await asyncio.get_running_loop().run_in_executor(None, self._process.wait)

    def _order(self, what: str, number: int, **more: int) -> None:
        with contextlib.suppress(OSError):  # a zygote that is gone has taken its boxes with it
            self._control.send(json.dumps({"op": what, "number": number, **more}).encode())

    def _hear(self) -> None:
        """Takes every message that is there."""
        while True:
            try:
                data = self._control.recv(_MAX_MESSAGE_BYTES)
            except BlockingIOError:
                return
            except OSError as error:
                return self._lose(str(error))
            if not data:
                return self._lose("connection closed")
            self._take(json.loads(data))

    def _take(self, message: Mapping[str, str | int]) -> None:
        what = message["op"]
        if what in ("ready", "failed"):
            if not self._ready.done():
                self._ready.set_result(message)
            return
        number = int(message["number"])
        if what == "spares":
            self.num_ready = number
            return
        if what == "kept":
            if (kept := self._kept.pop(number, None)) is not None and not kept.done():
                kept.set_result(str(message["error"]))
            return
        found = BoxCounters(
            num_oom_kills=int(message.get("num_oom_kills", 0)),
            num_fork_refusals=int(message.get("num_fork_refusals", 0)),
        )
        waiting = [self._counters.pop(number, None)]
        if what == "ended":
            waiting.append(self._endings.get(number))
        for future in waiting:
            if future is not None and not future.done():
                future.set_result(found)

    def _lose(self, reason: str) -> None:
        """Marks every box as ended."""
        if self.lost.is_set():
            return
        self.lost.set()
        if self._control.fileno() >= 0:
            asyncio.get_running_loop().remove_reader(self._control)
            self._control.close()
        if not self._ready.done():
            self._ready.set_exception(ConnectionError(reason))
        for future in [*self._endings.values(), *self._counters.values()]:
            if not future.done():
                future.set_result(BoxCounters())
        for kept in self._kept.values():
            if not kept.done():
                kept.set_result(reason)


def box_environment() -> dict[str, str]:
    """What programs in boxes find in their environment; nothing of the service's own."""
    folders = [os.path.join(prefix, "bin") for prefix in (sys.prefix, sys.base_prefix)]
    system = ("/usr/local/bin", "/usr/bin", "/bin")
    return {
        "PATH": ":".join(dict.fromkeys((*folders, *system))),
        "HOME": "/tmp",
        "TMPDIR": "/tmp",
        "LANG": "C.UTF-8",
        "PYTHONHASHSEED": "0",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
