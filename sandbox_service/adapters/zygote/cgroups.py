"""Memory and process limits of whole boxes by control groups, version 1 or 2, where this process may make groups. Used by the zygote.

Groups lie in a folder named after the zygote, below the group that it was started in: NAME/boxN. The zygote's outer half removes the
folder at its end; the next zygote removes what a killed one left.
"""

import contextlib
import fcntl
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from sandbox_service.core.shape import BoxShape

_PREFIX = "journeyman-"
_ROOM_FOR_INIT = 1
_PEAKS = {
    (1, "memory"): "memory.max_usage_in_bytes",
    (1, "pids"): "pids.peak",
    (2, "memory"): "memory.peak",
    (2, "pids"): "pids.peak",
}
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


@dataclass(frozen=True, slots=True, kw_only=True)
class Counters:
    """How often the kernel refused a box something."""

    num_oom_kills: int = 0
    num_fork_refusals: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Hierarchy:
    """One place where groups can be made."""

    version: int
    controllers: tuple[str, ...]
    base: str
    """Folder of the group that this process is in."""
    fd: int
    """Our folder in it, open so that it can be used after the root has changed."""


class Cgroups:
    """Groups of one zygote's boxes. Where there is no hierarchy its methods do nothing."""

    def __init__(self, hierarchies: tuple[Hierarchy, ...], name: str) -> None:
        self._hierarchies = hierarchies
        self._name = name

    @property
    def controllers(self) -> frozenset[str]:
        """Which of memory and pids are enforced."""
        return frozenset(controller for hierarchy in self._hierarchies for controller in hierarchy.controllers)

    def add(self, number: int, pid: int) -> None:
        """A group for box number, still without limits; pid is put into it but where it has to enter by itself."""
        for hierarchy in self._hierarchies:
            os.mkdir(f"box{number}", 0o755, dir_fd=hierarchy.fd)
            if hierarchy.version == 2:
                _write(hierarchy.fd, f"box{number}/cgroup.procs", str(pid))

    def enter(self, number: int) -> None:
        """Called by the box's only thread: moving oneself costs no grace period, while being moved takes the kernel up to 10 ms."""
        for hierarchy in self._hierarchies:
            if hierarchy.version == 1:
                _write(hierarchy.fd, f"box{number}/tasks", "0")

    def limit(self, number: int, shape: BoxShape) -> None:
        """Sets the limits of a group."""
        for hierarchy in self._hierarchies:
            for file, value in _limits(hierarchy, shape).items():
                with contextlib.suppress(FileNotFoundError):  # swap accounting is optional in the kernel
                    _write(hierarchy.fd, f"box{number}/{file}", str(value))

    def remove(self, number: int) -> bool:
        """False where the kernel still counts a process in it: try again."""
        for hierarchy in self._hierarchies:
            try:
                os.rmdir(f"box{number}", dir_fd=hierarchy.fd)
            except FileNotFoundError:
                continue
            except OSError:
                return False
        return True

    def counters(self, number: int) -> Counters:
        """As they stand."""
        found: dict[str, int] = {}
        for hierarchy in self._hierarchies:
            for file in ("memory.oom_control", "memory.events", "pids.events"):
                with contextlib.suppress(OSError):
                    found.update(_read_counts(hierarchy.fd, f"box{number}/{file}", file.partition(".")[0]))
        return Counters(num_oom_kills=found.get("memory.oom_kill", 0), num_fork_refusals=found.get("pids.max", 0))

    def open_peaks(self, number: int) -> tuple[int, int]:
        """Descriptors that tell a group's peaks of memory and of processes; -1 where the kernel tells none. The caller closes them."""
        found = {"memory": -1, "pids": -1}
        for hierarchy in self._hierarchies:
            for controller in hierarchy.controllers:
                with contextlib.suppress(OSError):  # pids.peak: Linux 6.1 on version 2; memory.peak: 5.19
                    path = f"box{number}/{_PEAKS[hierarchy.version, controller]}"
                    found[controller] = os.open(path, os.O_RDONLY | os.O_CLOEXEC, dir_fd=hierarchy.fd)
        return found["memory"], found["pids"]

    def close(self) -> None:
        """Removes the folders. Called when every box is dead, by a process that sees the host's files."""
        for hierarchy in self._hierarchies:
            _remove_folder(Path(hierarchy.base, self._name))
            os.close(hierarchy.fd)


