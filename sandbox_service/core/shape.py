"""The limits of a box. Travels as JSON to the zygote, so this module is part of every box's memory: standard library only."""

from collections.abc import Mapping
from dataclasses import dataclass

MIB = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class BoxShape:
    """Limits of one box, all filled in."""

    memory_bytes: int = 512 * MIB
    """Of the whole box where control groups can be had, and of each process."""
    max_processes: int = 64
    disk_bytes: int = 64 * MIB
    """Of its working and temporary folder together."""
    max_files: int = 4096
    output_bytes: int = 64 * 1024
    """Kept of each of stdout and stderr."""
    log_bytes: int = 0
    """Of each of stdout and stderr beyond output_bytes that go to a log; 0: a program is killed at output_bytes."""
    file_bytes: int = 0
    """Of the longest file that a program may write; 0 means disk_bytes."""
    max_open_files: int = 256
    """Of each process."""

    def to_json(self) -> dict[str, int]:
        """For the wire."""
        return {name: getattr(self, name) for name in self.__slots__}

    @classmethod
    def from_json(cls, value: Mapping[str, int]) -> "BoxShape":
        """From the wire."""
        return cls(**{name: value[name] for name in cls.__slots__})


RANGES: Mapping[str, tuple[int, int]] = {
    "memory_bytes": (16 * MIB, 1024 * 1024 * MIB),
    "max_processes": (1, 32768),
    "disk_bytes": (64 * 1024, 64 * 1024 * MIB),
    "max_files": (16, 10_000_000),
    "output_bytes": (1, 16 * MIB),
    "log_bytes": (0, 1024 * MIB),
    "file_bytes": (0, 64 * 1024 * MIB),
    "max_open_files": (32, 65536),
}
"""Least and most of each limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BoxPlan:
    """What stays the same of a box while its files change."""

    shape: BoxShape
    env: tuple[str, ...] = ()
    """NAME=VALUE, for all its programs."""
    folder: str = ""
    """Where they start, relative to the working folder."""
