"""Word problems of one or two operations. Level 1: small numbers. Level 2: two digits. Level 3: two operations."""

import random
from collections.abc import Iterator

from journeyman.packs.pack import PackIdentity
from journeyman.packs.procedural import Draft, stream, tool
from journeyman.packs.words import PEOPLE, WORDS
from journeyman.records import Split, Task

TOOLS = (tool("calc", "Computes with + - * and parentheses.", expression="string"),)
OPERATORS = {"buys": "+", "loses": "-", "times": "*"}


def tasks(identity: PackIdentity, split: Split, level: int, seed: int) -> Iterator[Task]:
    """See journeyman.packs.procedural."""
    return stream(identity, split, level, seed, make, TOOLS)


def make(rng: random.Random, level: int) -> Draft:
    """One task. The expression is gold and script alike; its value is what is asked for."""
    first, second, third = (rng.randint(2, 9) if level == 1 else rng.randint(11, 99) for _ in range(3))
    verb = rng.choice(tuple(OPERATORS))
    expression = f"{first}{OPERATORS[verb]}{second}"
    question = f"math {rng.choice(PEOPLE)} has {first} {rng.choice(WORDS)} {verb} {second}"
    if level == 3:
        verb = rng.choice(("buys", "loses"))
        expression += f"{OPERATORS[verb]}{third}"
        question += f" {verb} {third}"
    return Draft(prompt=question, verification={"expression": expression})