def open_cgroups(name: str) -> tuple[Cgroups, str]:
    """Groups, and why memory or pids is missing; empty where neither is."""
    hierarchies: list[Hierarchy] = []
    reasons: list[str] = []
    for version, controllers, base in _places():
        try:
            hierarchies.append(_open(version, controllers, base, _PREFIX + name))
        except OSError as error:
            reasons.append(f"{base}: {error.strerror}")
    groups = Cgroups(tuple(hierarchies), _PREFIX + name)
    missing = {"memory", "pids"} - groups.controllers
    reason = "; ".join(reasons) or "no cgroup with this controller is delegated to the service"
    return groups, reason if missing else ""


def remove_stale() -> None:
    """Removes folders of zygotes that are gone, wherever they ran: one that lives has its folders locked."""
    for _, _, base in _places():
        with contextlib.suppress(OSError):
            for folder in Path(base).glob(_PREFIX + "*"):
                _remove_unlocked(folder)


def _remove_unlocked(folder: Path) -> None:
    with contextlib.suppress(OSError):
        fd = os.open(folder, _FOLDER)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            _remove_folder(folder)
        finally:
            os.close(fd)


def _places() -> Iterator[tuple[int, tuple[str, ...], str]]:
    """Version, controllers of interest and the folder of our own group, for each hierarchy mounted."""
    own = {}
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, names, path = line.split(":", 2)
        own[names] = path
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        left, _, right = line.partition(" - ")
        root, target = left.split()[3:5]
        kind, _, options = right.split()[:3]
        if kind == "cgroup2" and "" in own:
            yield 2, ("memory", "pids"), _below(target, root, own[""])
        elif kind == "cgroup":
            found = tuple(sorted({"memory", "pids"} & set(options.split(","))))
            for names, path in own.items():
                if found and set(found) <= set(names.split(",")):
                    yield 1, found, _below(target, root, path)


def _below(target: str, root: str, path: str) -> str:
    relative = path.removeprefix(root) if root != "/" else path
    return os.path.join(target, relative.lstrip("/"))


def _open(version: int, controllers: tuple[str, ...], base: str, name: str) -> Hierarchy:
    if version == 2:
        available = Path(base, "cgroup.controllers").read_text().split()
        controllers = tuple(controller for controller in controllers if controller in available)
        if not controllers:
            raise OSError(0, "cgroup2 without memory and pids controllers")
        _enable(Path(base), controllers)
    folder = Path(base, name)
    folder.mkdir()
    if version == 2:
        _enable(folder, controllers)
    fd = os.open(folder, _FOLDER)
    fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    return Hierarchy(version=version, controllers=controllers, base=base, fd=fd)


def _enable(folder: Path, controllers: tuple[str, ...]) -> None:
    control = folder / "cgroup.subtree_control"
    if not set(controllers) <= set(control.read_text().split()):
        control.write_text(" ".join(f"+{controller}" for controller in controllers))


def _limits(hierarchy: Hierarchy, shape: BoxShape) -> Mapping[str, int]:
    processes = shape.max_processes + _ROOM_FOR_INIT
    limits: dict[str, int] = {}
    if "memory" in hierarchy.controllers and hierarchy.version == 1:
        limits |= {"memory.limit_in_bytes": shape.memory_bytes, "memory.memsw.limit_in_bytes": shape.memory_bytes}
    if "memory" in hierarchy.controllers and hierarchy.version == 2:
        limits |= {"memory.max": shape.memory_bytes, "memory.swap.max": 0}
    if "pids" in hierarchy.controllers:
        limits["pids.max"] = processes
    return limits


def _write(folder_fd: int, path: str, text: str) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC, dir_fd=folder_fd)
    try:
        os.write(fd, text.encode())
    finally:
        os.close(fd)


def _read_counts(folder_fd: int, path: str, prefix: str) -> dict[str, int]:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC, dir_fd=folder_fd)
    with open(fd, encoding="ascii") as file:
        pairs = [line.split() for line in file]
    return {f"{prefix}.{pair[0]}": int(pair[1]) for pair in pairs if len(pair) == 2 and pair[1].isdigit()}


def _remove_folder(folder: Path) -> None:
    with contextlib.suppress(OSError):
        for child in folder.glob("box*"):
            with contextlib.suppress(OSError):
                child.rmdir()
        folder.rmdir()
