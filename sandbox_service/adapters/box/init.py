"""The first process of a box: answers the service, one request after another, and outlives every program. Called by what made the box.

By now the process is shut in. It ends when the service closes the connection, and with it every process of the box.
"""

import gc
import signal
import socket
from collections.abc import Callable, Sequence

from sandbox_service.adapters.box.files import Folder
from sandbox_service.adapters.box.frames import Frame, Header, encode, parse, receive
from sandbox_service.adapters.box.job import Job
from sandbox_service.adapters.box.limits import limit_open_files
from sandbox_service.adapters.box.meter import Meter
from sandbox_service.adapters.box.outlet import Outlet
from sandbox_service.adapters.box.runner import Runner
from sandbox_service.core.shape import BoxShape

Answer = tuple[Header, Sequence[bytes]]


def serve(
    connection: socket.socket,
    folder: str,
    shape: BoxShape,
    kill_rest: Callable[[], None],
    cpu_in_use_s: Callable[[], float],
    peak_fds: tuple[int, int] = (-1, -1),
) -> None:
    """Serves until the connection closes. peak_fds: files of the control group that tell peaks of memory and of processes; -1: none."""
    limit_open_files(shape.max_open_files)
    files = Folder(folder)
    outlet = Outlet(connection)
    runner = Runner(folder, outlet, Meter(folder, shape.disk_bytes, peak_fds), kill_rest, cpu_in_use_s)
    operations: dict[str, Callable[[Frame], Answer]] = {
        "run": lambda frame: runner.run(Job.from_frame(frame, shape)),
        "write": lambda frame: files.write(frame.texts("paths"), frame.blobs),
        "append": lambda frame: files.append(frame.text("path"), frame.blobs[0]),
        "read": lambda frame: files.read(frame.texts("paths")),
        "part": lambda frame: files.part(frame.text("path"), int(frame.number("offset")), int(frame.number("length"))),
        "list": lambda frame: files.list(frame.text("path"), int(frame.number("max_entries"))),
        "folder": lambda frame: files.make_folder(frame.text("path")),
        "pack": lambda _: files.pack(shape.disk_bytes),
        "unpack": lambda frame: files.unpack(parse(frame.blobs[0])),
    }
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    gc.disable()
    gc.freeze()
    connection.sendall(encode({"op": "ready"}))
    while (frame := receive(connection)) is not None:
        if frame.text("op") == "stop":
            continue  # it came too late: the program has ended, and the service has its answer
        answer = _answer(operations[frame.text("op")], frame)
        outlet.finish()
        connection.sendall(encode(*answer))


def _answer(operation: Callable[[Frame], Answer], frame: Frame) -> Answer:
    """error is set where the box, as its programs left it, does not let us do it."""
    try:
        return operation(frame)
    except (OSError, MemoryError, RecursionError) as error:
        return {"error": f"{type(error).__name__}: {error}"}, ()
