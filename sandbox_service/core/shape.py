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

    def to_json(self) -> dict[str, int]:
        """For the wire."""
        return {
            "memory_bytes": self.memory_bytes,
            "max_processes": self.max_processes,
            "disk_bytes": self.disk_bytes,
            "max_files": self.max_files,
            "output_bytes": self.output_bytes,
        }

    @classmethod
    def from_json(cls, value: Mapping[str, int]) -> "BoxShape":
        """From the wire."""
        return cls(
            memory_bytes=value["memory_bytes"],
            max_processes=value["max_processes"],
            disk_bytes=value["disk_bytes"],
            max_files=value["max_files"],
            output_bytes=value["output_bytes"],
        )
