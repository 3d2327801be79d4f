"""The JSON form that every benchmark prints: the machine it ran on, and metrics that each name what they were measured against.

Called by the modules of this folder. A benchmark exits 0 whatever its figures are; `ok` says whether a target was met, and a figure that
could not be measured has value null and says why.
"""

import json
import os
import platform
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """One figure."""

    value: float | None
    """None where it could not be measured; why then says so."""
    unit: str
    against: str | None = None
    """The peer or limit measured in the same run; None for a figure that stands alone."""
    ratio: float | None = None
    """Ours to the peer's or limit's."""
    target: float | None = None
    """What was asked for, of the ratio where there is one, else of the value; None where nothing was asked for."""
    higher_is_better: bool = False
    why: str = ""

    @property
    def ok(self) -> bool | None:
        """Whether the target is met; None without a target or a figure."""
        judged = self.value if self.against is None else self.ratio
        if self.target is None or judged is None:
            return None
        return judged >= self.target if self.higher_is_better else judged <= self.target

    def as_json(self) -> dict[str, float | str | bool | None]:
        """As printed."""
        row: dict[str, float | str | bool | None] = {
            "value": _rounded(self.value),
            "unit": self.unit,
            "against": self.against,
            "ratio": _rounded(self.ratio),
            "target": self.target,
            "ok": self.ok,
        }
        if self.why:
            row["why"] = self.why
        return row


def compared(value: float, reference: float, *, unit: str, against: str, target: float | None = None) -> Metric:
    """A figure beside its reference, where less is better."""
    if reference <= 0:
        return Metric(value=value, unit=unit, against=against, target=target, why="the reference measured nothing")
    return Metric(value=value, unit=unit, against=against, ratio=value / reference, target=target)


def unmeasured(unit: str, why: str, *, target: float | None = None) -> Metric:
    """A figure that could not be had."""
    return Metric(value=None, unit=unit, target=target, why=why)


def machine() -> dict[str, float | int | str]:
    """Where the figures come from; load is the one-minute average when the report is written."""
    return {
        "cpus": len(os.sched_getaffinity(0)),
        "load": round(os.getloadavg()[0], 2),
        "python": platform.python_version(),
        "commit": _commit(),
    }


def write(name: str, metrics: Mapping[str, Metric], destination: str) -> None:
    """Prints the report (destination "-") or writes it to a file."""
    report = {
        "name": name,
        "machine": machine(),
        "metrics": {key: metric.as_json() for key, metric in metrics.items()},
    }
    text = json.dumps(report, indent=2) + "\n"
    if destination == "-":
        sys.stdout.write(text)
    else:
        Path(destination).write_text(text)


def _rounded(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.4g}")


def _commit() -> str:
    """Short hash of the tree that is measured; "unknown" outside a checkout."""
    root = Path(__file__).resolve().parent.parent
    try:
        done = subprocess.run(
            ["git", "-C", str(root), "rev-parse", "--short", "HEAD"], capture_output=True, text=True, timeout=10
        )
    except (OSError, subprocess.TimeoutExpired):
        return "unknown"
    return done.stdout.strip() if done.returncode == 0 else "unknown"
