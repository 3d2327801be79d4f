"""Opens files below a folder for the box's init, also where the kernel has no openat2 (gVisor's may not). Called by files.Folder.

Without openat2 the path is resolved first and opened afterwards. Only the box's own programs could change it in between, and none runs
while files are handled; where one did, it would reach what it can reach anyway, since all of it lies inside the box.
"""

import errno
import os

from sandbox_service.adapters.linux import calls


def open_beneath(folder_fd: int, path: str, flags: int) -> int:
    """Opens path below a folder; links that lead out of it fail."""
    try:
        return calls.open_beneath(folder_fd, path, flags)
    except OSError as error:
        if error.errno != errno.ENOSYS:
            raise
    return _open_resolved(folder_fd, path, flags)


def _open_resolved(folder_fd: int, path: str, flags: int) -> int:
    folder = os.readlink(f"/proc/self/fd/{folder_fd}")
    resolved = os.path.realpath(os.path.join(folder, path))
    if os.path.commonpath((folder, resolved)) != folder:
        raise OSError(errno.EXDEV, "leads out of the folder", path)
    return os.open(resolved, flags | os.O_CLOEXEC | os.O_NOFOLLOW)
