"""A script that finds about half of the needles: it guesses without searching, searches another key, or answers the first value."""

import json
import random
from collections.abc import Sequence

from journeyman.records import Task, ToolCall

from .ladder import asked_key
from .tasks import make, read_pairs

GUESSES = 0.5
GUESS_IS_RIGHT = 0.3
WRONG_KEY = 0.25
FORGETS_RESULT = 0.2


class Player:
    """Implements Demonstrator. skill 1.0 plays perfectly."""

    def __init__(self, task: Task, rng: random.Random, skill: float = 0.0) -> None:
        self._pairs = read_pairs(task)
        self._key = asked_key(task)
        self._first = str(next(iter(self._pairs.values())))
        self._rng = rng
        self._skill = skill

    def act(self, observation: str | None) -> ToolCall | str:
        if observation is not None:
            return self._first if self._errs(FORGETS_RESULT) else observation
        if self._errs(GUESSES):
            return str(self._pairs[self._key]) if self._rng.random() < GUESS_IS_RIGHT else self._first
        key = self._rng.choice(tuple(self._pairs)) if self._errs(WRONG_KEY) else self._key
        return ToolCall(name="grep", arguments_json=json.dumps({"key": key}))

    def _errs(self, chance: float) -> bool:
        return self._rng.random() < chance * (1 - self._skill)


def demonstrator(task: Task, rng: random.Random) -> Player:
    """The imperfect script."""
    return Player(task, rng)


def vocabulary_texts() -> Sequence[str]:
    """Prompts and calls."""
    rng = random.Random(0)
    drafts = [make(rng, level) for _ in range(150) for level in (1, 2, 3)]
    return [text for draft in drafts for text in (draft.prompt, f"grep {draft.verification['key']}")]
