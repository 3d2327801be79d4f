"""Masked log-probabilities and sampling; the same mask for engine, one-file loop and trainer, so their numbers agree.

Sampling inverts the cumulative distribution at one uniform number a row, drawn from a counter (seed, position). A row's tokens so
depend on its own seed only, never on which rows share its batch. Legend: N rows, V vocabulary.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampled:
    """One token a row."""

    ids_N: Tensor
    """int64."""
    logp_N: Tensor
    """Log-probability at temperature 1 over the allowed tokens, whatever the sampling temperature was."""
    entropy_N: Tensor
    """Entropy of that distribution, in nats."""


def masked_logp(logits_V: Tensor, forbidden_ids: Sequence[int]) -> Tensor:
    """log-softmax over the last dimension with forbidden ids at -inf; any leading shape; differentiable."""
    mask_V = torch.zeros(logits_V.shape[-1], dtype=torch.bool, device=logits_V.device)
    mask_V[list(forbidden_ids)] = True
    return torch.log_softmax(logits_V.float().masked_fill(mask_V, float("-inf")), -1)


def entropy(logp_V: Tensor) -> Tensor:
    """Entropy in nats over the last dimension; -inf entries count nothing, in value and in gradient."""
    finite = logp_V.masked_fill(torch.isinf(logp_V), 0.0)
    return -(logp_V.exp() * finite).sum(-1)


def uniforms(seeds_N: npt.ArrayLike, positions_N: npt.ArrayLike) -> Tensor:
    """float64 numbers in [0, 1), one a row, fixed by (seed, position): a 64-bit mix, top 32 bits."""
    with np.errstate(over="ignore"):
        state = _mix(np.asarray(seeds_N, dtype=np.int64).astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15))
        state = _mix(state ^ _mix(np.asarray(positions_N, dtype=np.int64).astype(np.uint64)))
    return torch.from_numpy((state >> np.uint64(32)).astype(np.float64) / 2.0**32)


def sample(logits_NV: Tensor, uniforms_N: Tensor, *, forbidden_ids: Sequence[int], temperature: float = 1.0) -> Sampled:
    """Draws one allowed token a row; temperature 0 takes the most likely one and ignores uniforms_N."""
    logp_NV = masked_logp(logits_NV, forbidden_ids)
    probabilities_NV = logp_NV.exp()
    if temperature == 0.0:
        ids_N = logp_NV.argmax(-1)
    else:
        scaled = probabilities_NV if temperature == 1.0 else (logp_NV / temperature).softmax(-1)
        cumulative_NV = scaled.double().cumsum(-1)
        # A token is taken where cumulative[id - 1] <= u < cumulative[id]; one of probability 0 spans nothing.
        targets_N1 = uniforms_N[:, None] * cumulative_NV[:, -1:]
        ids_N = torch.searchsorted(cumulative_NV, targets_N1, right=True)[:, 0]
    finite_NV = logp_NV.masked_fill(torch.isinf(logp_NV), 0.0)
    return Sampled(
        ids_N=ids_N,
        logp_N=logp_NV.gather(-1, ids_N[:, None])[:, 0],
        entropy_N=-(probabilities_NV * finite_NV).sum(-1),
    )


def _mix(state: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return state ^ (state >> np.uint64(31))
