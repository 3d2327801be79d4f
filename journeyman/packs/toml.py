"""Reads domain.toml into a DomainSpec; every fault is one INVALID_INPUT line naming the file and the key. Called by load."""

import tomllib
from collections.abc import Mapping
from pathlib import Path

from journeyman.errors import ErrorCode, JourneymanError
from journeyman.packs.port import DomainSpec, RewardRule
from journeyman.records import Limits

_TOP = {
    "name": str,
    "version": int,
    "family": str,
    "summary": str,
    "levels": list,
    "uses_box": bool,
    "outcome_files": list,
    "tiers": list,
    "observation_chars": int,
    "limits": dict,
    "reward": dict,
}
_KINDS = {
    str: "a string",
    int: "an integer",
    float: "a number",
    bool: "true or false",
    list: "an array",
    dict: "a table",
}
_LIMITS = {"max_turns": int, "max_turn_tokens": int, "max_tokens": int, "tool_cpu_s": float}
_REWARD = {"turn_cost": float, "partial_weight": float, "all_failed_trains": bool}


def read_spec(path: Path) -> DomainSpec:
    """The spec in the file."""
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise JourneymanError(ErrorCode.INVALID_INPUT, f"{path}: {error}") from error
    _check(path, "", document, _TOP)
    _check(path, "limits.", document["limits"], _LIMITS)
    _check(path, "reward.", document["reward"], _REWARD)
    return DomainSpec(
        name=document["name"],
        version=document["version"],
        family=document["family"],
        summary=document["summary"],
        levels=tuple(int(level) for level in document["levels"]),
        limits=Limits(**document["limits"]),
        uses_box=document["uses_box"],
        outcome_files=tuple(str(name) for name in document["outcome_files"]),
        reward=RewardRule(**document["reward"]),
        tiers=tuple(str(tier) for tier in document["tiers"]),
        observation_chars=document["observation_chars"],
    )


def _check(path: Path, prefix: str, table: dict[str, object], wanted: Mapping[str, type]) -> None:
    for key in table:
        if key not in wanted:
            raise JourneymanError(
                ErrorCode.INVALID_INPUT, f"{path}: unknown key {prefix}{key}; known: {sorted(wanted)}"
            )
    for key, kind in wanted.items():
        value = table.get(key)
        is_whole_float = kind is float and type(value) is int
        if type(value) is not kind and not is_whole_float:
            raise JourneymanError(ErrorCode.INVALID_INPUT, f"{path}: {prefix}{key} must be {_KINDS[kind]}")
