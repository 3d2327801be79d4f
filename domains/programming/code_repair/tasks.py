"""Buggy one-line functions. Level 1: wrong operator. Level 2: wrong operator or constant. Level 3: wrong constant, variable, or both.

The prompt shows the function and the first failing test. Inputs are chosen so that this one line tells what is wrong: operator tests
give four different values under the four operators; constants, and the input and value shown with them, are single digits.
"""

import random
from collections.abc import Iterator, Sequence

from journeyman.packs.pack import PackIdentity
from journeyman.packs.procedural import Draft, stream, tool
from journeyman.records import Split, Task, TaskFile

TOOLS = (tool("edit", "Replaces the expression that f returns and runs the tests.", expression="string"),)
OPERATORS = "+-*%"
NUM_SHOWN = 3
"""Tests that the tool runs; the ladder runs these and as many more."""

_FAMILIES = {1: ("operator",), 2: ("operator", "constant"), 3: ("constant", "variable", "both")}
_VARIABLES = "axnk"
_FIRST_INPUTS = {"+": (1, 2), "-": (8, 9)}
"""The edges of the range come first, as in tests that people write; a wrong constant fails there, so this is the line shown."""


def tasks(identity: PackIdentity, split: Split, level: int, seed: int) -> Iterator[Task]:
    """See journeyman.packs.procedural."""
    return stream(identity, split, level, seed, make, TOOLS)


def make(rng: random.Random, level: int) -> Draft:
    """One task."""
    family = rng.choice(_FAMILIES[level])
    return _operator_task(rng) if family == "operator" else _constant_task(rng, family)


def source(parameters: str, expression: str) -> str:
    """The content of solution.py."""
    return f"def f({parameters}): return {expression}\n"


def failing_line(arguments: Sequence[int], expected: int, got: str) -> str:
    """The one line that shows a failing test; got is "got VALUE" or the error."""
    return f"f({','.join(map(str, arguments))})=={expected} {got}"


def apply(operator: str, left: int, right: int) -> int:
    """Value of the operation."""
    return {"+": left + right, "-": left - right, "*": left * right, "%": left % right}[operator]


def _operator_task(rng: random.Random) -> Draft:
    left, right = rng.choice(("ab", "xy", "nk"))
    good, bad = rng.sample(OPERATORS, 2)
    pairs = [(p, q) for p in range(2, 8) for q in range(2, 8) if len({apply(o, p, q) for o in OPERATORS}) == 4]
    inputs = rng.sample(pairs, 2 * NUM_SHOWN)
    cases = [[[p, q], apply(good, p, q)] for p, q in inputs]
    got = f"got {apply(bad, *inputs[0])}"
    return _draft(f"{left},{right}", f"{left}{good}{right}", f"{left}{bad}{right}", cases, got)


def _constant_task(rng: random.Random, family: str) -> Draft:
    name, operator = rng.choice(_VARIABLES), rng.choice("+-")
    good, bad = rng.sample(range(1, 6), 2)
    first = rng.choice(_FIRST_INPUTS[operator])
    inputs = [first, *(rng.randint(1, 9) for _ in range(2 * NUM_SHOWN - 1))]
    cases = [[[x], apply(operator, x, good)] for x in inputs]
    if family == "constant":
        used, constant = name, bad
        got = f"got {apply(operator, inputs[0], bad)}"
    else:
        used, constant = rng.choice(_VARIABLES.replace(name, "")), good if family == "variable" else bad
        got = f"NameError {used}"
    return _draft(name, f"{name}{operator}{good}", f"{used}{operator}{constant}", cases, got)


def _draft(parameters: str, good: str, bug: str, cases: list[list[object]], got: str) -> Draft:
    arguments, expected = cases[0]
    assert isinstance(arguments, list)
    assert isinstance(expected, int)
    broken = source(parameters, bug)
    return Draft(
        prompt=f"code {broken.rstrip()}\n{failing_line(arguments, expected, got)}",
        files=(TaskFile(path="solution.py", content=broken.encode()),),
        verification={"parameters": parameters, "good": good, "bug": bug, "cases": cases},
    )
