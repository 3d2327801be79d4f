"""A script that closes about half of the meshes: it tries faces before looking, winds them the wrong way, or gives up."""

import json
import random
from collections.abc import Sequence

from journeyman.records import Task, ToolCall

from .obj import Face, read_obj
from .tasks import face_text, make, rotate

LOOKS_FIRST = 0.6
GIVES_UP = 0.15
RIGHT_AFTER_LOOKING = 0.5
RIGHT_WITHOUT = 0.15
FLIPS = 0.25


class Player:
    """Implements Demonstrator. skill 1.0 plays perfectly."""

    def __init__(self, task: Task, rng: random.Random, skill: float = 0.0) -> None:
        a, b, c = json.loads(task.verification_json)["missing"]
        self._missing: Face = (a, b, c)
        mesh = read_obj(task.files[0].content)
        self._num_vertices = len(mesh.vertices) if mesh else 0
        self._has_looked = False
        self._rng = rng
        self._skill = skill

    def act(self, observation: str | None) -> ToolCall | str:
        is_perfect = self._rng.random() < self._skill
        draw = self._rng.random()
        if not self._has_looked and (is_perfect or draw < LOOKS_FIRST):
            self._has_looked = True
            return ToolCall(name="check", arguments_json="{}")
        if not is_perfect and draw > 1 - GIVES_UP:
            return "give up"
        face = self._face(is_perfect)
        return ToolCall(name="face", arguments_json=json.dumps({"vertices": face_text(face)}))

    def _face(self, is_perfect: bool) -> Face:
        """After looking, faces start at their smallest label: one habit is easier to learn than three."""
        start = self._missing.index(min(self._missing)) if self._has_looked else self._rng.randrange(3)
        a, b, c = rotate(self._missing, start)
        draw = self._rng.random()
        right = 1.0 if is_perfect else RIGHT_AFTER_LOOKING if self._has_looked else RIGHT_WITHOUT
        if draw < right:
            return a, b, c
        if draw < right + FLIPS:
            return a, c, b
        x, y, z = self._rng.sample(range(1, self._num_vertices + 1), 3)
        return x, y, z


def demonstrator(task: Task, rng: random.Random) -> Player:
    """The imperfect script."""
    return Player(task, rng)


def vocabulary_texts() -> Sequence[str]:
    """Prompts, calls and observations."""
    rng = random.Random(0)
    texts = []
    for draft in [make(rng, level) for _ in range(150) for level in (1, 2, 3)]:
        face = draft.prompt.split()[-1]
        texts += [draft.prompt, f"face {face}", "check", "flipped", "overlap", f"open {face[:2]} {face[1:]}"]
    return texts
