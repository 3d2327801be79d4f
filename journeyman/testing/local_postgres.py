"""A throw-away PostgreSQL server for contract tests, started from the server binaries of this machine.

Called by fixtures. The server lives in a temporary folder, listens on the loopback only and does not sync to disk. PostgreSQL refuses to
run as root, so under root the binaries run as the user `postgres`, else `nobody`.
"""

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

START_TIMEOUT_S = 60
_FOLDERS = (Path("/usr/lib/postgresql"), Path("/usr/local/pgsql"))


def find_binaries() -> Path | None:
    """Folder that holds initdb and pg_ctl; None where this machine has none."""
    found = shutil.which("initdb")
    candidates = [Path(found).resolve().parent] if found else []
    for root in _FOLDERS:
        candidates += sorted(root.glob("*/bin"), reverse=True) + sorted(root.glob("bin"))
    return next(
        (folder for folder in candidates if (folder / "pg_ctl").exists() and (folder / "initdb").exists()), None
    )


@contextmanager
def local_postgres(binaries: Path) -> Iterator[str]:
    """SQLAlchemy URL of an empty database of a server that lives as long as the context."""
    root = Path(tempfile.mkdtemp(prefix="journeyman-postgres-"))
    server = _Server(binaries, root)
    try:
        yield server.start()
    finally:
        server.stop()
        shutil.rmtree(root, ignore_errors=True)


class _Server:
    def __init__(self, binaries: Path, root: Path) -> None:
        self._binaries = binaries
        self._data = root / "data"
        self._root = root
        self._user = _spare_user()
        if self._user is not None:
            shutil.chown(root, self._user.pw_uid, self._user.pw_gid)

    def start(self) -> str:
        port = _free_port()
        self._run("initdb", "--auth=trust", "--username=journeyman", "--no-sync", "--encoding=UTF8")
        options = f"-h 127.0.0.1 -p {port} -k {self._root} -F"
        self._run("pg_ctl", "-w", "-t", str(START_TIMEOUT_S), "-o", options, "-l", str(self._root / "log"), "start")
        return f"postgresql+psycopg://journeyman@127.0.0.1:{port}/postgres"

    def stop(self) -> None:
        if (self._data / "postmaster.pid").exists():
            self._run("pg_ctl", "-m", "immediate", "stop")

    def _run(self, program: str, *arguments: str) -> None:
        user: dict[str, int | Sequence[int]] = {}
        if self._user is not None:
            user = {"user": self._user.pw_uid, "group": self._user.pw_gid, "extra_groups": ()}
        subprocess.run(
            [str(self._binaries / program), "-D", str(self._data), *arguments],
            check=True,
            cwd=self._root,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            **user,  # type: ignore[call-overload]  # one of three overloads takes user and group, named only at run time here
        )


def _spare_user() -> pwd.struct_passwd | None:
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    return None


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
