"""Curves for the report, out of the journal: one point an optimiser step, or one a sample where time is the axis. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass

from journeyman.quickstart.journal import Entry, JsonValue, Stage


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """Points of one line."""

    x: tuple[float, ...]
    y: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """Everything that is drawn of the training."""

    domains: dict[str, Curve]
    """Success of recent rollouts over RL steps."""
    reward: Curve
    """Mean reward over RL steps."""
    entropy: Curve
    """Entropy of the policy over RL steps, nats."""
    tokens: Curve
    """Tokens sampled a second over seconds of wall time, all stages."""
    slots: dict[str, Curve]
    """Slot-seconds by cause, added up over seconds of wall time while training."""


def build_series(entries: Iterable[Entry]) -> Series:
    """Curves from the samples of all sittings."""
    samples = [entry for entry in entries if entry["kind"] == "sample"]
    training = [entry for entry in samples if entry["stage"] == Stage.RL.value]
    steps = _last_of_each_step(training)
    domain_names = sorted({name for entry in steps for name in _map(entry, "domains")})
    causes = sorted({name for entry in training for name in _map(entry, "slot_seconds")})
    return Series(
        domains={
            name: _curve((_float(e["done"]), _map(e, "domains").get(name)) for e in steps) for name in domain_names
        },
        reward=_curve((_float(e["done"]), _first(e, "reward", "mean_reward", "reward_mean")) for e in steps),
        entropy=_curve((_float(e["done"]), _first(e, "entropy")) for e in steps),
        tokens=_over_time(samples, "tokens_per_s"),
        slots={cause: _slot_curve(training, cause) for cause in causes},
    )


def _last_of_each_step(training: list[Entry]) -> list[Entry]:
    by_step = {_float(entry["done"]): entry for entry in training if _float(entry["done"]) > 0}
    return [by_step[step] for step in sorted(by_step)]


def _first(entry: Entry, *names: str) -> JsonValue:
    metrics = _map(entry, "metrics")
    return next((metrics[name] for name in names if name in metrics), entry.get(names[0]))


def _over_time(samples: list[Entry], name: str) -> Curve:
    if not samples:
        return Curve(x=(), y=())
    began = _float(samples[0]["at"])
    return _curve((_float(entry["at"]) - began, entry.get(name)) for entry in samples)


def _slot_curve(training: list[Entry], cause: str) -> Curve:
    first = _map(training[0], "slot_seconds").get(cause, 0.0)
    began = _float(training[0]["at"])
    spent = ((_float(e["at"]) - began, _map(e, "slot_seconds").get(cause, 0.0)) for e in training)
    return _curve((at, _float(value) - _float(first)) for at, value in spent)


def _curve(points: Iterable[tuple[float, JsonValue]]) -> Curve:
    kept = [(x, float(y)) for x, y in points if isinstance(y, (int, float))]
    return Curve(x=tuple(x for x, _ in kept), y=tuple(y for _, y in kept))


def _map(entry: Entry, name: str) -> dict[str, JsonValue]:
    value = entry.get(name)
    return value if isinstance(value, dict) else {}


def _float(value: JsonValue) -> float:
    return float(value) if isinstance(value, (int, float)) else 0.0
