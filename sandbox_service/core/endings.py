"""How a program ended, in one word, from what its watcher and the kernel's counters saw. Pure; called by adapters.linked_box.

An ending that is evidence about the program is never INFRA_ERROR, and none of the facts that a program can forge leads there.
"""

import signal
from dataclasses import dataclass

from journeyman.boxes.port import Ending

_SHELL_SAYS_KILLED = 128 + signal.SIGKILL
_NOTES = {1: Ending.OUT_OF_MEMORY, 2: Ending.DISK_FULL, 3: Ending.TOO_MANY_PROCESSES}


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFacts:
    """What was seen."""

    exit_code: int
    """0 where a signal ended it."""
    signal: int
    """0 where it exited."""
    killed_for: str
    """wall | cpu | output | caller: why its watcher killed it; empty where it did not."""
    note: int
    """Which limit the exception that ended a Python program speaks of: 1 memory, 2 disk, 3 processes, else none."""
    is_full: bool
    """Whether the box's disk or inodes were used up at its end."""
    truncated: bool
    num_oom_kills: int = 0
    """During the run, in the whole box."""
    num_fork_refusals: int = 0

    @property
    def has_failed(self) -> bool:
        """It did not exit with 0."""
        return self.exit_code != 0 or self.signal != 0

    @property
    def calls_for_counters(self) -> bool:
        """Whether the kernel's counters may explain it: asking for them costs, so ordinary failures do not."""
        return bool(self.killed_for or self.signal or self.exit_code == _SHELL_SAYS_KILLED)


def explain(facts: RunFacts) -> Ending:
    """The ending."""
    if facts.killed_for == "output" or facts.truncated:
        return Ending.OUTPUT_LIMIT
    if facts.killed_for == "caller":
        return Ending.KILLED_BY_CALLER
    if not facts.has_failed:
        return Ending.EXITED
    if facts.num_oom_kills:
        return Ending.OUT_OF_MEMORY
    if facts.num_fork_refusals:
        return Ending.TOO_MANY_PROCESSES
    if facts.killed_for == "cpu" or facts.signal == signal.SIGXCPU:
        return Ending.CPU_TIMEOUT
    if facts.killed_for == "wall":
        return Ending.WALL_TIMEOUT
    if facts.note in _NOTES:
        return _NOTES[facts.note]
    if facts.is_full or facts.signal == signal.SIGXFSZ:
        return Ending.DISK_FULL
    return Ending.SIGNALLED if facts.signal else Ending.EXITED
