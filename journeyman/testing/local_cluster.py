"""Starts the services of docker-compose.yml as local processes: the image's command, the file's environment, names mapped to loopback.

Called by tests. It stands in for an engine: services start when what they depend on is healthy by the file's own health check, and stop
in reverse. What only an engine does (images, networks, users, volumes, limits) it does not do.
"""

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType

from journeyman.testing.compose import ComposeFile, ComposeService, start_order

HEALTHY_WITHIN_S = 60.0
STOPS_WITHIN_S = 20.0
_ENTRYPOINT = re.compile(r"^ENTRYPOINT (\[.*\])$", re.MULTILINE)
_ENV = re.compile(r"([A-Z_]+)=(\S+)")


class LocalCluster:
    """Between enter and exit the chosen services run. addresses maps "name:port" of the file to host:port, for third-party servers and ours."""

    def __init__(
        self, file: ComposeFile, root: Path, services: Sequence[str], addresses: Mapping[str, str], logs: Path
    ) -> None:
        self._services = {name: file.services[name] for name in services}
        self._root, self._addresses, self._logs = root, addresses, logs
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._open = ExitStack()

    def __enter__(self) -> "LocalCluster":
        try:
            for name in start_order(self._services):
                for needed in self._services[name].depends_on:
                    if needed in self._services:
                        self._until_healthy(needed)
                self._start(name)
            for name in self._services:
                self._until_healthy(name)
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop()

    def stop(self) -> dict[str, int]:
        """Asks all to end, last started first; their exit codes."""
        self._stop()
        return {name: process.returncode for name, process in self._processes.items()}

    def last_words(self, name: str) -> str:
        """The end of what a service wrote."""
        return (self._logs / f"{name}.log").read_text(errors="replace")[-2000:]

    def _start(self, name: str) -> None:
        log = self._open.enter_context((self._logs / f"{name}.log").open("wb"))
        command = [sys.executable if word == "python" else word for word in self._entrypoint(self._services[name])]
        self._processes[name] = subprocess.Popen(
            command, cwd=self._logs, env=self._environment(name), stdin=subprocess.DEVNULL, stdout=log, stderr=log
        )

    def _environment(self, name: str) -> dict[str, str]:
        """What a container would see, the image's own variables below the file's."""
        service = self._services[name]
        image = dict(_ENV.findall(_line(self._dockerfile(service), "ENV PATH")))
        stated = {key: str(value) for key, value in service.environment.items()}
        inherited = {key: os.environ[key] for key in ("PATH", "HOME", "PYTHONPATH") if key in os.environ}
        merged = {**image, **stated, "PATH": inherited.get("PATH", ""), "OMP_NUM_THREADS": "1"}
        return {**inherited, **{key: self._mapped(name, value) for key, value in merged.items()}}

    def _mapped(self, name: str, value: str) -> str:
        value = value.replace("0.0.0.0:50051", self._addresses[f"{name}:50051"])
        for there, here in self._addresses.items():
            value = re.sub(rf"(?<![\w.]){re.escape(there)}\b", here, value)
        return value

    def _entrypoint(self, service: ComposeService) -> list[str]:
        found = _ENTRYPOINT.search(self._dockerfile(service))
        if found is None:
            raise ValueError(f"{service.image}: no ENTRYPOINT")
        words: list[str] = json.loads(found[1])
        return words

    def _dockerfile(self, service: ComposeService) -> str:
        if service.build is None:
            raise ValueError(f"{service.image} is not built here")
        return (self._root / service.build.dockerfile).read_text()

    def _until_healthy(self, name: str) -> None:
        """Repeats the file's health check until it succeeds."""
        healthcheck = self._services[name].healthcheck
        if healthcheck is None or healthcheck.test[:2] != ["CMD", "python"]:
            raise ValueError(f"{name} has no health check that can be run here")
        address = self._addresses[f"{name}:50051"]
        probe = [sys.executable, *(word.replace("127.0.0.1:50051", address) for word in healthcheck.test[2:])]
        deadline = time.monotonic() + HEALTHY_WITHIN_S
        while subprocess.run(probe, capture_output=True).returncode != 0:
            if self._processes[name].poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"{name} is not healthy: {self.last_words(name)}")
            time.sleep(0.2)

    def _stop(self) -> None:
        for process in reversed(self._processes.values()):
            process.terminate()
        for process in self._processes.values():
            try:
                process.wait(STOPS_WITHIN_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self._open.close()


def _line(text: str, start: str) -> str:
    return next((line for line in text.splitlines() if line.startswith(start)), "")
