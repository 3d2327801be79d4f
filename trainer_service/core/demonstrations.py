"""Data of the cold start: scripted episodes of the domains, and copying exercises. The same for every seed of a run.

A model from nothing learns to copy late, and without copying a tool's answer is of no use to it: so a fifth of the rows are echoes, which
are no task of any domain. All domains have equal shares: more for the hardest one made it no better, and the others worse.
"""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from journeyman.chat.tokenizer import ChatTokenizer
from journeyman.episodes.demonstration import Demonstration, demonstrations
from journeyman.packs.port import DomainPack
from journeyman.records import Message, Role

OBSERVATION_WEIGHT = 0.1
ECHO_SHARE = 0.25
"""Echo rows a demonstration."""
DATA_SEED = 5
_WORDS = [
    "rent",
    "food",
    "fuel",
    "tax",
    "loan",
    "sale",
    "cash",
    "wage",
    "cost",
    "fees",
    "port",
    "host",
    "user",
    "mode",
    "size",
    "rate",
    "time",
    "path",
    "zone",
    "lock",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class SftRow:
    """A conversation to imitate; both sequences share one length."""

    token_ids: list[int]
    weights: list[float]
    """1 for what the assistant says, OBSERVATION_WEIGHT for what tools answer, 0 for prompts and role tokens."""


def sft_rows(packs: Sequence[DomainPack], tokenizer: ChatTokenizer, num_episodes: int) -> list[SftRow]:
    """num_episodes demonstrations over all domains and levels, and ECHO_SHARE as many echoes."""
    rows: list[SftRow] = []
    for pack in packs:
        count = round(num_episodes / len(packs) / len(pack.spec.levels))
        for source in _sources(pack):
            rows += [demonstration_row(shown, tokenizer) for shown in islice(source, count)]
    rng = random.Random(DATA_SEED)
    rows += [echo_row(rng, tokenizer) for _ in range(round(num_episodes * ECHO_SHARE))]
    return rows


def _sources(pack: DomainPack) -> list[Iterator[Demonstration]]:
    return [demonstrations(pack, level, DATA_SEED * 1_000_003) for level in pack.spec.levels]


def demonstration_row(shown: Demonstration, tokenizer: ChatTokenizer) -> SftRow:
    """Tokens and weights of one scripted episode."""
    ids = tokenizer.encode_prompt(shown.messages)
    weights = [0.0] * len(ids)
    for turn in shown.turns:
        said = tokenizer.encode_assistant(turn.text)
        ids += said
        weights += [1.0] * len(said)
        if turn.observation is not None:
            seen = tokenizer.encode_observation(turn.observation)
            ids += seen
            weights += [OBSERVATION_WEIGHT] * (len(seen) - 1) + [0.0]
    return SftRow(token_ids=ids, weights=weights)


def echo_row(rng: random.Random, tokenizer: ChatTokenizer) -> SftRow:
    """`say X` -> `X`, mostly numbers."""
    parts = [
        "".join(rng.choice("0123456789") for _ in range(rng.randint(1, 4)))
        if rng.random() < 0.7
        else rng.choice(_WORDS)
        for _ in range(rng.randint(1, 4))
    ]
    text = " ".join(parts)
    prompt = tokenizer.encode_prompt([Message(role=Role.USER, content=f"say {text}")])
    said = tokenizer.encode_assistant(text)
    return SftRow(token_ids=prompt + said, weights=[0.0] * len(prompt) + [1.0] * len(said))
