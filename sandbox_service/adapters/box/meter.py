"""What a box has used, as far as its init can see it. Called by runner.Runner after each program; it costs a few microseconds.

Files are asked of the box's own file system, where it has one; peaks of memory and processes of the control group, whose files the maker of
the box leaves open for reading. 0 means not known.
"""

import os
from dataclasses import dataclass

_NUMBER_BYTES = 32
_NONE_OPEN = (-1, -1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """Use of the box so far."""

    is_full: bool
    """Whether its disk or its number of files is used up."""
    disk_bytes: int
    num_files: int
    memory_peak_bytes: int
    processes_peak: int


class Meter:
    """Reads what one box has used."""

    def __init__(self, folder: str, disk_bytes: int, peak_fds: tuple[int, int] = _NONE_OPEN) -> None:
        self._folder = folder
        self._memory_fd, self._processes_fd = peak_fds
        facts = os.statvfs(folder)
        size_bytes = facts.f_blocks * facts.f_frsize
        self._has_own_disk = 0 < size_bytes <= disk_bytes + facts.f_frsize
        """Otherwise the folder lies on a disk that others fill too."""
        self._bytes_before = (facts.f_blocks - facts.f_bfree) * facts.f_frsize
        self._files_before = facts.f_files - facts.f_ffree

    def read(self) -> Reading:
        """As it stands."""
        facts = os.statvfs(self._folder)
        used_bytes = (facts.f_blocks - facts.f_bfree) * facts.f_frsize - self._bytes_before
        num_files = facts.f_files - facts.f_ffree - self._files_before
        return Reading(
            is_full=facts.f_bavail == 0 or (facts.f_files > 0 and facts.f_favail == 0),
            disk_bytes=max(0, used_bytes) if self._has_own_disk else 0,
            num_files=max(0, num_files) if self._has_own_disk else 0,
            memory_peak_bytes=_number(self._memory_fd),
            processes_peak=max(0, _number(self._processes_fd) - 1),
        )


def _number(fd: int) -> int:
    """What a file of the control group says; 0 where it is not open or says no number."""
    if fd < 0:
        return 0
    try:
        return int(os.pread(fd, _NUMBER_BYTES, 0))
    except (OSError, ValueError):
        return 0
