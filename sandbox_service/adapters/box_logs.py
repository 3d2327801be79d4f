"""Logs of what the programs of one box wrote beyond what results keep: files of the service, outside of the box. Used by LinkedBox.

They lie in a folder that is made with the first of them, removed with the box, and locked for as long as this process lives; so the next
service finds the folders of one that was killed. The newest logs of a box are kept, the oldest make room.
"""

import contextlib
import fcntl
import os
import shutil
import tempfile
from collections import deque
from collections.abc import Iterator
from pathlib import Path

from journeyman.errors import ErrorCode, JourneymanError
from sandbox_service.core.programs import FilePart

MAX_LOGS = 32
"""Kept of one box."""
_PREFIX = "journeyman-log-"
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class BoxLogs:
    """The logs of one box."""

    def __init__(self) -> None:
        self._folder = ""
        self._lock_fd = -1
        self._names: deque[str] = deque()
        self._is_removed = False

    def open(self, name: str) -> int:
        """A descriptor to write a new log with; the caller closes it. OSError where this host's disk has no room."""
        if self._is_removed:
            raise FileNotFoundError("the box is gone")
        if not self._folder:
            self._folder, self._lock_fd = _make_folder()
        while len(self._names) >= MAX_LOGS:
            Path(self._folder, self._names.popleft()).unlink(missing_ok=True)
        fd = os.open(Path(self._folder, name), os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        self._names.append(name)
        return fd

    def read(self, name: str, offset: int, length: int) -> FilePart:
        """A part. NOT_FOUND where there is no such log. A negative offset counts from the end."""
        if name not in self._names:
            message = f"there is no log {name[:80]!r}: results name their logs, and a box keeps the newest {MAX_LOGS}"
            raise JourneymanError(ErrorCode.NOT_FOUND, message)
        with open(Path(self._folder, name), "rb", buffering=0) as file:
            total_bytes = os.fstat(file.fileno()).st_size
            start = max(0, total_bytes + offset) if offset < 0 else offset
            return FilePart(content=os.pread(file.fileno(), length, start), start=start, total_bytes=total_bytes)

    def remove(self) -> None:
        """Removes them all, for good."""
        self._is_removed = True
        if self._folder:
            shutil.rmtree(self._folder, ignore_errors=True)
            os.close(self._lock_fd)
            self._folder = ""
            self._names.clear()


def remove_stale_logs() -> None:
    """Removes what services that were killed have left. Called once at start."""
    for folder in _folders():
        with contextlib.suppress(OSError):
            fd = os.open(folder, _FOLDER)
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder)
            finally:
                os.close(fd)


def _folders() -> Iterator[Path]:
    """Folders with logs that are ours to remove."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError):
            if folder.lstat().st_uid == os.geteuid():
                yield folder


def _make_folder() -> tuple[str, int]:
    """A new folder and its lock. A service that starts in the moment between both removes it; then there is another."""
    while True:
        folder = tempfile.mkdtemp(prefix=_PREFIX)
        with contextlib.suppress(FileNotFoundError):
            fd = os.open(folder, _FOLDER)
            fcntl.flock(fd, fcntl.LOCK_EX)
            if os.path.exists(folder):
                return folder, fd
            os.close(fd)
