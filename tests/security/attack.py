"""What an attack is and what it meets: a cell on a scene. An attack that brings loot home got through; a contained one brings none.

The same attacks run in boxes (boxed.py) and, as their positive control, uncontained (uncontained.py). Both give Cells.
"""

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from textwrap import dedent
from typing import Protocol

SECRET = "the-host-is-here"
LOST = frozenset({"infra_error", "watcher_lost"})
"""Endings that say that the program broke its watcher."""
RAN_ON = "ran_on"
"""Ending of a program that its control's watcher asked to end, in vain."""
PROGRAM_S, PROGRAM_CPU_S = 15.0, 1.0

PRELUDE = """
import ctypes, errno, glob, json, os, signal, socket, struct, sys, time
H = json.loads(sys.argv[1])
libc = ctypes.CDLL(None, use_errno=True)
def call(x86, arm, *args):
    machine = os.uname().machine
    number = {'x86_64': x86, 'aarch64': arm}.get(machine)
    return -1 if number is None else libc.syscall(ctypes.c_long(number), *(ctypes.c_long(a) if isinstance(a, int) else a for a in args))
def say(*words): os.write(1, (' '.join(map(str, words)) + '\\n').encode())
"""


class Kind(StrEnum):
    """Kinds of attack, in the order of the table."""

    RESOURCES = "Using up what the machine has"
    TIME = "Outliving one's time"
    HOST = "Reaching the host"
    KERNEL = "Reaching into the kernel"
    FILES = "Turning the file interface against its caller"
    BOXES = "Reaching another box"
    INTERPRETER = "Turning the warm interpreter against its next program"


@dataclass(frozen=True, slots=True, kw_only=True)
class HostFacts:
    """What there is to find outside. Programs read it as H."""

    witness: str
    """A file of the host's that holds SECRET."""
    folder: str
    """A folder of the host's, open to everybody."""
    tcp_port: int
    udp_port: int
    """Both on the host's loopback."""
    abstract: str
    """Name of an abstract socket of the host's, without its first byte."""
    socket_path: str
    victim_pid: int
    """A process of the host's."""
    secret: str = SECRET
    """In the environment of the process that makes boxes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """How a program ended."""

    ending: str
    stdout: str
    stderr: str


class Refused(Exception):
    """The cell or its maker said no, politely."""


class Hanging(Exception):
    """Whoever was asked does not answer any more."""


class Cell(Protocol):
    """Where a program runs."""

    async def run(self, source: str, timeout_s: float = PROGRAM_S, cpu_s: float | None = None) -> Seen:
        """Python source, after PRELUDE. cpu_s None: enough for attacks that are not about it."""
        ...

    async def command(self, argv: Sequence[str]) -> Seen:
        """A program with its arguments."""
        ...

    async def write(self, files: Mapping[str, bytes]) -> None:
        """Through the file interface."""
        ...

    async def read(self, paths: Sequence[str]) -> dict[str, bytes]:
        """Through the file interface."""
        ...

    async def fork(self) -> "Cell":
        """Another with the same files."""
        ...


class Scene(Protocol):
    """Everything an attack meets."""

    host: HostFacts
    cell: Cell

    async def open(self, lease_s: float = 300.0) -> Cell:
        """Another cell. Refused where there are enough."""
        ...

    def datagrams(self) -> list[str]:
        """What came to the host's UDP port."""
        ...

    async def victim_lives(self) -> bool:
        """Whether the host's process is untouched."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What came of an attack."""

    loot: str
    """Evidence that it got through; empty where it did not."""
    ending: str = "exited"


Plan = Callable[[Scene], Awaitable[Outcome]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Attack:
    """One attack."""

    name: str
    kind: Kind
    what: str
    """One line for the table."""
    plan: Plan
    endings: frozenset[str]
    """How it may end where boxes are made of namespaces; empty for any way."""
    needs: str = ""
    """The limit (GetCapabilities' word) without which it gets through."""
    shares_interpreter: bool = False
    """Whether its control runs programs one after another in one interpreter."""
    alone: bool = False
    """Whether no other attack may run meanwhile."""


def loot_of(seen: Seen) -> str:
    """What a program printed, and harm to its watcher."""
    if seen.ending in LOST or seen.ending == RAN_ON:
        return f"{seen.stdout.strip()} [{seen.ending}]".strip()
    return seen.stdout.strip()


def facts_json(host: HostFacts) -> str:
    """What programs get as their first argument."""
    return json.dumps(asdict(host))


def host_file(scene: Scene, name: str) -> Path:
    """A file in the host's open folder."""
    return Path(scene.host.folder, name)


def of_program(
    kind: Kind,
    name: str,
    what: str,
    source: str,
    *,
    endings: Sequence[str] = ("exited",),
    needs: str = "",
    timeout_s: float = PROGRAM_S,
    cpu_s: float | None = None,
) -> Attack:
    """An attack by one program; what it prints is its loot."""
    text = dedent(source)

    async def plan(scene: Scene) -> Outcome:
        seen = await scene.cell.run(text, timeout_s, cpu_s)
        return Outcome(loot=loot_of(seen), ending=seen.ending)

    return Attack(name=name, kind=kind, what=what, plan=plan, endings=frozenset(endings), needs=needs)


def of_plan(
    kind: Kind,
    what: str,
    *,
    endings: Sequence[str] = ("exited",),
    needs: str = "",
    shares_interpreter: bool = False,
    alone: bool = False,
) -> Callable[[Plan], Attack]:
    """An attack by several steps, named like the function that takes them."""

    def made(plan: Plan) -> Attack:
        return Attack(
            name=getattr(plan, "__name__", ""),
            kind=kind,
            what=what,
            plan=plan,
            endings=frozenset(endings),
            needs=needs,
            shares_interpreter=shares_interpreter,
            alone=alone,
        )

    return made
