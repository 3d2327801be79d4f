"""Turns a pack's `make(rng, level)` into endless, repeatable task streams whose train and held-out pools never meet.

Called by tasks.py of generated domains. Instance i of seed s is instance 0 of seed s + i, so a task's id names it completely. An
instance is held out when the digest of its opening text is divisible by five: equal prompts are always in the same pool.
"""

import hashlib
import json
import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import count

from journeyman.packs.pack import PackIdentity
from journeyman.records import Message, Role, Split, Task, TaskFile, ToolSpec

HELDOUT_SHARE = 5
"""One in so many instances is held out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """What a generator decides about a task; the rest follows from the pack and the seed."""

    prompt: str
    verification: Mapping[str, object]
    """Becomes verification_json."""
    files: tuple[TaskFile, ...] = ()


def stream(
    identity: PackIdentity,
    split: Split,
    level: int,
    seed: int,
    make: Callable[[random.Random, int], Draft],
    tools: tuple[ToolSpec, ...],
) -> Iterator[Task]:
    """The tasks of one level and pool, from the given seed on."""
    for instance_seed in count(seed):
        rng = random.Random(f"{identity.spec.name}/{level}/{instance_seed}")
        draft = make(rng, level)
        while pool(draft.prompt) is not split:
            draft = make(rng, level)
        yield Task(
            task_id=f"{identity.spec.name}/{split}/{level}/{instance_seed}",
            domain=identity.spec.name,
            domain_ref=identity.ref,
            split=split,
            level=level,
            seed=instance_seed,
            messages=(Message(role=Role.USER, content=draft.prompt),),
            tools=tools,
            files=draft.files,
            limits=identity.spec.limits,
            verification_json=json.dumps(draft.verification),
        )


def pool(prompt: str) -> Split:
    """Which pool an opening text belongs to."""
    is_heldout = hashlib.sha256(prompt.encode()).digest()[0] % HELDOUT_SHARE == 0
    return Split.HELDOUT if is_heldout else Split.TRAIN


def tool(name: str, description: str, **arguments: str) -> ToolSpec:
    """A tool whose arguments are given in positional order with their JSON types."""
    properties = {argument: {"type": kind} for argument, kind in arguments.items()}
    schema = {"type": "object", "properties": properties, "required": list(properties)}
    return ToolSpec(name=name, description=description, parameters_json=json.dumps(schema))
