"""A small statement with two quarters a row, and a figure to compute from two of its cells. Level n has n + 1 rows.

Only the names of the rows are shown; the values are in table.csv, which the tool reads.
"""

import random
from collections.abc import Iterator

from journeyman.packs.pack import PackIdentity
from journeyman.packs.procedural import Draft, stream, tool
from journeyman.packs.words import WORDS
from journeyman.records import Split, Task, TaskFile

TOOLS = (
    tool("get", "Value of a cell.", row="string", quarter="string"),
    tool("calc", "Computes with + - * and parentheses.", expression="string"),
)
TABLE = "table.csv"
QUARTERS = ("q1", "q2")


def tasks(identity: PackIdentity, split: Split, level: int, seed: int) -> Iterator[Task]:
    """See journeyman.packs.procedural."""
    return stream(identity, split, level, seed, make, TOOLS)


def make(rng: random.Random, level: int) -> Draft:
    """One task."""
    rows = rng.sample(WORDS, level + 1)
    lines = [f"{row},{rng.randint(11, 99)},{rng.randint(11, 99)}" for row in rows]
    operation = rng.choice(("sum", "diff"))
    first, second = rng.sample([(row, quarter) for row in rows for quarter in QUARTERS], 2)
    question = f"{operation} {' '.join(first)} and {' '.join(second)}"
    return Draft(
        prompt=f"table {' '.join(rows)}\n{question}",
        files=(TaskFile(path=TABLE, content=("\n".join(lines) + "\n").encode()),),
        verification={"operation": operation, "cells": [first, second]},
    )


def read_table(task: Task) -> dict[tuple[str, str], int]:
    """Value of each (row, quarter)."""
    text = next(file.content for file in task.files if file.path == TABLE).decode()
    table = {}
    for line in text.splitlines():
        row, *values = line.split(",")
        table.update({(row, quarter): int(value) for quarter, value in zip(QUARTERS, values, strict=True)})
    return table
