"""Files of a box's working folder, handled by its init while no program runs. Called by init.serve.

Every path is opened beneath the folder's descriptor: links that lead out of it fail, and only regular files are read or replaced.
"""

import contextlib
import errno
import heapq
import io
import os
import stat
from collections.abc import Iterator, Sequence

from sandbox_service.adapters.box.beneath import open_beneath
from sandbox_service.adapters.box.frames import Frame, Header

MAX_FILE_BYTES = 1024 * 1024
"""Longest file read through the service."""
_READ_ONLY = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY
_FOLDER = os.O_RDONLY | os.O_DIRECTORY
_MORE = os.O_WRONLY | os.O_APPEND | os.O_NONBLOCK | os.O_NOFOLLOW
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

    def append(self, path: str, content: bytes) -> Answer:
        """Writes more of a file that write has just made. error is set as there."""
        try:
            fd = open_beneath(self._fd, path, _MORE)
            with open(fd, "wb", buffering=0) as file:
                _write_all(file, content)
        except OSError as error:
            return {"error": f"{path}: {error.strerror}"}, ()
        return {}, ()

    def part(self, path: str, offset: int, length: int) -> Answer:
        """A part of a regular file, the length of the whole and where the part begins. absent says why there is none.

        offset counts from the end where negative.
        """
        try:
            fd = open_beneath(self._fd, path, _READ_ONLY)
        except OSError as error:
            return {"absent": _why_absent(error)}, ()
        try:
            facts = os.fstat(fd)
            if not stat.S_ISREG(facts.st_mode):
                return {"absent": "is a folder" if stat.S_ISDIR(facts.st_mode) else "is no regular file"}, ()
            start = max(0, facts.st_size + offset) if offset < 0 else offset
            return {"total_bytes": facts.st_size, "start": start}, (os.pread(fd, length, start),)
        finally:
            os.close(fd)

    def list(self, path: str, max_entries: int) -> Answer:
        """The first entries of a folder by name: kinds are f, d, l or o. absent says why there are none."""
        try:
            fd = open_beneath(self._fd, path or ".", _FOLDER)
            try:
                with os.scandir(fd) as entries:
                    names = heapq.nsmallest(max_entries + 1, (entry.name for entry in entries))
                facts = [(name, os.stat(name, dir_fd=fd, follow_symlinks=False)) for name in names[:max_entries]]
            finally:
                os.close(fd)
        except OSError as error:
            return {"absent": _why_absent(error)}, ()
        return {
            "names": [name for name, _ in facts],
            "kinds": "".join(_kind(entry.st_mode) for _, entry in facts),
            "lengths": ",".join(str(entry.st_size) for _, entry in facts),
            "modes": ",".join(str(stat.S_IMODE(entry.st_mode)) for _, entry in facts),
            "truncated": len(names) > max_entries,
        }, ()

    def make_folder(self, path: str) -> Answer:
        """A folder, made where it is not there. error is set where it cannot be."""
        try:
            fd = self._parent(path)
        except OSError as error:
            return {"error": f"{path}: {error.strerror}"}, ()
        if fd != self._fd:
            os.close(fd)
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
        try:
            facts = os.fstat(fd)
            if not stat.S_ISREG(facts.st_mode) or facts.st_size > max_bytes:
                raise OSError(errno.EINVAL, "not a regular file of moderate length")
            with open(fd, "rb", buffering=0, closefd=False) as file:
                return file.read(max_bytes) or b""
        finally:
            os.close(fd)

    def _replace(self, path: str, content: bytes, mode: int) -> None:
        parent, _, name = path.rpartition("/")
        parent_fd = self._parent(parent)
        try:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(name, dir_fd=parent_fd)
            fd = os.open(name, _NEW | os.O_CLOEXEC, mode, dir_fd=parent_fd)
            with open(fd, "wb", buffering=0) as file:
                _write_all(file, content)
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


def _write_all(file: io.FileIO, content: bytes) -> None:
    rest = memoryview(content)
    while rest:
        rest = rest[file.write(rest) :]


def _kind(mode: int) -> str:
    if stat.S_ISREG(mode):
        return "f"
    if stat.S_ISDIR(mode):
        return "d"
    return "l" if stat.S_ISLNK(mode) else "o"


def _why_absent(error: OSError) -> str:
    if error.errno in (errno.EXDEV, errno.ELOOP):
        return "leads out of the working folder by a link"
    if error.errno == errno.EISDIR:
        return "is a folder"
    if error.errno == errno.ENOENT:
        return "is not there"
    if error.errno == errno.ENOTDIR:
        return "is no folder, or lies below a file"
    return f"cannot be opened ({error.strerror})"
