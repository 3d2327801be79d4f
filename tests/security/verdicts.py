"""What came of every attack on one kind of isolation: runs storm.py in throw-away namespaces. Used by the tests and by table.py."""

import functools
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from tests.security.throwaway import COMMAND

ROOT = Path(__file__).parents[2]
ISOLATIONS = ("ns-root", "ns-rootless", "bwrap", "runsc", "weak")
UNCONTAINED = "uncontained"
_WITHIN_S = 400.0


class Verdict(StrEnum):
    """In the words of the table."""

    CONTAINED = "contained"
    THROUGH = "**gets through**"
    UNKNOWN = "?"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One attack."""

    loot: str
    ending: str
    error: str

    @property
    def verdict(self) -> Verdict:
        """UNKNOWN where it could not be carried out."""
        if self.error:
            return Verdict.UNKNOWN
        return Verdict.THROUGH if self.loot else Verdict.CONTAINED


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdicts:
    """All attacks on one kind of isolation."""

    not_here: str
    """Why this kind cannot be had; empty where it can."""
    enforced: frozenset[str]
    rows: Mapping[str, Row]


@functools.cache
def verdicts_of(isolation: str) -> Verdicts:
    """Once in the life of this process. RuntimeError where the storm itself fails."""
    with tempfile.TemporaryDirectory(prefix="attacks-") as folder:
        command = [*COMMAND, sys.executable, "-m", "tests.security.storm", isolation, folder]
        environment = os.environ | {"PYTHONPATH": str(ROOT)}
        done = subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=_WITHIN_S
        )
    if done.returncode != 0:
        raise RuntimeError(f"{isolation}: {done.stderr[-2000:]}")
    told = [json.loads(line) for line in done.stdout.splitlines()]
    return Verdicts(
        not_here=next((line["not_here"] for line in told if "not_here" in line), ""),
        enforced=frozenset(word for line in told for word in line.get("enforced", ())),
        rows={
            line["name"]: Row(loot=line["loot"], ending=line["ending"], error=line["error"])
            for line in told
            if "name" in line
        },
    )


def no_namespaces() -> str:
    """Why there are no throw-away namespaces here; empty where there are."""
    probe = subprocess.run([*COMMAND, "true"], capture_output=True, text=True, check=False)
    return "" if probe.returncode == 0 else probe.stderr.strip() or f"code {probe.returncode}"
