"""The scene without a box: the positive control of every attack. One stage (stage.py) for each attack."""

import asyncio
import base64
import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.security.attack import (
    PRELUDE,
    PROGRAM_S,
    Attack,
    Cell,
    Hanging,
    HostFacts,
    Refused,
    Seen,
    facts_json,
)
from tests.security.host import Host

_STAGE = Path(__file__).with_name("stage.py")
_NAMESPACES = ("unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "--ipc", "--uts")
_FILES_S = 3.0
_GRACE_S = 6.0
_WATCHER_LOST = {"ending": "watcher_lost", "stdout": "", "stderr": ""}


class UncontainedCell:
    """A folder of the stage's."""

    def __init__(self, scene: "UncontainedScene", number: int) -> None:
        self._scene = scene
        self._number = number

    async def run(self, source: str, timeout_s: float = PROGRAM_S, cpu_s: float | None = None) -> Seen:
        """See Cell."""
        argv = [sys.executable, "-c", PRELUDE + source, facts_json(self._scene.host)]
        return await self._seen("warm" if self._scene.shares_interpreter else "run", argv, timeout_s)

    async def command(self, argv: Sequence[str]) -> Seen:
        """See Cell."""
        return await self._seen("run", argv, PROGRAM_S)

    async def write(self, files: Mapping[str, bytes]) -> None:
        """See Cell."""
        contents = {path: base64.b64encode(content).decode() for path, content in files.items()}
        await self._asked({"op": "write", "files": contents})

    async def read(self, paths: Sequence[str]) -> dict[str, bytes]:
        """See Cell."""
        answer = await self._asked({"op": "read", "paths": list(paths)})
        return {path: base64.b64decode(content) for path, content in answer.get("files", {}).items()}

    async def fork(self) -> Cell:
        """See Cell."""
        answer = await self._asked({"op": "fork"})
        return UncontainedCell(self._scene, answer["cell"])

    async def _seen(self, op: str, argv: Sequence[str], timeout_s: float) -> Seen:
        order = {"op": op, "cell": self._number, "argv": list(argv), "timeout_s": timeout_s}
        try:
            answer = await self._scene.ask(order, timeout_s + _GRACE_S)
        except TimeoutError:
            answer = _WATCHER_LOST
        return Seen(ending=answer["ending"], stdout=answer["stdout"], stderr=answer["stderr"])

    async def _asked(self, order: dict[str, Any]) -> dict[str, Any]:
        try:
            answer = await self._scene.ask({**order, "cell": self._number}, _FILES_S)
        except TimeoutError as error:
            raise Hanging from error
        if "refused" in answer:
            raise Refused(answer["refused"])
        return answer


class UncontainedScene:
    """One stage."""

    def __init__(self, host: Host, process: "subprocess.Popen[bytes]", shares_interpreter: bool) -> None:
        self._host = host
        self._process = process
        self._num_asked = 0
        self._waiting: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self.shares_interpreter = shares_interpreter
        self.host: HostFacts = host.facts
        self.cell: Cell = UncontainedCell(self, 1)

    async def open(self, lease_s: float = 300.0) -> Cell:
        """See Scene."""
        answer = await self.ask({"op": "open"}, _FILES_S)
        return UncontainedCell(self, answer["cell"])

    def datagrams(self) -> list[str]:
        """See Scene."""
        return self._host.datagrams()

    async def victim_lives(self) -> bool:
        """See Scene."""
        answer = await self.ask({"op": "victim"}, _FILES_S)
        return bool(answer.get("lives"))

    async def ask(self, order: dict[str, Any], within_s: float) -> dict[str, Any]:
        """The first answer with the order's number, whoever wrote it."""
        self._num_asked += 1
        future: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._waiting[self._num_asked] = future
        if self._process.stdin is None or self._process.poll() is not None:
            return dict(_WATCHER_LOST)
        with contextlib.suppress(ConnectionError):
            self._process.stdin.write(json.dumps({"id": self._num_asked, **order}).encode() + b"\n")
            self._process.stdin.flush()
        async with asyncio.timeout(within_s):
            return await future

    async def hear(self, answers: asyncio.StreamReader) -> None:
        """Until the stage ends."""
        while line := await answers.readline():
            with contextlib.suppress(ValueError, KeyError):
                answer = json.loads(line)
                if "victim" in answer:
                    self.host = replace(self.host, victim_pid=answer["victim"])
                if (future := self._waiting.pop(answer["id"], None)) is not None and not future.done():
                    future.set_result(answer)
        for future in self._waiting.values():
            if not future.done():
                future.set_result(dict(_WATCHER_LOST))


@contextlib.asynccontextmanager
async def uncontained_scene(host: Host, attack: Attack) -> Any:
    """A stage with one cell; nothing of it is left afterwards."""
    answers_read, answers_write = os.pipe()
    process = _start(host, f"{host.stages}/{attack.name}", answers_write)
    scene = UncontainedScene(host, process, attack.shares_interpreter)
    answers = asyncio.StreamReader(limit=64 << 20)
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(answers), os.fdopen(answers_read, "rb", 0)
    )
    hearing = asyncio.ensure_future(scene.hear(answers))
    try:
        scene.cell = await scene.open()
        yield scene
    finally:
        process.kill()
        with contextlib.suppress(OSError):
            process.communicate()
        hearing.cancel()
        transport.close()


def _start(host: Host, folder: str, answers_fd: int) -> "subprocess.Popen[bytes]":
    os.mkdir(folder)
    process = subprocess.Popen(
        [*_NAMESPACES, sys.executable, str(_STAGE), folder, str(answers_fd)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        pass_fds=(answers_fd,),
        env={**os.environ, "JOURNEYMAN_TEST_SECRET": host.facts.secret},
    )
    os.close(answers_fd)
    return process
