"""Files of a box's working folder, handled by its init while no program runs. Called by init.serve.

Every path is opened beneath the folder's descriptor: links that lead out of it fail, and only regular files are read or replaced.
"""

import contextlib
import errno
import os
import stat
from collections.abc import Iterator, Sequence

from sandbox_service.adapters.box.beneath import open_beneath
from sandbox_service.adapters.box.frames import Frame, Header

MAX_FILE_BYTES = 1024 * 1024
"""Longest file read through the service."""
_READ_ONLY = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY
_FOLDER = os.O_RDONLY | os.O_DIRECTORY
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW

Answer = tuple[Header, Sequence[bytes]]


class Folder:
    """The working folder."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._fd = os.open(path, _FOLDER | os.O_CLOEXEC)

    def read(self, paths: Sequence[str]) -> Answer:
        """Regular files among paths; the rest is left out."""
        found, contents = [], []
        for path in paths:
            with contextlib.suppress(OSError):
                contents.append(self._content(path, MAX_FILE_BYTES))
                found.append(path)
        return {"paths": found}, contents

    def write(self, paths: Sequence[str], contents: Sequence[bytes]) -> Answer:
        """Replaces or makes files. error is set where the box as it is does not let us: full, or its folders are in the way."""
        try:
            for path, content in zip(paths, contents, strict=True):
                self._replace(path, content, 0o644)
        except OSError as error:
            return {"error": f"{path}: {error.strerror}"}, ()
        return {}, ()

    def pack(self, max_bytes: int) -> Answer:
        """Everything below the folder. error is set where files say they are longer than max_bytes together."""
        folders, links, files, modes, contents = [], [], [], [], []
        total = 0
        for path, entry in self._walk(""):
            mode = entry.stat(follow_symlinks=False).st_mode
            if stat.S_ISDIR(mode):
                folders.append(path)
            elif stat.S_ISLNK(mode):
                links += [path, os.readlink(os.path.join(self._path, path))]
            elif stat.S_ISREG(mode):
                total += entry.stat(follow_symlinks=False).st_size
                if total > max_bytes:
                    return {"error": f"its files are longer than {max_bytes} bytes together"}, ()
                with contextlib.suppress(PermissionError):
                    contents.append(self._content(path, max_bytes))
                    files.append(path)
                    modes.append(stat.S_IMODE(mode))
        return {"folders": folders, "links": links, "files": files, "modes": ",".join(map(str, modes))}, contents

    def unpack(self, packed: Frame) -> Answer:
        """Makes what pack saw; the folder was empty before."""
        modes = [int(mode) for mode in packed.text("modes").split(",") if mode]
        links = packed.texts("links")
        try:
            for path in packed.texts("folders"):
                os.makedirs(os.path.join(self._path, path), exist_ok=True)
            for path, mode, content in zip(packed.texts("files"), modes, packed.blobs, strict=True):
                self._replace(path, content, mode)
            for path, target in zip(links[::2], links[1::2], strict=True):
                os.symlink(target, os.path.join(self._path, path))
        except OSError as error:
            return {"error": f"{error.filename or path}: {error.strerror}"}, ()
        return {}, ()

    def _walk(self, prefix: str) -> Iterator[tuple[str, os.DirEntry[str]]]:
        try:
            entries = sorted(os.scandir(os.path.join(self._path, prefix)), key=lambda entry: entry.name)
        except OSError:
            return
        for entry in entries:
            path = os.path.join(prefix, entry.name)
            yield path, entry
            if entry.is_dir(follow_symlinks=False):
                yield from self._walk(path)

    def _content(self, path: str, max_bytes: int) -> bytes:
        fd = open_beneath(self._fd, path, _READ_ONLY)
        with open(fd, "rb", buffering=0) as file:
            facts = os.fstat(fd)
            if not stat.S_ISREG(facts.st_mode) or facts.st_size > max_bytes:
                raise OSError(errno.EINVAL, "not a regular file of moderate length")
            return file.read(max_bytes) or b""

    def _replace(self, path: str, content: bytes, mode: int) -> None:
        parent, _, name = path.rpartition("/")
        parent_fd = self._parent(parent)
        try:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(name, dir_fd=parent_fd)
            fd = os.open(name, _NEW | os.O_CLOEXEC, mode, dir_fd=parent_fd)
            with open(fd, "wb", buffering=0) as file:
                rest = memoryview(content)
                while rest:
                    rest = rest[file.write(rest) :]
        finally:
            if parent_fd != self._fd:
                os.close(parent_fd)

    def _parent(self, parent: str) -> int:
        """The folder's descriptor, made where it is not there."""
        if not parent:
            return self._fd
        try:
            return open_beneath(self._fd, parent, _FOLDER)
        except FileNotFoundError:
            above, _, name = parent.rpartition("/")
            above_fd = self._parent(above)
            try:
                os.mkdir(name, 0o755, dir_fd=above_fd)
            finally:
                if above_fd != self._fd:
                    os.close(above_fd)
            return open_beneath(self._fd, parent, _FOLDER)
