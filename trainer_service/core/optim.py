"""Optimisers of the trainer: Muon for the hidden matrices and AdamW for the rest in the cold start, AdamW alone in RL.

Muon: K. Jordan et al., "Muon: An optimizer for hidden layers in neural networks" (2024), with its quintic Newton-Schulz coefficients.
Matrices of equal shape are orthogonalised together as one batch, which on a CPU costs a third of one after the other.
"""

from collections import defaultdict
from collections.abc import Sequence

import torch
from torch import Tensor, nn

NEWTON_SCHULZ = (3.4445, -4.7750, 2.0315)
NUM_ITERATIONS = 5


class Muon(torch.optim.Optimizer):
    """Momentum, orthogonalised; every parameter is a matrix."""

    def __init__(self, parameters: Sequence[nn.Parameter], lr: float, momentum: float = 0.95) -> None:
        super().__init__(parameters, {"lr": lr, "momentum": momentum})

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]  # no closure is ever used
        """One update from the gradients; Nesterov momentum."""
        for group in self.param_groups:
            by_shape: dict[torch.Size, list[nn.Parameter]] = defaultdict(list)
            for parameter in group["params"]:
                if parameter.grad is not None:
                    by_shape[parameter.shape].append(parameter)
            for shape, parameters in by_shape.items():
                self._update(parameters, shape, group["lr"], group["momentum"])

    def _update(self, parameters: Sequence[nn.Parameter], shape: torch.Size, lr: float, momentum: float) -> None:
        looks = []
        for parameter in parameters:
            assert parameter.grad is not None
            state = self.state[parameter]
            buffer = state.setdefault("momentum_buffer", torch.zeros_like(parameter))
            buffer.mul_(momentum).add_(parameter.grad)
            looks.append(parameter.grad + momentum * buffer)
        scale = lr * max(1.0, shape[0] / shape[1]) ** 0.5
        for parameter, direction in zip(parameters, orthogonalised(torch.stack(looks)), strict=True):
            parameter.add_(direction, alpha=-scale)


def orthogonalised(matrices_BMN: Tensor) -> Tensor:
    """Nearest semi-orthogonal matrices, roughly: singular values end between about 0.7 and 1.2."""
    a, b, c = NEWTON_SCHULZ
    transposed = matrices_BMN.shape[1] > matrices_BMN.shape[2]
    x: Tensor = matrices_BMN.mT if transposed else matrices_BMN
    x = x / (x.flatten(1).norm(dim=1)[:, None, None] + 1e-7)
    for _ in range(NUM_ITERATIONS):
        gram = x @ x.mT
        x = a * x + (b * gram + c * gram @ gram) @ x
    return torch.transpose(x, 1, 2) if transposed else x


def cold_start_optimisers(model: nn.Module, muon_lr: float, adam_lr: float) -> tuple[torch.optim.Optimizer, ...]:
    """Muon on matrices other than embeddings, AdamW on embeddings and norms."""
    named = list(model.named_parameters())
    matrices = [p for name, p in named if p.ndim == 2 and "embed" not in name and "lm_head" not in name]
    chosen = {id(p) for p in matrices}
    rest = [p for _, p in named if id(p) not in chosen]
    return Muon(matrices, muon_lr), torch.optim.AdamW(rest, lr=adam_lr, betas=(0.9, 0.98), weight_decay=0.0)


def rl_optimisers(model: nn.Module, lr: float) -> tuple[torch.optim.Optimizer, ...]:
    """AdamW on everything; the short second moment (0.95) suits the few steps."""
    return (torch.optim.AdamW(model.parameters(), lr=lr, betas=(0.9, 0.95), weight_decay=0.0),)
