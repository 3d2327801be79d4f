"""A script that mends a bit more than half: random commands, guessed files, wrong values, giving up."""

import json
import random
from collections.abc import Sequence

from journeyman.packs.words import WORDS
from journeyman.records import Task, ToolCall

from .tasks import make
from .tools import read_verification

GIVES_UP = 0.1
WANDERS = 0.2
SKIPS_SEARCH = 0.25
WRONG_VALUE = 0.25


class Player:
    """Implements Demonstrator. skill 1.0 plays perfectly."""

    def __init__(self, task: Task, rng: random.Random, skill: float = 0.0) -> None:
        self._wanted = read_verification(task)
        self._has_tested = False
        self._has_found = self._wanted["names_file"]
        self._rng = rng
        self._skill = skill

    def act(self, observation: str | None) -> ToolCall | str:
        if self._errs(GIVES_UP):
            return "give up"
        if self._errs(WANDERS):
            return self._wander()
        if not self._has_tested:
            self._has_tested = True
            return _call("test")
        if not self._has_found and not self._errs(SKIPS_SEARCH):
            self._has_found = True
            return _call("grep", key=self._wanted["key"])
        name = self._wanted["file"] if self._has_found else self._rng.choice(self._wanted["files"])
        value = self._rng.randint(11, 99) if self._errs(WRONG_VALUE) else self._wanted["want"]
        return _call("set", file=name, key=self._wanted["key"], value=value)

    def _wander(self) -> ToolCall:
        verb = self._rng.choice(("ls", "test", "grep", "set"))
        self._has_tested |= verb == "test"
        if verb == "grep":
            return _call("grep", key=self._rng.choice(WORDS))
        if verb == "set":
            name, key = self._rng.choice(self._wanted["files"]), self._rng.choice(WORDS)
            return _call("set", file=name, key=key, value=self._rng.randint(11, 99))
        return _call(verb)

    def _errs(self, chance: float) -> bool:
        return self._rng.random() < chance * (1 - self._skill)


def _call(name: str, **arguments: str | int) -> ToolCall:
    return ToolCall(name=name, arguments_json=json.dumps(arguments))


def demonstrator(task: Task, rng: random.Random) -> Player:
    """The imperfect script."""
    return Player(task, rng)


def vocabulary_texts() -> Sequence[str]:
    """Prompts, calls and observations."""
    rng = random.Random(0)
    texts = []
    for draft in [make(rng, level) for _ in range(150) for level in (1, 2, 3)]:
        name, key, want = (draft.verification[part] for part in ("file", "key", "want"))
        texts += [draft.prompt, "test", "ls", f"grep {key}", f"set {name} {key} {want}", f"{name} {key} {want}"]
        texts += [f"fail {key} want {want} in {name}", f"fail {key} want {want}", "none", "no key", "give up"]
    return texts
