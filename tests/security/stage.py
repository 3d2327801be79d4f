"""What uncontained programs run on: a supervisor that starts them as naively as many do, in a pid namespace of its own. Standard library only.

Started by uncontained.py. Orders come as JSON lines on standard input, answers go to a descriptor that programs inherit. A program past its
time gets SIGTERM; files are read and written by their joined path; a fork is a copy that follows links; a warm interpreter is this one.
"""

import base64
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import traceback
from typing import Any

_TO_OBEY_S = 2.2
_MAX_READ_BYTES = 2 << 20


class Stage:
    """Cells as folders, programs as children."""

    def __init__(self, folder: str, answers_fd: int, victim: int) -> None:
        self._folder = folder
        self._answers_fd = answers_fd
        self._victim = victim
        self._num_cells = 0
        self.take = {
            "open": self.open,
            "run": self.run,
            "warm": self.warm,
            "read": self.read,
            "write": self.write,
            "fork": self.fork,
            "victim": lambda _: {"lives": self.lives()},
        }

    def answer(self, order: dict[str, Any]) -> None:
        """Carries out one order."""
        try:
            found = self.take[order["op"]](order)
        except Exception as error:
            found = {"refused": repr(error)}
        os.write(self._answers_fd, json.dumps({"id": order["id"], **found}).encode() + b"\n")

    def open(self, order: dict[str, Any]) -> dict[str, Any]:
        """A new folder."""
        self._num_cells += 1
        os.makedirs(self._cell(self._num_cells) + "/.tmp")
        return {"cell": self._num_cells}

    def run(self, order: dict[str, Any]) -> dict[str, Any]:
        """A child with everything that is open here."""
        folder = self._cell(order["cell"])
        pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        environment = {**os.environ, "TMPDIR": folder + "/.tmp"}
        try:
            child = subprocess.Popen(order["argv"], cwd=folder, env=environment, close_fds=False, **pipes)
        except OSError as error:
            return {"ending": "watcher_lost", "stdout": "", "stderr": str(error)}
        ending, output = "", (b"", b"")
        for within_s, then in ((order["timeout_s"], child.terminate), (_TO_OBEY_S, child.kill), (0.5, child.kill)):
            try:
                output = child.communicate(timeout=within_s)
                break
            except subprocess.TimeoutExpired as error:
                output = (error.stdout or b"", error.stderr or b"")
                ending = "ran_on" if then == child.kill else ending
                then()
        code = child.poll()
        ending = ending or ("exited" if code is not None and code >= 0 else "signalled")
        stdout, stderr = (text.decode(errors="replace") for text in output)
        return {"ending": ending, "stdout": stdout, "stderr": stderr}

    def warm(self, order: dict[str, Any]) -> dict[str, Any]:
        """In this very interpreter."""
        kept = [os.dup(number) for number in (1, 2)]
        outputs = [os.memfd_create("output") for _ in range(2)]
        for number, fd in enumerate(outputs, start=1):
            os.dup2(fd, number)
        if self._num_cells == 1 and not os.getcwd().startswith(self._folder):
            with contextlib.suppress(OSError):
                os.chdir(self._cell(1))
        sys.argv = order["argv"][2:]
        try:
            exec(order["argv"][2], {"__name__": "__main__"})
        except BaseException:
            traceback.print_exc()
        with contextlib.suppress(Exception):
            sys.stdout.flush()
        texts = [_content(fd) for fd in outputs]
        for number, fd in enumerate(kept, start=1):
            os.dup2(fd, number)
        for fd in (*kept, *outputs):
            os.close(fd)
        return {"ending": "exited", "stdout": texts[0], "stderr": texts[1]}

    def read(self, order: dict[str, Any]) -> dict[str, Any]:
        """By joined paths."""
        found = {}
        for path in order["paths"]:
            with contextlib.suppress(OSError), open(os.path.join(self._cell(order["cell"]), path), "rb") as file:
                found[path] = base64.b64encode(file.read(_MAX_READ_BYTES)).decode()
        return {"files": found}

    def write(self, order: dict[str, Any]) -> dict[str, Any]:
        """By joined paths."""
        for path, content in order["files"].items():
            target = os.path.join(self._cell(order["cell"]), path)
            os.makedirs(os.path.dirname(target), exist_ok=True)
            with open(target, "wb") as file:
                file.write(base64.b64decode(content))
        return {}

    def fork(self, order: dict[str, Any]) -> dict[str, Any]:
        """A copy."""
        self._num_cells += 1
        here, there = self._cell(order["cell"]), self._cell(self._num_cells)
        for folder, _, names in os.walk(here, followlinks=True):
            os.makedirs(os.path.join(there, os.path.relpath(folder, here)), exist_ok=True)
            for name in names:
                with open(os.path.join(folder, name), "rb") as source:
                    content = source.read()
                with open(os.path.join(there, os.path.relpath(folder, here), name), "wb") as target:
                    target.write(content)
        return {"cell": self._num_cells}

    def lives(self) -> bool:
        """Whether the victim does."""
        with contextlib.suppress(OSError), open(f"/proc/{self._victim}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] not in "ZX"
        return False

    def _cell(self, number: int) -> str:
        return f"{self._folder}/cell{number}"


def _content(fd: int) -> str:
    os.lseek(fd, 0, os.SEEK_SET)
    return os.read(fd, 1 << 20).decode(errors="replace")


def _supervise(folder: str, answers_fd: int, victim: int) -> None:
    os.set_inheritable(answers_fd, True)
    stage = Stage(folder, answers_fd, victim)
    os.write(answers_fd, json.dumps({"id": 0, "victim": victim}).encode() + b"\n")
    for line in sys.stdin:
        order = json.loads(line)
        if order["op"] == "warm":
            stage.answer(order)
        else:
            threading.Thread(target=stage.answer, args=(order,), daemon=True).start()


def main() -> None:
    """Process 1 of the namespace buries; its child supervises."""
    folder, answers_fd = sys.argv[1], int(sys.argv[2])
    victim = subprocess.Popen(["sleep", "1000"]).pid
    supervisor = os.fork()
    if supervisor == 0:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        _supervise(folder, answers_fd, victim)
        os._exit(0)
    os.close(answers_fd)
    while os.wait()[0] != supervisor:
        pass
    shutil.rmtree(folder, ignore_errors=True)
    os._exit(0)


if __name__ == "__main__":
    main()
