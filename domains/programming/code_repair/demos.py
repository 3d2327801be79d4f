"""A script that repairs about half of the functions: it gives up, or tries one operator or constant after another."""

import json
import random
from collections.abc import Sequence

from journeyman.records import Task, ToolCall

from .tasks import OPERATORS, make
from .tools import Verification

GIVES_UP = 0.42
IS_RIGHT = 0.4
"""Of an edit. Low, so that demonstrations show how a search goes on after a miss."""


class Player:
    """Implements Demonstrator. skill 1.0 plays perfectly."""

    def __init__(self, task: Task, rng: random.Random, skill: float = 0.0) -> None:
        verification: Verification = json.loads(task.verification_json)
        self._good = verification["good"]
        self._tried = {verification["bug"]}
        self._rng = rng
        self._skill = skill

    def act(self, observation: str | None) -> ToolCall | str:
        draw = 1.0 if self._rng.random() < self._skill else self._rng.random()
        if draw < GIVES_UP:
            return "give up"
        is_right = draw >= 1.0 or self._rng.random() < IS_RIGHT
        expression = self._good if is_right else self._near_miss()
        self._tried.add(expression)
        return ToolCall(name="edit", arguments_json=json.dumps({"expression": expression}))

    def _near_miss(self) -> str:
        """An expression of the same form that is wrong and was not tried yet: a model that has learnt to repeat itself is slow to unlearn it."""
        left, operator, right = self._good[0], self._good[1], self._good[2]
        constants = [f"{left}{operator}{constant}" for constant in range(1, 6)]
        operators = [f"{left}{other}{right}" for other in OPERATORS]
        near = constants if right.isdigit() else operators
        untried = [expression for expression in near if expression not in {self._good, *self._tried}]
        return self._rng.choice(untried or [self._good])


def demonstrator(task: Task, rng: random.Random) -> Player:
    """The imperfect script."""
    return Player(task, rng)


def vocabulary_texts() -> Sequence[str]:
    """Prompts, calls and observations."""
    rng = random.Random(0)
    drafts = [make(rng, level) for _ in range(150) for level in (1, 2, 3)]
    texts = [draft.prompt for draft in drafts]
    for draft in drafts:
        texts += [f"edit {draft.verification['good']}", draft.prompt.split("\n")[1], "give up"]
    return texts
