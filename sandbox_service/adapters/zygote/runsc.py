"""gVisor's runsc as a maker of boxes: programs meet a kernel in user space instead of the host's. A Tool of zygote.commands; needs root.

A box is one OCI container that lives as long as the box. runsc sees only the zygote's template, and keeps its state on a tmpfs
in the zygote's mount namespace, so that nothing of it outlives the zygote. Its kernel has no openat2 and no pidfds in older releases
(adapters.box does without) and lets programs of a box signal the first one, which the box's seccomp filter forbids.
"""

import json
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from journeyman.boxes.program import WORK_FOLDER
from sandbox_service.adapters.linux import calls
from sandbox_service.adapters.zygote.commands import InitOrder
from sandbox_service.adapters.zygote.template import TEMPORARY_FOLDER, UID_IN_BOX, enter_template, is_covered
from sandbox_service.core.shape import MIB, BoxShape

_PLATFORMS = ("systrap", "ptrace")
"""The faster first; releases before 2023 know only the second."""
_PLACE = WORK_FOLDER
"""Where the template leaves room for what runsc writes."""
_ROOT, _BUNDLES, _STATE = f"{_PLACE}/root", f"{_PLACE}/bundles", f"{_PLACE}/state"
_PLACE_BYTES = 64 * MIB
_OWN_MEMORY_BYTES = 64 * MIB
"""What runsc's kernel and its file server may use beside the box."""
_OWN_PROCESSES = 512
_THREADS_PER_PROCESS = 4
_NAMESPACES = ("pid", "mount", "network", "ipc", "uts")


class RunscTool:
    """Makes boxes by runsc."""

    def __init__(self, path: str) -> None:
        self._runsc = os.path.realpath(path)
        self._platform = ""
        self._covered: list[str] = []

    def prepare(self, folders: Sequence[str], attempt: Callable[[list[str]], str]) -> None:
        """See Tool. Tries a container on each platform."""
        self._covered = [folder for folder in folders if is_covered(folder)]
        enter_template([*folders, os.path.dirname(self._runsc)])
        calls.mount("runsc", _PLACE, "tmpfs", calls.MS_NOSUID | calls.MS_NODEV, f"size={_PLACE_BYTES}")
        for folder in (_ROOT, _BUNDLES, _STATE):
            os.mkdir(folder)
        calls.mount("/", _ROOT, flags=calls.MS_BIND | calls.MS_REC)
        for hidden in (_PLACE, "/proc"):
            calls.unmount(_ROOT + hidden)
        self._platform = self._choose_platform(attempt)

    def argv(self, slot: int, shape: BoxShape, has_pids_limit: bool) -> list[str]:
        """See Tool."""
        order = InitOrder(max_processes=shape.max_processes + 1, kernel="gvisor", shape=shape)
        return self._container(f"box{slot}", order.argv, shape, self._platform)

    def group_limits(self, shape: BoxShape) -> BoxShape:
        """See Tool.

        runsc's kernel limits the box's processes. On the ptrace platform it needs a thread of the host's for each pair of process and
        thread of its own that ever met, so a storm of busy processes meets the group's limit first, which ends the box.
        """
        return replace(
            shape,
            memory_bytes=shape.memory_bytes + _OWN_MEMORY_BYTES,
            max_processes=shape.max_processes * _THREADS_PER_PROCESS + _OWN_PROCESSES,
        )

    def bury(self, slot: int) -> None:
        """See Tool."""
        shutil.rmtree(f"{_BUNDLES}/box{slot}", ignore_errors=True)
        for left in Path(_STATE).glob(f"box{slot}_*"):
            left.unlink(missing_ok=True)

    def _choose_platform(self, attempt: Callable[[list[str]], str]) -> str:
        """The first that runs a trivial container."""
        complaints = []
        for platform in _PLATFORMS:
            complaint = attempt(self._container("trial", ["/usr/bin/true"], BoxShape(), platform))
            shutil.rmtree(f"{_BUNDLES}/trial")
            if not complaint:
                return platform
            complaints.append(f"{platform}: {complaint}")
        raise OSError(0, f"no platform of it works: {'; '.join(complaints)}")

    def _container(self, name: str, argv: Sequence[str], shape: BoxShape, platform: str) -> list[str]:
        """Writes a bundle; the command that runs it."""
        bundle = f"{_BUNDLES}/{name}"
        os.mkdir(bundle)
        Path(bundle, "config.json").write_text(json.dumps(self._config(argv, shape)))
        flags = [f"--platform={platform}", "--network=none", "--ignore-cgroups", f"--root={_STATE}"]
        return [self._runsc, *flags, "run", f"--bundle={bundle}", name]

    def _config(self, argv: Sequence[str], shape: BoxShape) -> Mapping[str, object]:
        return {
            "ociVersion": "1.0.2",
            "process": {
                "terminal": False,
                "user": {"uid": UID_IN_BOX, "gid": UID_IN_BOX},
                "args": list(argv),
                "env": [f"{name}={value}" for name, value in os.environ.items()],
                "cwd": WORK_FOLDER,
                "capabilities": {},
                "noNewPrivileges": True,
            },
            "root": {"path": _ROOT, "readonly": True},
            "hostname": "box",
            "mounts": [
                {"destination": "/proc", "type": "proc", "source": "proc"},
                *(_sized(folder, shape.disk_bytes) for folder in (TEMPORARY_FOLDER, WORK_FOLDER)),
                *(_shown(folder) for folder in self._covered),
            ],
            "linux": {"namespaces": [{"type": kind} for kind in _NAMESPACES]},
        }


def _sized(folder: str, disk_bytes: int) -> Mapping[str, object]:
    options = ["nosuid", "nodev", "mode=1777", f"size={disk_bytes}"]
    return {"destination": folder, "type": "tmpfs", "source": "tmpfs", "options": options}


def _shown(folder: str) -> Mapping[str, object]:
    return {"destination": folder, "type": "bind", "source": _ROOT + folder, "options": ["rbind", "ro"]}
