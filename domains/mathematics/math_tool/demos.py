"""A script that answers about a third: it often answers with the first number, uses a wrong operator, or forgets the result."""

import json
import random
import re
from collections.abc import Sequence

from journeyman.records import Task, ToolCall

from .tasks import make

GUESSES = 0.45
CONFUSES_OPERATORS = 0.35
FORGETS_RESULT = 0.15


class Player:
    """Implements Demonstrator. skill 1.0 plays perfectly."""

    def __init__(self, task: Task, rng: random.Random, skill: float = 0.0) -> None:
        self._expression: str = json.loads(task.verification_json)["expression"]
        self._first = re.split(r"\D", self._expression)[0]
        self._rng = rng
        self._skill = skill

    def act(self, observation: str | None) -> ToolCall | str:
        if observation is not None:
            return self._first if self._errs(FORGETS_RESULT) else observation
        if self._errs(GUESSES):
            return self._first
        expression = self._expression
        if self._errs(CONFUSES_OPERATORS):
            expression = expression.translate(str.maketrans("+-*", self._rng.choice(("-+*", "*-+", "+*-"))))
        return ToolCall(name="calc", arguments_json=json.dumps({"expression": expression}))

    def _errs(self, chance: float) -> bool:
        return self._rng.random() < chance * (1 - self._skill)


def demonstrator(task: Task, rng: random.Random) -> Player:
    """The imperfect script."""
    return Player(task, rng)


def vocabulary_texts() -> Sequence[str]:
    """Prompts, calls and answers."""
    rng = random.Random(0)
    drafts = [make(rng, level) for _ in range(150) for level in (1, 2, 3)]
    return [text for draft in drafts for text in (draft.prompt, f"calc {draft.verification['expression']}")]
