"""The score test of non-inferiority for paired yes/no outcomes, and Holm's correction over many tests.

Called by the gate. Of n tasks played by both, let b be those that only the candidate solved and c those that only the champion
solved. The null hypothesis is "the candidate is worse by the margin or more": p_candidate - p_champion <= -m. With d = -m the
efficient-score statistic is

    z = (b - c - n d) / sqrt(n (2 q + d (1 - d)))

where q, the restricted maximum-likelihood estimate of the champion-only probability under p_candidate - p_champion = d, is the larger root of

    2 n q^2 + ((2 n - b + c) d - b - c) q - c d (1 - d) = 0

Source: T. Tango, Equivalence test and confidence interval for the difference in proportions for the paired-sample design, Statistics in
Medicine 17 (1998) 891-908. At m = 0 it is McNemar's test; unlike that it stays defined when b or c is 0.
Correction: S. Holm, A simple sequentially rejective multiple test procedure, Scandinavian Journal of Statistics 6 (1979) 65-70.
"""

from collections.abc import Sequence
from math import erfc, sqrt


def non_inferiority_p(only_candidate: int, only_champion: int, num_pairs: int, margin: float) -> float:
    """One-sided p-value. 1.0 where nothing can be shown: no pairs, or margin 0 without any disagreement."""
    n, b, c, d = num_pairs, only_candidate, only_champion, -margin
    if n == 0:
        return 1.0
    linear = (2 * n - b + c) * d - b - c
    constant = -c * d * (1 - d)
    discriminant = max(linear * linear - 8 * n * constant, 0.0)  # rounding may take it below 0
    q = (sqrt(discriminant) - linear) / (4 * n)
    variance = n * (2 * q + d * (1 - d))
    if variance <= 0:
        return 1.0
    z = (b - c - n * d) / sqrt(variance)
    return 0.5 * erfc(z / sqrt(2))


def holm_rejections(p_values: Sequence[float], alpha: float) -> list[bool]:
    """Which null hypotheses fall while the chance of any false rejection stays at most alpha; in the order of p_values."""
    rejected = [False] * len(p_values)
    for rank, index in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        if p_values[index] > alpha / (len(p_values) - rank):
            break
        rejected[index] = True
    return rejected
