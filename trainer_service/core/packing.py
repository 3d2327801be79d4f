"""Rows to tensors: micro-batches of rows of similar length, right-padded. Legend: B rows, T tokens of the longest.

Position t of every mask and weight speaks of token t itself; the model's output at t - 1 predicts it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainRow:
    """One rollout as the trainer sees it; all sequences share one length."""

    token_ids: Sequence[int]
    is_sampled: Sequence[bool]
    logprobs: Sequence[float]
    advantage: float


@dataclass(frozen=True, slots=True, kw_only=True)
class MicroBatch:
    """Padded rows."""

    ids_BT: Tensor
    sampled_BT: Tensor
    """bool; False in the padding."""
    logp_BT: Tensor
    advantage_B: Tensor


def padded(rows: Sequence[Sequence[float]], dtype: type[np.generic]) -> Tensor:
    """[B, T] with zeros on the right."""
    out = np.zeros((len(rows), max(map(len, rows))), dtype=dtype)
    for index, row in enumerate(rows):
        out[index, : len(row)] = row
    return torch.from_numpy(out)


def micro_batches(rows: Sequence[TrainRow], max_rows: int) -> list[MicroBatch]:
    """All rows, sorted by length, at most max_rows together."""
    ordered = sorted(rows, key=lambda row: len(row.token_ids))
    return [_batch(ordered[start : start + max_rows]) for start in range(0, len(ordered), max_rows)]


def _batch(rows: Sequence[TrainRow]) -> MicroBatch:
    return MicroBatch(
        ids_BT=padded([row.token_ids for row in rows], np.int64),
        sampled_BT=padded([row.is_sampled for row in rows], np.bool_),
        logp_BT=padded([row.logprobs for row in rows], np.float32),
        advantage_B=torch.tensor([row.advantage for row in rows], dtype=torch.float32),
    )
