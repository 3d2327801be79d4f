"""Confinement by a program of others, by the name of the kind of isolation. Called by zygote.main, in the process that will be its outer half."""

import os

from sandbox_service.adapters.linux import calls
from sandbox_service.adapters.zygote.bwrap import BwrapTool
from sandbox_service.adapters.zygote.cgroups import Cgroups
from sandbox_service.adapters.zygote.commands import CommandConfinement
from sandbox_service.adapters.zygote.runsc import RunscTool

TOOLS = ("bwrap", "runsc")


def confine_by_tool(isolation: str, path: str, cgroups: Cgroups, uid_first: int | None) -> CommandConfinement:
    """uid_first: of the host's uids that programs which need no root run as; None where there are none to spare."""
    if not path:
        raise OSError(0, "not on PATH")
    is_root = os.geteuid() == 0
    if is_root:
        if not calls.is_supported():
            raise OSError(0, f"system call numbers of {calls.MACHINE} are not known")
        calls.unshare(calls.CLONE_NEWPID)
    if isolation == "bwrap":
        return CommandConfinement(
            BwrapTool(path, in_template=is_root),
            cgroups,
            uid_first=uid_first if is_root else None,
            in_namespaces=is_root,
        )
    if not is_root:
        raise OSError(0, "the service does not run as root")
    return CommandConfinement(RunscTool(path), cgroups, uid_first=None, in_namespaces=True)
