"""The inner half of the zygote: makes and ends boxes as the service says. Started by zygote.main, single-threaded; never loads a box's code."""

import contextlib
import gc
import json
import os
import select
import signal
import socket
from collections.abc import Sequence

from sandbox_service.adapters.box.frames import encode
from sandbox_service.adapters.box.interpreter import forget_origin
from sandbox_service.adapters.zygote.cgroups import Cgroups, Counters
from sandbox_service.adapters.zygote.confinement import Confinement, Started
from sandbox_service.core.shape import BoxShape

MAX_MESSAGE_BYTES = 64 * 1024
_LOOK_MS = 50
_SPARES_LOOK_MS = 2000
"""Between two looks at whether a spare is still wanted."""


def say(control: socket.socket, message: dict[str, str | int]) -> None:
    """Tells the service; nothing where it is gone."""
    with contextlib.suppress(OSError):
        control.send(json.dumps(message).encode())


class Zygote:
    """Makes and ends boxes as the service says."""

    def __init__(self, control: socket.socket, confinement: Confinement, cgroups: Cgroups) -> None:
        self._control = control
        self._confinement = confinement
        self._cgroups = cgroups
        self._number_of: dict[int, int] = {}
        """Box number by the pid of its init."""
        self._started: dict[int, Started] = {}
        """By box number."""
        self._killed: set[int] = set()
        """Numbers of boxes that are to die by our hand; nobody asks what the kernel counted for them."""
        self._unclean: set[int] = set()
        """Slots of dead boxes whose group could not be removed yet."""

    def prepare(self, no_cgroups: str) -> bool:
        """Confines this process as far as its boxes need, and reports; False where it cannot."""
        try:
            self._confinement.prepare()
        except OSError as error:
            say(self._control, {"op": "failed", "error": f"{error.strerror or error}"})
            return False
        forget_origin()
        gc.collect()
        gc.disable()  # a collection would touch, and so copy, memory shared with every box
        gc.freeze()
        controllers = ",".join(sorted(self._cgroups.controllers))
        say(self._control, {"op": "ready", "controllers": controllers, "no_cgroups": no_cgroups})
        return True

    def serve(self) -> None:
        """Until the service closes the connection. Orders come before boxes made ahead."""
        wake_read, wake_write = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
        poll = select.poll()
        poll.register(self._control, select.POLLIN)
        poll.register(wake_read, select.POLLIN)
        wants_more = True
        while True:
            ready = {fd for fd, _ in poll.poll(0 if wants_more else self._patience_ms())}
            if not ready and not wants_more and self._confinement.shrink():
                self._tell_spares()
            if wake_read in ready:
                os.read(wake_read, 4096)
                self._bury()
            self._unclean = {slot for slot in self._unclean if not self._cgroups.remove(slot)}
            if self._control.fileno() in ready:
                if not self._obey():
                    return
                wants_more = True
            elif wants_more and not (wants_more := self._refill()):
                self._tell_spares()

    def _patience_ms(self) -> int | None:
        """How long to wait for something to happen."""
        if self._unclean:
            return _LOOK_MS
        return _SPARES_LOOK_MS if self._confinement.num_spares else None

    def _tell_spares(self) -> None:
        say(self._control, {"op": "spares", "number": self._confinement.num_spares})

    def _refill(self) -> bool:
        """Makes one box ahead of demand; whether more are wanted. Where it cannot, the next order says why."""
        try:
            return self._confinement.refill()
        except OSError:
            return False

    def _obey(self) -> bool:
        """Carries out one order; False where the service is gone."""
        try:
            data, fds, _, _ = socket.recv_fds(self._control, MAX_MESSAGE_BYTES, 1)
        except ConnectionResetError:  # the service has died without having read all
            return False
        if not data:
            return False
        order = json.loads(data)
        number = int(order["number"])
        match order["op"]:
            case "start":
                self._start(number, BoxShape.from_json(order["shape"]), fds[0], order["layers"])
            case "kill":
                self._kill(number)
            case "counters":
                self._report("counters", number)
            case "keep":
                self._keep(number, int(order["layer"]))
            case "drop":
                self._confinement.drop(number)
        return True

    def _start(self, number: int, shape: BoxShape, fd: int, layers: Sequence[int]) -> None:
        with socket.socket(fileno=fd) as connection:
            try:
                started = self._confinement.start(shape, connection, layers)
            except OSError as error:
                with contextlib.suppress(OSError):
                    connection.sendall(encode({"op": "failed", "error": str(error)}))
                self._report("ended", number)
                return
        self._started[number] = started
        self._number_of[started.pid] = number

    def _kill(self, number: int) -> None:
        if (started := self._started.get(number)) is not None:
            self._killed.add(number)
            os.kill(started.pid, signal.SIGKILL)

    def _keep(self, number: int, layer: int) -> None:
        error = "the box has ended"
        if (started := self._started.get(number)) is not None:
            try:
                self._confinement.keep(started, layer)
                error = ""
            except OSError as refusal:
                error = refusal.strerror or str(refusal)
        say(self._control, {"op": "kept", "number": number, "error": error})

    def _bury(self) -> None:
        """Reaps boxes that have ended and tells the service."""
        while True:
            try:
                pid, _ = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            started = self._confinement.bury(pid)
            if (number := self._number_of.pop(pid, None)) is not None:
                self._report("ended", number)
                self._started.pop(number, None)
            if started is not None and not self._cgroups.remove(started.slot):
                self._unclean.add(started.slot)

    def _report(self, what: str, number: int) -> None:
        started = self._started.get(number)
        known = started is not None and not (number in self._killed and what == "ended")
        found = self._cgroups.counters(started.slot) if started is not None and known else Counters()
        if what == "ended":
            self._killed.discard(number)
        message: dict[str, str | int] = {"op": what, "number": number, "num_oom_kills": found.num_oom_kills}
        say(self._control, message | {"num_fork_refusals": found.num_fork_refusals})
