"""format: solution.py is one function f of arithmetic over names and whole numbers. rule: it is not the broken one. execute: it gives the
right values, in a fresh box, for twice as many cases as the tool shows.

The expected values never enter the box. Nothing but arithmetic gets as far as execution, so a solution can neither look for
answers nor print them.
"""

import ast
import json

from journeyman.packs.calls import calls_of
from journeyman.packs.judgement import fail, solved, undecided
from journeyman.packs.port import Judgement, TierContext
from journeyman.records import Task, Trajectory

from .tools import RUN_CASES, SOLUTION, Verification, read_outcomes

MAX_SOURCE_BYTES = 200
_ALLOWED = (ast.Name, ast.Load, ast.BinOp, ast.UnaryOp, ast.operator, ast.unaryop)


async def check_format(task: Task, trajectory: Trajectory, context: TierContext) -> Judgement:
    """Parses, without running anything."""
    verification: Verification = json.loads(task.verification_json)
    expression = _expression(_solution(trajectory), verification["parameters"])
    if expression is None:
        return fail("format", "no function f of plain arithmetic in solution.py", _partial(trajectory, 0.0))
    return undecided("format", "one function of plain arithmetic")


async def check_rule(task: Task, trajectory: Trajectory, context: TierContext) -> Judgement:
    """An unchanged solution is the known bug."""
    verification: Verification = json.loads(task.verification_json)
    parameters = verification["parameters"]
    written = _expression(_solution(trajectory), parameters)
    broken = _expression(f"def f({parameters}): return {verification['bug']}", parameters)
    if written is None or broken is None or ast.dump(written) == ast.dump(broken):
        return fail("rule", "unchanged", _partial(trajectory, 0.0))
    return undecided("rule", "changed")


async def check_execution(task: Task, trajectory: Trajectory, context: TierContext) -> Judgement:
    """Runs all cases."""
    if context.box is None:
        raise ValueError("code.repair: execute needs a box")
    verification: Verification = json.loads(task.verification_json)
    cases = verification["cases"]
    result = await context.box.run_python(RUN_CASES, [json.dumps([arguments for arguments, _ in cases])])
    outcomes = read_outcomes(cases, result)
    wrong = [outcome.line for outcome in outcomes if not outcome.is_right]
    if not wrong:
        return solved("execute", f"{len(cases)} of {len(cases)} cases")
    share = 1 - len(wrong) / len(cases)
    return fail("execute", wrong[0], _partial(trajectory, share))


TIERS = {"format": check_format, "rule": check_rule, "execute": check_execution}


def _partial(trajectory: Trajectory, share: float) -> float:
    return 0.1 + 0.4 * share if calls_of(trajectory, "edit", "expression") else 0.0


def _solution(trajectory: Trajectory) -> str:
    """Text of the file; empty where there is none that could be read."""
    content = next((file.content for file in trajectory.final_files if file.path == SOLUTION), b"")
    return content.decode("utf-8", "replace") if len(content) <= MAX_SOURCE_BYTES else ""


def _expression(text: str, parameters: str) -> ast.expr | None:
    """What f returns; None where the file is anything else than that one function of arithmetic."""
    try:
        module = ast.parse(text)
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return None
    if len(module.body) != 1 or not isinstance(function := module.body[0], ast.FunctionDef):
        return None
    if function.name != "f" or function.decorator_list or ast.unparse(function.args) != parameters.replace(",", ", "):
        return None
    if len(function.body) != 1 or not isinstance(statement := function.body[0], ast.Return) or not statement.value:
        return None
    return statement.value if all(map(_is_arithmetic, ast.walk(statement.value))) else None


def _is_arithmetic(node: ast.AST) -> bool:
    is_number = isinstance(node, ast.Constant) and type(node.value) is int
    return is_number or isinstance(node, _ALLOWED)
