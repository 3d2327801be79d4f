"""The train step: groups in, one optimiser update out. Everything that changes weights in RL is in this file."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from journeyman.model.qwen3 import Qwen3
from journeyman.model.sampling import entropy, masked_logp
from trainer_service.core.losses import clipped_policy_loss
from trainer_service.core.packing import MicroBatch, TrainRow, micro_batches


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRecipe:
    """Constants of the step."""

    max_grad_norm: float = 1.0
    entropy_bonus: float = 0.005
    micro_batch_rows: int = 64
    min_advantage: float = 1e-3
    """Rows whose advantage is smaller have no gradient worth computing."""


def train_step(
    model: Qwen3,
    optimisers: Sequence[torch.optim.Optimizer],
    rows: Sequence[TrainRow],
    forbidden_ids: Sequence[int],
    recipe: StepRecipe,
) -> dict[str, float]:
    """One update from all rows; returns the figures of the step. Learning rates are set by the caller."""
    trained = [row for row in rows if abs(row.advantage) >= recipe.min_advantage]
    num_sampled = sum(sum(row.is_sampled) for row in trained)
    sums = {"loss": 0.0, "entropy": 0.0, "clipped": 0.0, "kl": 0.0}
    for batch in micro_batches(trained, recipe.micro_batch_rows) if trained else ():
        _accumulate(model, batch, forbidden_ids, recipe, num_sampled, sums)
    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), recipe.max_grad_norm)
    for optimiser in optimisers:
        if trained:
            optimiser.step()
        optimiser.zero_grad(set_to_none=True)
    tokens = max(1, num_sampled)
    return {
        "loss": sums["loss"],
        "entropy": sums["entropy"] / tokens,
        "clip_fraction": sums["clipped"] / tokens,
        "kl": sums["kl"] / tokens,
        "grad_norm": float(norm),
        "trained_rows": float(len(trained)),
        "trained_tokens": float(num_sampled),
    }


def _accumulate(
    model: Qwen3,
    batch: MicroBatch,
    forbidden_ids: Sequence[int],
    recipe: StepRecipe,
    num_sampled: int,
    sums: dict[str, float],
) -> None:
    """Adds one micro-batch's gradients and figures. Logits exist for the sampled tokens only."""
    sampled_BT = batch.sampled_BT[:, 1:]
    hidden_ND = model.hidden(batch.ids_BT[:, :-1])[sampled_BT]
    logp_NV = masked_logp(model.logits(hidden_ND), forbidden_ids)
    logp_N = logp_NV.gather(-1, batch.ids_BT[:, 1:][sampled_BT][:, None])[:, 0]
    advantage_N = batch.advantage_B[:, None].expand(sampled_BT.shape)[sampled_BT]
    policy = clipped_policy_loss(logp_N, batch.logp_BT[:, 1:][sampled_BT], advantage_N)
    entropy_N = entropy(logp_NV)
    loss = (policy.total - recipe.entropy_bonus * entropy_N.sum()) / num_sampled
    loss.backward()  # type: ignore[no-untyped-call]  # torch's own
    sums["loss"] += float(loss.detach())
    sums["entropy"] += float(entropy_N.detach().sum())
    sums["clipped"] += float(policy.num_clipped)
    sums["kl"] += float(policy.sum_kl)
