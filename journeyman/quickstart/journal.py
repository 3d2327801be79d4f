"""The quickstart's own log, logs/quickstart.jsonl: stages, samples, restarts. Written while it runs, read by the report and on resume.

Each line is one JSON object with "at" (Unix seconds) and "kind". Appended, never rewritten, so that a resumed run goes on in the same file.
"""

import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

JsonValue = str | int | float | bool | None | list["JsonValue"] | dict[str, "JsonValue"]
Entry = Mapping[str, JsonValue]


class Stage(StrEnum):
    """Stages in their order; also the keys of "seconds" in the result."""

    START = "start"
    INIT = "init"
    COLD_START = "cold_start"
    BEFORE = "evaluate_before"
    RL = "rl"
    AFTER = "evaluate_after"
    GATE = "gate"
    REPORT = "report"


@dataclass(frozen=True, slots=True, kw_only=True)
class StageCost:
    """What one stage took over all sittings."""

    wall_s: float
    cpu_s: float
    """Of all service processes together."""


class Journal:
    """Appends entries; each has been handed to the system when append returns."""

    def __init__(self, path: Path) -> None:
        self._is_torn = _is_torn(path)
        """Whether the last line may be cut short, so that the next entry has to begin a new one."""
        self._file = path.open("ab", buffering=0)

    def append(self, kind: str, **fields: JsonValue) -> None:
        """Writes one entry. OSError where it cannot be, for instance on a full disk; the entry is lost then, no other is."""
        line = json.dumps({"at": round(time.time(), 3), "kind": kind, **fields}).encode() + b"\n"
        rest = memoryview(b"\n" + line if self._is_torn else line)
        self._is_torn = True
        while rest:
            rest = rest[self._file.write(rest) :]
        self._is_torn = False

    def close(self) -> None:
        """Ends writing."""
        self._file.close()


def _is_torn(path: Path) -> bool:
    """Whether a kill or a full disk cut the last line short."""
    if not path.is_file() or path.stat().st_size == 0:
        return False
    with path.open("rb") as file:
        file.seek(-1, 2)
        return file.read() != b"\n"


def read_journal(path: Path) -> list[Entry]:
    """All entries; a last line that a kill cut short is left out."""
    return list(_entries(path))


def _entries(path: Path) -> Iterator[Entry]:
    with path.open(encoding="utf-8") as file:
        for line in file:
            try:
                entry = json.loads(line)
            except json.JSONDecodeError:
                continue
            if isinstance(entry, dict):
                yield entry


def stage_costs(entries: list[Entry]) -> dict[Stage, StageCost]:
    """Wall and CPU seconds of each stage. A stage cut short by a kill ends with the last entry before the next sitting."""
    wall: dict[Stage, float] = {}
    cpu: dict[Stage, float] = {}
    running: tuple[Stage, float, float] | None = None
    last_at = last_cpu = 0.0
    for entry in entries:
        if entry["kind"] in ("stage_started", "sitting") and running is not None:
            _close(running, last_at, last_cpu, wall, cpu)
            running = None
        last_at = _number(entry, "at")
        last_cpu = _number(entry, "cpu_s", last_cpu)
        if entry["kind"] == "sitting":
            last_cpu = 0.0
        if entry["kind"] == "stage_started":
            running = (Stage(str(entry["stage"])), last_at, last_cpu)
        if entry["kind"] == "stage_ended" and running is not None:
            _close(running, last_at, last_cpu, wall, cpu)
            running = None
    if running is not None:
        _close(running, last_at, last_cpu, wall, cpu)
    return {stage: StageCost(wall_s=wall[stage], cpu_s=cpu[stage]) for stage in Stage if stage in wall}


def _close(
    running: tuple[Stage, float, float], at: float, cpu_s: float, wall: dict[Stage, float], cpu: dict[Stage, float]
) -> None:
    stage, started_at, started_cpu_s = running
    wall[stage] = wall.get(stage, 0.0) + at - started_at
    cpu[stage] = cpu.get(stage, 0.0) + max(cpu_s - started_cpu_s, 0.0)


def _number(entry: Entry, name: str, default: float = 0.0) -> float:
    value = entry.get(name, default)
    return float(value) if isinstance(value, (int, float)) else default
