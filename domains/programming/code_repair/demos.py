"""A script that repairs about half of the functions: it gives up, repeats itself, or takes a neighbouring operator or constant."""

import json
import random
from collections.abc import Sequence

from journeyman.records import Task, ToolCall

from .tasks import OPERATORS, make
from .tools import Verification

GIVES_UP = 0.35
REPEATS = 0.08
IS_RIGHT = 0.62


class Player:
    """Implements Demonstrator. skill 1.0 plays perfectly."""

    def __init__(self, task: Task, rng: random.Random, skill: float = 0.0) -> None:
        verification: Verification = json.loads(task.verification_json)
        self._good = verification["good"]
        self._current = verification["bug"]
        self._rng = rng
        self._skill = skill

    def act(self, observation: str | None) -> ToolCall | str:
        draw = 1.0 if self._rng.random() < self._skill else self._rng.random()
        if draw < GIVES_UP:
            return "give up"
        if draw >= GIVES_UP + REPEATS:
            is_right = draw >= 1.0 or self._rng.random() < IS_RIGHT
            self._current = self._good if is_right else self._near_miss()
        return ToolCall(name="edit", arguments_json=json.dumps({"expression": self._current}))

    def _near_miss(self) -> str:
        left, operator, right = self._good[0], self._good[1], self._good[2]
        if right.isdigit():
            return f"{left}{operator}{max(1, min(5, int(right) + self._rng.choice((-1, 1))))}"
        return f"{left}{self._rng.choice(OPERATORS)}{right}"


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
