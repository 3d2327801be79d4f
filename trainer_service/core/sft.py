"""The cold start's step and its order of rows. Legend: B rows, T tokens, N weighted tokens, V vocabulary."""

import random
from collections.abc import Sequence

import numpy as np
import torch
from torch.nn import functional as F

from journeyman.model.qwen3 import Qwen3
from trainer_service.core.demonstrations import SftRow
from trainer_service.core.packing import padded
from trainer_service.core.schedule import factor

BATCH_ROWS = 32
MUON_LR = 0.02
ADAM_LR = 4e-3
WARMUP_STEPS = 20
DECAY_SHARE = 0.5
FLOOR = 0.05
BUCKET_BATCHES = 16
"""Rows are sorted by length inside chunks of this many batches, so that little is padding and order stays random."""


def batches(num_rows: int, lengths: Sequence[int], num_steps: int, seed: int) -> list[list[int]]:
    """Row numbers of every step's batch, fixed by the seed: a resumed run goes on where it was."""
    rng = random.Random(seed)
    chunk = BATCH_ROWS * BUCKET_BATCHES
    planned: list[list[int]] = []
    while len(planned) < num_steps:
        order = list(range(num_rows))
        rng.shuffle(order)
        for start in range(0, max(1, num_rows - chunk + 1), chunk):
            bucket = sorted(order[start : start + chunk], key=lambda i: lengths[i])
            cut = [bucket[i : i + BATCH_ROWS] for i in range(0, len(bucket), BATCH_ROWS)]
            rng.shuffle(cut)
            planned += cut
    return planned[:num_steps]


def learning_factor(step: int, num_steps: int) -> float:
    """Factor of both learning rates."""
    return factor(step, num_steps, warmup_steps=WARMUP_STEPS, decay_share=DECAY_SHARE, floor=FLOOR)


def sft_step(model: Qwen3, optimisers: Sequence[torch.optim.Optimizer], rows: Sequence[SftRow]) -> dict[str, float]:
    """One update on the weighted cross entropy of a batch."""
    ids_BT = padded([row.token_ids for row in rows], np.int64)
    weight_BT = padded([row.weights for row in rows], np.float32)[:, 1:]
    counted_BT = weight_BT > 0
    logits_NV = model.logits(model.hidden(ids_BT[:, :-1])[counted_BT])
    nll_N = F.cross_entropy(logits_NV, ids_BT[:, 1:][counted_BT], reduction="none")
    weight_N = weight_BT[counted_BT]
    loss = (nll_N * weight_N).sum() / weight_N.sum()
    loss.backward()  # type: ignore[no-untyped-call]  # torch's own
    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    for optimiser in optimisers:
        optimiser.step()
        optimiser.zero_grad(set_to_none=True)
    return {"loss": float(loss.detach()), "grad_norm": float(norm), "tokens": float(ids_BT.numel())}
