"""The first process of a box: answers the service, one request after another, and outlives every program. Called by what made the box.

By now the process is shut in. It ends when the service closes the connection, and with it every process of the box.
"""

import gc
import os
import signal
import socket
from collections.abc import Callable, Sequence

from sandbox_service.adapters.box.files import Folder
from sandbox_service.adapters.box.frames import Frame, Header, encode, parse, receive
from sandbox_service.adapters.box.runner import Job, Runner
from sandbox_service.core.shape import BoxShape

Answer = tuple[Header, Sequence[bytes]]


def serve(
    connection: socket.socket,
    folder: str,
    shape: BoxShape,
    kill_rest: Callable[[], None],
    cpu_in_use_s: Callable[[], float],
) -> None:
    """Serves until the connection closes."""
    files = Folder(folder)
    runner = Runner(folder, kill_rest, cpu_in_use_s)
    environment = dict(os.environ)
    operations: dict[str, Callable[[Frame], Answer]] = {
        "run": lambda frame: runner.run(Job.from_frame(frame, environment)),
        "write": lambda frame: files.write(frame.texts("paths"), frame.blobs),
        "read": lambda frame: files.read(frame.texts("paths")),
        "pack": lambda _: files.pack(shape.disk_bytes),
        "unpack": lambda frame: files.unpack(parse(frame.blobs[0])),
    }
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    gc.disable()
    gc.freeze()
    connection.sendall(encode({"op": "ready"}))
    while (frame := receive(connection)) is not None:
        connection.sendall(encode(*_answer(operations[frame.text("op")], frame)))


def _answer(operation: Callable[[Frame], Answer], frame: Frame) -> Answer:
    """error is set where the box, as its programs left it, does not let us do it."""
    try:
        return operation(frame)
    except (OSError, MemoryError, RecursionError) as error:
        return {"error": f"{type(error).__name__}: {error}"}, ()
