"""Trees of files that boxes were forked from or will be: kept in a mount namespace that no box is ever in. Used by NamespaceConfinement.

A layer is the file system that a box wrote to, after the box has ended or has been given a new one on top. Living boxes keep what they use of
it, so a layer can be dropped at any time.
"""

import os
from collections.abc import Sequence

from sandbox_service.adapters.linux import calls

MAX_LAYERS = 100
"""On which one box may stand."""
_FOLDER = "/tmp"
_SELF = "/proc/self/ns/mnt"
_READ = os.O_RDONLY | os.O_CLOEXEC


class Layers:
    """Layers by number. The process that makes it must be in the mount namespace of its boxes, single-threaded, and may mount."""

    def __init__(self) -> None:
        self._outside = os.open(_SELF, _READ)
        calls.unshare(calls.CLONE_NEWNS)
        calls.mount("layers", _FOLDER, "tmpfs", calls.MS_NOSUID | calls.MS_NODEV, "size=4m,mode=0700")
        self._inside = os.open(_SELF, _READ)
        calls.enter_mount_namespace(self._outside)

    def keep(self, number: int, tree: int) -> None:
        """Makes a tree (linux.calls.open_tree) layer number."""
        calls.enter_mount_namespace(self._inside)
        try:
            os.mkdir(_place(number))
            calls.move_tree(tree, _place(number))
        finally:
            calls.enter_mount_namespace(self._outside)

    def open(self, numbers: Sequence[int]) -> list[int]:
        """Trees that show layers; the caller closes them."""
        if not numbers:
            return []
        calls.enter_mount_namespace(self._inside)
        try:
            return [calls.open_tree(_place(number)) for number in numbers]
        finally:
            calls.enter_mount_namespace(self._outside)

    def drop(self, number: int) -> None:
        """Forgets a layer. Its memory is free when the last box on it has ended."""
        calls.enter_mount_namespace(self._inside)
        try:
            calls.unmount(_place(number))
            os.rmdir(_place(number))
        finally:
            calls.enter_mount_namespace(self._outside)


def _place(number: int) -> str:
    return f"{_FOLDER}/{number}"
