"""Advantages: a rollout's reward against its group, brought to one scale a domain. Excluded rollouts never come here."""

import math
from collections import defaultdict
from collections.abc import Sequence

DOMAIN_FLOOR = 0.1
"""Added to a domain's root mean square, so that a nearly solved domain's last failures do not explode."""


def centred(rewards_G: Sequence[float]) -> list[float]:
    """Rewards of one group minus their mean (GRPO without the division by the deviation, as in Dr. GRPO); sums to 0."""
    mean = sum(rewards_G) / len(rewards_G)
    return [reward - mean for reward in rewards_G]


def by_domain(groups: Sequence[tuple[str, Sequence[float]]]) -> list[list[float]]:
    """Advantages of (domain, rewards) groups: centred in the group, divided by the domain's root mean square + DOMAIN_FLOOR."""
    raw = [centred(rewards) for _, rewards in groups]
    squares: dict[str, list[float]] = defaultdict(list)
    for (domain, _), values in zip(groups, raw, strict=True):
        squares[domain].extend(value * value for value in values)
    scale = {domain: math.sqrt(sum(values) / len(values)) + DOMAIN_FLOOR for domain, values in squares.items()}
    return [[value / scale[domain] for value in values] for (domain, _), values in zip(groups, raw, strict=True)]
