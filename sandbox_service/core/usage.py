"""Which parts of a program's use nobody here can tell. Pure; called with the use of a program that surely used something."""

from journeyman.boxes.port import Usage

_WHERE_FROM = {
    "memory_peak_bytes": "a control group",
    "processes_peak": "a control group",
    "disk_bytes": "a file system of the box's own",
    "num_files": "a file system of the box's own",
}


def untold(used: Usage) -> tuple[str, ...]:
    """Fields that are 0 though they cannot be, each with the reason after a colon."""
    return tuple(
        f"use of {field}: not known, since it takes {source}"
        for field, source in _WHERE_FROM.items()
        if getattr(used, field) == 0
    )
