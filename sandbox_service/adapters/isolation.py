"""Finds a kind of isolation that works here, by doing it: makes a box, runs programs in it and lets them look for the host.

Called once at start, by the service and by whoever uses boxes in process. The strongest that works is taken.
"""

import os
import socket
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass

from journeyman.boxes.port import Usage
from journeyman.errors import ErrorCode, JourneymanError
from sandbox_service.adapters.linked_backend import OVERLAY, LinkedBackend
from sandbox_service.adapters.zygote_process import MAX_SPARES, ZygoteProcess
from sandbox_service.core.programs import Program
from sandbox_service.core.shape import BoxShape
from sandbox_service.core.usage import untold

AUTO = "auto"
UID_FIRST = 1_879_048_192
"""First of the host's uids that boxes have as root: above what systemd gives to containers."""
_ORDER = ("ns-root", "ns-rootless", "bwrap", "runsc")
_EVERYWHERE = ("cpu", "wall", "output")
_NAMESPACES = ("network", "host", "processes")
_ENFORCED: Mapping[str, tuple[str, ...]] = {
    "ns-root": (*_NAMESPACES, "disk", "files"),
    "ns-rootless": (*_NAMESPACES, "disk", "files"),
    "bwrap": (*_NAMESPACES, "disk per folder"),
    "runsc": (*_NAMESPACES, "disk per folder"),
    "weak": (),
}
_TWO_FOLDERS = "disk: only of the working and of the temporary folder each, not of both together"
_NOT_ENFORCED: Mapping[str, tuple[str, ...]] = {
    "ns-root": (),
    "ns-rootless": (),
    "bwrap": ("files: bubblewrap does not limit their number", _TWO_FOLDERS),
    "runsc": (
        "files: gVisor does not limit their number",
        _TWO_FOLDERS,
        "cpu: gVisor counts the time in which processes wait for a CPU as used, so many of them meet the limit early",
    ),
    "weak": tuple(
        f"{name}: there are no namespaces" for name in ("host", "network", "disk", "files", "processes", "memory")
    ),
}
_LOOK_FOR_HOST = """
import os, socket, sys
witness, port, pid, started = sys.argv[1:]
def start_of(pid):
    try: return open("/proc/" + pid + "/stat").read().rpartition(")")[2].split()[19]
    except OSError: return ""
seen = []
if os.path.exists(witness): seen.append("files of the host")
if start_of(pid) == started or len([name for name in os.listdir("/proc") if name.isdigit()]) > 8:
    seen.append("processes of the host")
try:
    socket.create_connection(("127.0.0.1", int(port)), 1).close()
    seen.append("the network of the host")
except OSError:
    pass
if os.getuid() == 0: seen.append("root's uid")
print(", ".join(seen) or "nothing")
"""
_SHARING = ("ns-root", "ns-rootless")
_CHANGE_FILES = """
import os, shutil
open("file", "a").write("more")
shutil.rmtree("folder"); os.mkdir("folder"); open("folder/new", "w").close()
print("changed" if open("file").read() == "textmore" and os.listdir("folder") == ["new"] else os.listdir("folder"))
"""
_FIX = (
    "fix: run as root, or let users make namespaces (sysctl kernel.unprivileged_userns_clone=1, "
    "kernel.apparmor_restrict_unprivileged_userns=0; in a container --security-opt seccomp=unconfined apparmor=unconfined "
    "systempaths=unconfined), or apt install bubblewrap; or pass --allow-weak to run programs almost unprotected"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class IsolationChoice:
    """What the operator wants."""

    isolation: str = AUTO
    """auto | ns-root | ns-rootless | bwrap | runsc | weak."""
    allow_weak: bool = False
    uid_first: int = UID_FIRST
    python: str = sys.executable
    """Interpreter of the boxes."""
    max_spares: int = MAX_SPARES
    """Boxes made ahead at most."""


async def open_backend(choice: IsolationChoice) -> LinkedBackend:
    """A backend that has been seen to work. PRECONDITION names every kind tried, why it failed, the fix and the flag."""
    if choice.isolation not in (AUTO, "weak", *_ORDER):
        message = f"SANDBOX_ISOLATION={choice.isolation!r}: must be auto, weak or one of {', '.join(_ORDER)}"
        raise JourneymanError(ErrorCode.INVALID_INPUT, message)
    wanted = _ORDER if choice.isolation == AUTO else (choice.isolation,)
    if choice.allow_weak and choice.isolation == AUTO:
        wanted = (*wanted, "weak")
    causes = []
    for isolation in wanted:
        try:
            return await _open(isolation, choice)
        except JourneymanError as error:
            causes.append(error.message)
    raise JourneymanError(ErrorCode.PRECONDITION, f"no isolation can be had here: {'; '.join(causes)}. {_FIX}")


async def _open(isolation: str, choice: IsolationChoice) -> LinkedBackend:
    if isolation == "ns-root" and os.geteuid() != 0:
        raise JourneymanError(ErrorCode.PRECONDITION, "ns-root: the service does not run as root")
    if isolation == "weak" and not choice.allow_weak:
        message = "weak: refused, since programs would see this host's files, processes and network; allow it with --allow-weak"
        raise JourneymanError(ErrorCode.PRECONDITION, message)
    zygote = await ZygoteProcess.start(isolation, choice.uid_first, choice.python, choice.max_spares)
    backend = LinkedBackend(zygote, isolation, *_limits(isolation, zygote))
    try:
        used = await _prove(backend, choice.python)
        backend.not_enforced = (*backend.not_enforced, *untold(used))
        backend.forking = await _way_to_fork(backend)
    except JourneymanError as error:
        await backend.close()
        raise JourneymanError(ErrorCode.PRECONDITION, f"{isolation}: {error.message}") from error
    return backend


def _limits(isolation: str, zygote: ZygoteProcess) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What is enforced, and what is not, each with its reason after a colon."""
    enforced = [*_EVERYWHERE, "memory per process", *_ENFORCED[isolation]]
    not_enforced = list(_NOT_ENFORCED[isolation])
    if "memory" in zygote.controllers and isolation != "weak":
        enforced.append("memory")
    elif isolation != "weak":
        not_enforced.append(f"memory: only of each process, not of the box ({zygote.no_cgroups})")
    return tuple(enforced), tuple(not_enforced)


def _start_of_this_process() -> str:
    """Ticks from the machine's start on: with the pid it tells this process from another with the same pid elsewhere."""
    with open("/proc/self/stat", encoding="ascii", errors="replace") as file:
        return file.read().rpartition(")")[2].split()[19]


async def _way_to_fork(backend: LinkedBackend) -> str:
    """Tries whether files can be shared by boxes that change them as they like; otherwise the reason."""
    if backend.isolation not in _SHARING:
        return f"copy: {backend.isolation} has no layers"
    first = await backend.create(BoxShape())
    try:
        await first.write({"folder/old": b"old", "file": b"text"})
        saved = await first.save()
    except JourneymanError as error:
        return f"copy: {error.message}"
    finally:
        await first.destroy("the trial is over")
    try:
        box = await backend.create(BoxShape(), saved)
    except JourneymanError as error:
        return f"copy: {error.message}"
    finally:
        backend.discard(saved)
    try:
        ran = (await box.run(Program(source=_CHANGE_FILES))).result
    finally:
        await box.destroy("the trial is over")
    told = ran.stdout.decode(errors="replace").strip() or ran.stderr.decode(errors="replace").strip()[-200:]
    return OVERLAY if told == "changed" else f"copy: on shared files a trial program gave {told!r}"


async def _prove(backend: LinkedBackend, python: str) -> Usage:
    """Runs programs in a box and lets one look for the host; what one used. PRECONDITION says what went wrong."""
    with (
        tempfile.NamedTemporaryFile(prefix="journeyman-witness-") as witness,
        socket.create_server(("127.0.0.1", 0)) as host,
    ):
        os.chmod(witness.name, 0o644)
        argv = (witness.name, str(host.getsockname()[1]), str(os.getpid()), _start_of_this_process())
        box = await backend.create(BoxShape())
        try:
            await box.write({"folder/file": b"text"})
            looked = (await box.run(Program(source=_LOOK_FOR_HOST, argv=argv))).result
            ran = (
                await box.run(Program(argv=(python, "-c", "print(open('folder/file').read())"), timeout_s=10.0))
            ).result
            kept = await box.read(["folder/file"])
        finally:
            await box.destroy("the trial is over")
    for result in (looked, ran):
        if result.exit_code != 0:
            told = result.infra_reason or result.stderr.decode(errors="replace").strip()[-300:]
            raise JourneymanError(ErrorCode.PRECONDITION, f"a trial program ended {result.ending}: {told}")
    if ran.stdout != b"text\n" or kept != {"folder/file": b"text"}:
        raise JourneymanError(ErrorCode.PRECONDITION, f"a trial program gave {ran.stdout[:80]!r}, its file {kept!r}")
    seen = looked.stdout.decode().strip()
    if seen != "nothing" and backend.isolation != "weak":
        raise JourneymanError(ErrorCode.PRECONDITION, f"a trial program saw {seen}")
    return ran.used
