"""CPU seconds of a process and all below it, by program, sampled while it runs. Called by benchmarks that start other programs.

A child's seconds move to its parent when it is waited for, so summing what is alive (with the children each has waited for) counts
everything once; only a process that lives and is orphaned between two samples is missed.
"""

import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from types import TracebackType

import psutil

INTERVAL_S = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class CpuSample:
    """CPU seconds used so far."""

    at: float
    """Unix time."""
    by_program: Mapping[str, float]


class TreeWatch:
    """Samples from a thread between enter and exit."""

    def __init__(self, pid: int, name: str) -> None:
        self._root = psutil.Process(pid)
        self._name = name
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.samples: list[CpuSample] = []

    def __enter__(self) -> "TreeWatch":
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stop.is_set():
            used = self._used()
            if used:
                self.samples.append(CpuSample(at=time.time(), by_program=used))
            self._stop.wait(INTERVAL_S)

    def _used(self) -> dict[str, float]:
        """By program; empty where the root is gone. Processes that end while they are looked at are their parent's by the next sample."""
        used: dict[str, float] = {}
        names: dict[int, str] = {}
        try:
            tree = [self._root, *self._root.children(recursive=True)]
        except psutil.Error:
            return used
        for process in tree:
            with suppress(psutil.Error):
                name = program(process.cmdline()) or names.get(process.ppid(), self._name)
                names[process.pid] = name
                used[name] = used.get(name, 0.0) + sum(process.cpu_times()[:4])
        return used


def program(command: Sequence[str]) -> str | None:
    """scheduler for `python -m scheduler_service`; None for what belongs to whoever started it."""
    for flag, module in pairwise(command):
        if flag == "-m" and module.endswith("_service"):
            return module.removesuffix("_service")
    return None


def cpu_between(samples: Sequence[CpuSample], start: float, end: float) -> dict[str, float]:
    """CPU seconds by program between two Unix times, from the samples nearest to them."""
    if not samples:
        return {}
    first = min(samples, key=lambda sample: abs(sample.at - start)).by_program
    last = min(samples, key=lambda sample: abs(sample.at - end)).by_program
    return {name: max(0.0, seconds - first.get(name, 0.0)) for name, seconds in last.items()}
