"""Loss functions of the trainer: pure, on the sampled tokens of a batch, flat. Legend: N sampled tokens, V vocabulary."""

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyLoss:
    """Sums over tokens, so that micro-batches add up to the step; the caller divides by the step's number of sampled tokens."""

    total: Tensor
    num_clipped: Tensor
    """Tokens whose ratio was outside the clip range."""
    sum_kl: Tensor
    """Sum of sampling minus training log-probability: an estimate of the divergence, nats."""


def clipped_policy_loss(
    logp_N: Tensor, sampled_logp_N: Tensor, advantage_N: Tensor, *, clip_low: float = 0.2, clip_high: float = 0.28
) -> PolicyLoss:
    """PPO's clipped objective (Schulman et al. 2017) with DAPO's wider upper bound (Yu et al. 2025), negated.

    sampled_logp_N comes from the weights that sampled each token, so the ratio is also the importance correction for tokens that are
    some steps old.
    """
    log_ratio_N = logp_N - sampled_logp_N
    ratio_N = log_ratio_N.exp()
    clipped_N = ratio_N.clamp(1.0 - clip_low, 1.0 + clip_high)
    gain_N = torch.minimum(ratio_N * advantage_N, clipped_N * advantage_N)
    outside_N = (ratio_N < 1.0 - clip_low) | (ratio_N > 1.0 + clip_high)
    return PolicyLoss(total=-gain_N.sum(), num_clipped=outside_N.sum().detach(), sum_kl=-log_ratio_N.detach().sum())
