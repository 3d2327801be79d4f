"""Learning-rate factors: linear warm-up, constant, linear decay to a floor."""


def factor(step: int, num_steps: int, *, warmup_steps: int, decay_share: float, floor: float) -> float:
    """Factor for the optimiser step `step` (from 0) of num_steps; the decay covers the last decay_share of them."""
    warm = min(1.0, (step + 1) / max(1, warmup_steps))
    remaining = 1.0 - step / max(1, num_steps)
    return warm * min(1.0, max(floor, remaining / decay_share))
