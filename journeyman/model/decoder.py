"""Decoder: token-by-token generation over a slot cache of keys and values, made for continuous batching.

Called by the rollout engine and the one-file loop, from one thread. Invariants the caller keeps: the live rows are always the dense prefix
[0, n) of the slots, so a step works on views and copies nothing; when a row leaves, the last live row is moved into its slot (move).
A row's cache is valid for the tokens it has been fed; what lies beyond is garbage that no step attends to.
Legend: L layers, S slots, K key/value heads, T tokens, E head_dim, N live rows, G query heads a key/value head, V vocabulary.
"""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor
from torch.nn import functional as F

from journeyman.errors import ErrorCode, JourneymanError
from journeyman.model.qwen3 import Qwen3, finish_layer, project_qkv, rms_norm


class Decoder:
    """Holds the model's stacked weights and the cache [L, S, K, T, E] of num_slots rows of at most max_tokens tokens."""

    def __init__(self, model: Qwen3, num_slots: int, max_tokens: int) -> None:
        config = model.config
        if max_tokens > config.max_position_embeddings:
            raise JourneymanError(
                ErrorCode.INVALID_INPUT,
                f"max_tokens {max_tokens} is above the model's max_position_embeddings {config.max_position_embeddings}",
            )
        self.model = model
        self.num_slots = num_slots
        self.max_tokens = max_tokens
        shape = (config.num_hidden_layers, num_slots, config.num_key_value_heads, max_tokens, config.head_dim)
        self._keys_LSKTE = torch.zeros(shape)
        self._values_LSKTE = torch.zeros(shape)
        self._row_indices_S = torch.arange(num_slots)
        self._stack()

    @torch.inference_mode()
    def _stack(self) -> None:
        self._layers = self.model.layers()

    def load(self, weights: Mapping[str, Tensor]) -> None:
        """Swaps weights in flight; live rows keep the keys and values that the old weights made."""
        self.model.load(weights)
        self._stack()

    @torch.inference_mode()
    def prefill(self, prompts: Sequence[Sequence[int]], rows: Sequence[Sequence[int]]) -> None:
        """Computes each prompt once and fills its rows' caches with all of it but the last token.

        The caller feeds that last token, at position len(prompt) - 1, with the first step, and so gets the first logits.
        """
        lengths = [len(prompt) - 1 for prompt in prompts]
        width = max(lengths, default=0)
        if width <= 0:
            return
        ids_BT = torch.zeros((len(prompts), width), dtype=torch.long)
        for index, prompt in enumerate(prompts):
            ids_BT[index, : lengths[index]] = torch.tensor(prompt[:-1], dtype=torch.long)
        keys_values: list[tuple[Tensor, Tensor]] = []
        self.model.hidden(ids_BT, keys_values)
        source = torch.tensor([index for index, group in enumerate(rows) for _ in group])
        target = torch.tensor([row for group in rows for row in group])
        for layer, (keys_BKTE, values_BKTE) in enumerate(keys_values):
            self._keys_LSKTE[layer][target, :, :width] = keys_BKTE[source]
            self._values_LSKTE[layer][target, :, :width] = values_BKTE[source]

    @torch.inference_mode()
    def step(self, tokens_N: Tensor, positions_N: Tensor, n: int) -> Tensor:
        """Feeds one token to each of the rows [0, n) and returns the logits [N, V] of what follows.

        A row whose cache is filled up to a position may be fed the same token at the same position again; nothing changes.
        """
        model, config = self.model, self.model.config
        num_tokens = int(positions_N.max()) + 1
        cos, sin = model.get_buffer("cos_TE")[positions_N, None], model.get_buffer("sin_TE")[positions_N, None]
        hidden = torch.arange(num_tokens)[None] > positions_N[:, None]
        bias_N11T = torch.zeros((n, 1, 1, num_tokens)).masked_fill_(hidden[:, None, None], float("-inf"))
        rows_N = self._row_indices_S[:n]
        x_ND = F.embedding(tokens_N, model.model.embed_tokens.weight)
        for layer, weights in enumerate(self._layers):
            q, k, v = project_qkv(x_ND, weights, config, cos, sin)
            keys, values = self._keys_LSKTE[layer], self._values_LSKTE[layer]
            keys[rows_N, :, positions_N] = k
            values[rows_N, :, positions_N] = v
            grouped_NKGE = q.view(n, config.num_key_value_heads, config.num_query_heads_a_kv, -1)
            attended = F.scaled_dot_product_attention(
                grouped_NKGE, keys[:n, :, :num_tokens], values[:n, :, :num_tokens], attn_mask=bias_N11T
            )
            x_ND = finish_layer(x_ND, attended.flatten(1), weights, config)
        return model.logits(rms_norm(x_ND, model.model.norm.weight, config))

    @torch.inference_mode()
    def move(self, src: int, dst: int) -> None:
        """Copies the row at slot src into slot dst; the caller forgets src."""
        self._keys_LSKTE[:, dst] = self._keys_LSKTE[:, src]
        self._values_LSKTE[:, dst] = self._values_LSKTE[:, src]
