"""Pairs of a key and a value, and one key asked for. Levels 1 to 3 have 3, 6 and 10 pairs."""

import random
from collections.abc import Iterator

from journeyman.packs.pack import PackIdentity
from journeyman.packs.procedural import Draft, stream, tool
from journeyman.packs.words import WORDS
from journeyman.records import Split, Task

TOOLS = (tool("grep", "Value beside a key.", key="string"),)
NUM_PAIRS = {1: 3, 2: 6, 3: 10}


def tasks(identity: PackIdentity, split: Split, level: int, seed: int) -> Iterator[Task]:
    """See journeyman.packs.procedural."""
    return stream(identity, split, level, seed, make, TOOLS)


def make(rng: random.Random, level: int) -> Draft:
    """One task."""
    keys = rng.sample(WORDS, NUM_PAIRS[level])
    key = rng.choice(keys)
    text = " ".join(f"{key} {rng.randint(100, 999)}" for key in keys)
    return Draft(prompt=f"find {text}\nwhat {key}", verification={"key": key})


def read_pairs(task: Task) -> dict[str, int]:
    """The pairs of the prompt, in order."""
    words = task.messages[0].content.split("\n")[0].split()[1:]
    return {key: int(value) for key, value in zip(words[::2], words[1::2], strict=True)}
