"""A few configuration files, one of which holds a value that the check refuses. Level n has n + 1 files; from level 2 on the check does not
say in which file.

Only the file names are shown (and a ticket number, which makes instances differ).
"""

import random
from collections.abc import Iterator

from journeyman.packs.pack import PackIdentity
from journeyman.packs.procedural import Draft, stream, tool
from journeyman.packs.words import FILE_NAMES, WORDS
from journeyman.records import Split, Task, TaskFile

TOOLS = (
    tool("ls", "Names of the files."),
    tool("test", "Runs the check."),
    tool("grep", "Where a key is and its value.", key="string"),
    tool("set", "Sets the value of a key in a file and runs the check.", file="string", key="string", value="integer"),
)
EXPECTED = "expected.txt"
"""What the check wants: file, key, value, and whether it names the file (1 or 0)."""


def tasks(identity: PackIdentity, split: Split, level: int, seed: int) -> Iterator[Task]:
    """See journeyman.packs.procedural."""
    return stream(identity, split, level, seed, make, TOOLS)


def make(rng: random.Random, level: int) -> Draft:
    """One task."""
    names, keys = rng.sample(FILE_NAMES, level + 1), rng.sample(WORDS, level + 1)
    values = [rng.randint(11, 99) for _ in names]
    at = rng.randrange(len(names))
    want = rng.choice([value for value in range(11, 99) if value != values[at]])
    configs = [
        TaskFile(path=f"{name}.cfg", content=f"{key}={value}\n".encode())
        for name, key, value in zip(names, keys, values, strict=True)
    ]
    expected = f"{names[at]} {keys[at]} {want} {int(level == 1)}\n"
    return Draft(
        prompt=f"fix {' '.join(names)} #{rng.randint(100, 999)}",
        files=(*configs, TaskFile(path=EXPECTED, content=expected.encode())),
        verification={"file": names[at], "key": keys[at], "want": want, "files": names, "names_file": level == 1},
    )
