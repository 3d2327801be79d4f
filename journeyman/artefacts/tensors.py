"""Weights as bytes and back, their checksum, and the canaries: what these weights say to fixed sequences.

Called by policy_write, policy_read and folder. All CPU-bound; callers keep it off the event loop.
"""

import hashlib
from collections.abc import Mapping, Sequence

import torch
from safetensors.torch import load as load_bytes
from safetensors.torch import save as save_bytes
from torch import Tensor

from journeyman.model.decoder import Decoder
from journeyman.model.qwen3 import Qwen3
from journeyman.model.sampling import masked_logp

NUM_CANARIES = 4
CANARY_TOKENS = 12


def serialise(weights: Mapping[str, Tensor]) -> bytes:
    """safetensors bytes that `transformers` loads."""
    return save_bytes({name: tensor.detach().contiguous() for name, tensor in weights.items()}, {"format": "pt"})


def deserialise(data: bytes) -> dict[str, Tensor]:
    """Inverse of serialise; safetensors' own error where the bytes are none."""
    return load_bytes(data)


def checksum(weights: Mapping[str, Tensor]) -> str:
    """SHA-256 over names, types, shapes and values, independent of the file they were in."""
    digest = hashlib.sha256()
    for name in sorted(weights):
        tensor = weights[name].detach().contiguous()
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}\n".encode())
        digest.update(tensor.view(torch.uint8).numpy().data if tensor.numel() else b"")
    return digest.hexdigest()


def canary_ids(vocab_size: int, forbidden_ids: Sequence[int]) -> list[list[int]]:
    """Fixed sequences of allowed tokens, the same for every policy of a vocabulary."""
    forbidden = set(forbidden_ids)
    allowed = [identity for identity in range(vocab_size) if identity not in forbidden]
    return [
        [allowed[(17 + 131 * row + (37 + 10 * row) * position) % len(allowed)] for position in range(CANARY_TOKENS)]
        for row in range(NUM_CANARIES)
    ]


@torch.inference_mode()
def canary_logprobs(model: Qwen3, canaries: Sequence[Sequence[int]], forbidden_ids: Sequence[int]) -> list[list[float]]:
    """Log-probability of every token but the first, whole sequences at once."""
    ids_BT = torch.tensor(canaries)
    logp_BTV = masked_logp(model.logits(model.hidden(ids_BT[:, :-1])), forbidden_ids)
    chosen_BT = logp_BTV.gather(-1, ids_BT[:, 1:, None])[..., 0]
    return [[float(value) for value in row] for row in chosen_BT.tolist()]


@torch.inference_mode()
def decoded_logprobs(
    model: Qwen3, canaries: Sequence[Sequence[int]], forbidden_ids: Sequence[int]
) -> list[list[float]]:
    """The same by cached decoding, as the engine computes it."""
    ids_BT = torch.tensor(canaries)
    num_rows, num_tokens = ids_BT.shape
    decoder = Decoder(model, num_rows, num_tokens)
    columns = []
    for position in range(num_tokens - 1):
        logits_NV = decoder.step(ids_BT[:, position], torch.full((num_rows,), position), num_rows)
        columns.append(masked_logp(logits_NV, forbidden_ids).gather(1, ids_BT[:, position + 1, None]))
    return [[float(value) for value in row] for row in torch.cat(columns, 1).tolist()]


def largest_difference(left: Sequence[Sequence[float]], right: Sequence[Sequence[float]]) -> float:
    """Largest absolute difference of two equally shaped tables; infinite where one holds NaN."""
    difference = (torch.tensor(left) - torch.tensor(right)).abs().max()
    return float(difference.nan_to_num(nan=float("inf")))
