"""Finds a kind of isolation that works here, by doing it: makes a box, runs programs in it and lets them look for the host.

Called once at start, by the service and by whoever uses boxes in process. The strongest that works is taken.
"""

import os
import socket
import sys
import tempfile
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from journeyman.errors import ErrorCode, JourneymanError
from sandbox_service.adapters.bwrap import BwrapLauncher
from sandbox_service.adapters.linked_backend import LinkedBackend
from sandbox_service.adapters.zygote_process import ZygoteProcess
from sandbox_service.core.programs import Program
from sandbox_service.core.shape import BoxShape

AUTO = "auto"
UID_FIRST = 1_879_048_192
"""First of the host's uids that boxes have as root: above what systemd gives to containers."""
_ORDER = ("ns-root", "ns-rootless", "bwrap")
_EVERYWHERE = ("cpu", "wall", "output")
_LOOK_FOR_HOST = """
import os, socket, sys
witness, port, pid = sys.argv[1:]
seen = []
if os.path.exists(witness): seen.append("files of the host")
if os.path.isdir("/proc/" + pid + "/fd") or len([name for name in os.listdir("/proc") if name.isdigit()]) > 8:
    seen.append("processes of the host")
try:
    socket.create_connection(("127.0.0.1", int(port)), 1).close()
    seen.append("the network of the host")
except OSError:
    pass
if os.getuid() == 0: seen.append("root's uid")
print(", ".join(seen) or "nothing")
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
    """auto | ns-root | ns-rootless | bwrap | weak."""
    allow_weak: bool = False
    uid_first: int = UID_FIRST
    python: str = sys.executable
    """Interpreter of the boxes."""


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
    openers: dict[str, Callable[[IsolationChoice], Awaitable[LinkedBackend]]] = {
        "ns-root": _open_root,
        "ns-rootless": _open_rootless,
        "bwrap": _open_bwrap,
        "weak": _open_weak,
    }
    backend = await openers[isolation](choice)
    try:
        await _prove(backend, choice.python)
    except JourneymanError as error:
        await backend.close()
        raise JourneymanError(ErrorCode.PRECONDITION, f"{isolation}: {error.message}") from error
    return backend


async def _open_root(choice: IsolationChoice) -> LinkedBackend:
    if os.geteuid() != 0:
        raise JourneymanError(ErrorCode.PRECONDITION, "ns-root: the service does not run as root")
    zygote = await ZygoteProcess.start("ns-root", choice.uid_first, choice.python)
    return _namespaces(zygote, "ns-root")


async def _open_rootless(choice: IsolationChoice) -> LinkedBackend:
    zygote = await ZygoteProcess.start("ns-rootless", choice.uid_first, choice.python)
    return _namespaces(zygote, "ns-rootless")


def _namespaces(zygote: ZygoteProcess, isolation: str) -> LinkedBackend:
    enforced = [*_EVERYWHERE, "disk", "files", "network", "host", "processes", "memory per process"]
    not_enforced = []
    if "memory" in zygote.controllers:
        enforced.append("memory")
    else:
        not_enforced.append(f"memory: only of each process, not of the box ({zygote.no_cgroups})")
    return LinkedBackend(zygote, isolation, tuple(enforced), tuple(not_enforced))


async def _open_bwrap(choice: IsolationChoice) -> LinkedBackend:
    enforced = (*_EVERYWHERE, "disk", "network", "host", "processes", "memory per process")
    missing = ("files: bubblewrap does not limit their number", "memory: only of each process, not of the box")
    return LinkedBackend(BwrapLauncher(choice.uid_first, choice.python), "bwrap", enforced, missing)


async def _open_weak(choice: IsolationChoice) -> LinkedBackend:
    if not choice.allow_weak:
        message = "weak: refused, since programs would see this host's files, processes and network; allow it with --allow-weak"
        raise JourneymanError(ErrorCode.PRECONDITION, message)
    zygote = await ZygoteProcess.start("weak", choice.uid_first, choice.python)
    why = "there are no namespaces"
    missing = ("host", "network", "disk", "files", "processes", "memory")
    return LinkedBackend(
        zygote, "weak", (*_EVERYWHERE, "memory per process"), tuple(f"{name}: {why}" for name in missing)
    )


async def _prove(backend: LinkedBackend, python: str) -> None:
    """Runs programs in a box and lets one look for the host. PRECONDITION says what went wrong."""
    with (
        tempfile.NamedTemporaryFile(prefix="journeyman-witness-") as witness,
        socket.create_server(("127.0.0.1", 0)) as host,
    ):
        os.chmod(witness.name, 0o644)
        argv = (witness.name, str(host.getsockname()[1]), str(os.getpid()))
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
