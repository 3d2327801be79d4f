"""The recipe of a quickstart: what to train and how much. TOML, stored as DIR/run.toml before anything else and read on resume.

Called by the command and the pipeline. Unknown keys are errors that name the nearest right key; nothing here is about deployment.
"""

import difflib
import json
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from journeyman.errors import ErrorCode, JourneymanError

SIX_DOMAINS = (
    "code.repair",
    "documents.figure",
    "geometry.mesh",
    "longcontext.retrieval",
    "math.tool",
    "terminal.shell",
)

Count = Annotated[int, Field(ge=1)]
Share = Annotated[float, Field(ge=0, le=1)]
Positive = Annotated[float, Field(gt=0)]
NotNegative = Annotated[float, Field(ge=0)]


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class ColdStart(_Section):
    """Supervised fine-tuning on imperfect demonstrations."""

    num_steps: Count = 1200
    num_episodes: Count = 16000
    checkpoint_every: Count = 100
    """Optimiser steps."""


class Reinforcement(_Section):
    """Reinforcement learning over all domains at once."""

    num_steps: Count = 60
    group_size: Annotated[int, Field(ge=2)] = 16
    """Rollouts of one task."""
    groups_per_step: Count = 12
    min_groups: Count = 6
    """Groups that are enough for a step after max_wait_s."""
    max_wait_s: Positive = 1.5
    admission_slots: Count = 15
    """Groups in flight at most."""
    min_graded: Annotated[int, Field(ge=2)] = 2
    """Graded members that a group needs."""
    max_off_policy_steps: Annotated[int, Field(ge=0)] = 1
    learning_rate: Positive = 1e-3
    checkpoint_every: Count = 5
    """Optimiser steps."""
    retry_budget: Annotated[int, Field(ge=0)] = 3
    """Leases that a rollout may lose to infrastructure."""
    lease_s: Annotated[float, Field(ge=1, le=3600)] = 60.0
    temperature: Positive = 1.0


class Evaluation(_Section):
    """Held-out tasks before and after, and the gate between."""

    tasks_per_domain: Count = 120
    temperature: NotNegative = 1.0
    """0 means greedy."""
    margin: Share = 0.05
    """Loss of success that the gate still accepts."""
    alpha: Annotated[float, Field(gt=0, lt=1)] = 0.05
    """Family-wise error of the gate over all domains."""


class Recipe(_Section):
    """Everything that decides what a quickstart does, apart from where and for how long."""

    seed: Annotated[int, Field(ge=0, lt=2**31)] = 0
    domains: Annotated[tuple[str, ...], Field(min_length=1, strict=False)] = SIX_DOMAINS
    model: str = ""
    """Hugging Face folder to start from; empty means make a tiny model."""
    cold_start: ColdStart = ColdStart()
    rl: Reinforcement = Reinforcement()
    evaluation: Evaluation = Evaluation()


SMOKE = Recipe(
    cold_start=ColdStart(num_steps=60, num_episodes=600, checkpoint_every=30),
    rl=Reinforcement(
        num_steps=3,
        group_size=4,
        groups_per_step=4,
        min_groups=1,
        admission_slots=8,
        checkpoint_every=1,
        max_wait_s=1.0,
    ),
    evaluation=Evaluation(tasks_per_domain=6),
)
"""The same loop with everything tiny: it shows that the parts work together, not that anything is learned."""


def read_recipe(path: Path, base: Recipe) -> Recipe:
    """The recipe in a TOML file; keys it leaves out are taken from base. INVALID_INPUT names the file, the key and the right one."""
    try:
        text = path.read_text("utf-8")
        loaded = tomllib.loads(text)
    except OSError as error:
        raise _bad(f"{path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise _bad(f"{path} is not UTF-8 text") from error
    except tomllib.TOMLDecodeError as error:
        raise _bad(f"{path} is not valid TOML: {error}") from error
    return build_recipe(_overlay(base.model_dump(), loaded), str(path))


def build_recipe(values: Mapping[str, object], source: str) -> Recipe:
    """Checks values; the first problem is told in one line that begins with source."""
    try:
        return Recipe.model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
        where = tuple(str(part) for part in first["loc"])
        if first["type"] == "extra_forbidden":
            raise _bad(f"{source}: unknown key {'.'.join(where)}; {_nearest(where)}") from error
        raise _bad(f"{source}: {'.'.join(where)} = {first['input']!r}: {first['msg']}") from error


def to_toml(recipe: Recipe) -> str:
    """The recipe as TOML with every key written out."""
    lines: list[str] = []
    tables: list[str] = []
    for key, value in recipe.model_dump().items():
        if isinstance(value, dict):
            tables.append(f"\n[{key}]\n" + "\n".join(f"{name} = {_toml(inner)}" for name, inner in value.items()))
        else:
            lines.append(f"{key} = {_toml(value)}")
    return "\n".join(lines + tables) + "\n"


def _toml(value: object) -> str:
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_toml(item) for item in value) + "]"
    if isinstance(value, float):
        return repr(value)
    # Strings and integers are written alike in JSON and TOML, but for one character that TOML wants escaped.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _overlay(below: Mapping[str, object], above: Mapping[str, object]) -> dict[str, object]:
    merged = dict(below)
    for key, value in above.items():
        old = merged.get(key)
        merged[key] = _overlay(old, value) if isinstance(old, dict) and isinstance(value, dict) else value
    return merged


def _nearest(where: tuple[str, ...]) -> str:
    section: type[BaseModel] = Recipe
    for part in where[:-1]:
        inner = section.model_fields[part].annotation
        if not (isinstance(inner, type) and issubclass(inner, BaseModel)):
            break
        section = inner
    keys = list(section.model_fields)
    close = difflib.get_close_matches(where[-1], keys, n=1, cutoff=0.0)
    return f"did you mean {'.'.join((*where[:-1], close[0]))}?" if close else f"known keys: {', '.join(keys)}"


def _bad(message: str) -> JourneymanError:
    return JourneymanError(ErrorCode.INVALID_INPUT, message)
