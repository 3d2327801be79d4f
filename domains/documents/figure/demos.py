"""A script that gets about a third right: wrong column, swapped operands, wrong operator, or an early answer."""

import json
import random
from collections.abc import Sequence

from journeyman.records import Task, ToolCall

from .ladder import asked_cells
from .tasks import make

ANSWERS_EARLY = 0.13
WRONG_COLUMN = 0.12
SWAPS = 0.15
WRONG_OPERATOR = 0.10
FORGETS_RESULT = 0.15


class Player:
    """Implements Demonstrator. skill 1.0 plays perfectly."""

    def __init__(self, task: Task, rng: random.Random, skill: float = 0.0) -> None:
        self._cells = asked_cells(task)
        self._is_sum = json.loads(task.verification_json)["operation"] == "sum"
        self._seen: list[str] = []
        self._rng = rng
        self._skill = skill

    def act(self, observation: str | None) -> ToolCall | str:
        if observation is not None:
            self._seen.append(observation)
        if len(self._seen) > len(self._cells):
            return self._seen[0] if self._errs(FORGETS_RESULT) else self._seen[-1]
        if self._errs(ANSWERS_EARLY):
            return self._seen[-1] if self._seen else str(self._rng.randint(11, 99))
        if len(self._seen) < len(self._cells):
            row, quarter = self._cells[len(self._seen)]
            if self._errs(WRONG_COLUMN):
                quarter = "q1" if quarter == "q2" else "q2"
            return ToolCall(name="get", arguments_json=json.dumps({"row": row, "quarter": quarter}))
        return ToolCall(name="calc", arguments_json=json.dumps({"expression": self._expression()}))

    def _expression(self) -> str:
        first, second = reversed(self._seen) if self._errs(SWAPS) else self._seen
        is_sum = self._is_sum != self._errs(WRONG_OPERATOR)
        return f"{first}{'+' if is_sum else '-'}{second}"

    def _errs(self, chance: float) -> bool:
        return self._rng.random() < chance * (1 - self._skill)


def demonstrator(task: Task, rng: random.Random) -> Player:
    """The imperfect script."""
    return Player(task, rng)


def vocabulary_texts() -> Sequence[str]:
    """Prompts, calls and observations."""
    rng = random.Random(0)
    texts = []
    for draft in [make(rng, level) for _ in range(150) for level in (1, 2, 3)]:
        cells = draft.prompt.split("\n")[1].split(" ", 1)[1].split(" and ")
        texts += [draft.prompt, *(f"get {cell}" for cell in cells), f"calc {rng.randint(11, 99)}-{rng.randint(11, 99)}"]
    return texts
