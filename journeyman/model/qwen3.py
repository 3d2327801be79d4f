"""Qwen3: the model in plain torch, with the parameter names of Hugging Face's Qwen3ForCausalLM.

Called by the trainer (hidden, logits) and, through decoder.py, by the engine. Both use the same layer arithmetic below, so sampling and
training differ by rounding only. Legend: B rows, T tokens, D hidden, H query heads, K key/value heads, E head_dim, N rows of a step.
"""

import math
from collections.abc import Mapping
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from journeyman.model.config import ModelConfig


class LayerWeights(NamedTuple):
    """One layer's weights with the projections that share an input stacked, so that each is one matrix product."""

    norm_in_D: Tensor
    qkv: Tensor
    """[(H + 2K) E, D]."""
    norm_q_E: Tensor
    norm_k_E: Tensor
    out: Tensor
    """[D, H E]."""
    norm_mlp_D: Tensor
    gate_up: Tensor
    """[2 F, D]."""
    down: Tensor
    """[D, F]."""


class Attention(nn.Module):
    """Holds the attention's parameters under their Hugging Face names."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        width, kv_width = config.num_attention_heads * config.head_dim, config.num_key_value_heads * config.head_dim
        self.q_proj = nn.Linear(config.hidden_size, width, bias=False)
        self.k_proj = nn.Linear(config.hidden_size, kv_width, bias=False)
        self.v_proj = nn.Linear(config.hidden_size, kv_width, bias=False)
        self.o_proj = nn.Linear(width, config.hidden_size, bias=False)
        self.q_norm = nn.RMSNorm(config.head_dim, config.rms_norm_eps)
        self.k_norm = nn.RMSNorm(config.head_dim, config.rms_norm_eps)


class Mlp(nn.Module):
    """Holds the gated feed-forward's parameters."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.gate_proj = nn.Linear(config.hidden_size, config.intermediate_size, bias=False)
        self.up_proj = nn.Linear(config.hidden_size, config.intermediate_size, bias=False)
        self.down_proj = nn.Linear(config.intermediate_size, config.hidden_size, bias=False)


class Layer(nn.Module):
    """Holds one layer's parameters."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.self_attn = Attention(config)
        self.mlp = Mlp(config)
        self.input_layernorm = nn.RMSNorm(config.hidden_size, config.rms_norm_eps)
        self.post_attention_layernorm = nn.RMSNorm(config.hidden_size, config.rms_norm_eps)

    def stacked(self) -> LayerWeights:
        """The weights as the arithmetic wants them; differentiable."""
        attention, mlp = self.self_attn, self.mlp
        return LayerWeights(
            norm_in_D=self.input_layernorm.weight,
            qkv=torch.cat([attention.q_proj.weight, attention.k_proj.weight, attention.v_proj.weight]),
            norm_q_E=attention.q_norm.weight,
            norm_k_E=attention.k_norm.weight,
            out=attention.o_proj.weight,
            norm_mlp_D=self.post_attention_layernorm.weight,
            gate_up=torch.cat([mlp.gate_proj.weight, mlp.up_proj.weight]),
            down=mlp.down_proj.weight,
        )


class Backbone(nn.Module):
    """Holds everything but the output projection."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.embed_tokens = nn.Embedding(config.vocab_size, config.hidden_size)
        self.layers = nn.ModuleList(Layer(config) for _ in range(config.num_hidden_layers))
        self.norm = nn.RMSNorm(config.hidden_size, config.rms_norm_eps)


class Qwen3(nn.Module):
    """The causal language model. state_dict() has exactly the tensors of a Hugging Face checkpoint (no lm_head where tied)."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        self.model = Backbone(config)
        if not config.tie_word_embeddings:
            self.lm_head = nn.Linear(config.hidden_size, config.vocab_size, bias=False)
        cos_TE, sin_TE = rope_tables(config)
        self.register_buffer("cos_TE", cos_TE, persistent=False)
        self.register_buffer("sin_TE", sin_TE, persistent=False)

    def layers(self) -> list[LayerWeights]:
        """Stacked weights of every layer."""
        return [layer.stacked() for layer in self.model.layers if isinstance(layer, Layer)]

    @property
    def output_VD(self) -> Tensor:
        """The output projection."""
        return self.model.embed_tokens.weight if self.config.tie_word_embeddings else self.lm_head.weight

    def hidden(self, ids_BT: Tensor, keys_values: list[tuple[Tensor, Tensor]] | None = None) -> Tensor:
        """Final hidden states [B, T, D] of right-padded rows. Appends each layer's (k, v) [B, K, T, E] to keys_values where given."""
        config, num_tokens = self.config, ids_BT.shape[1]
        cos, sin = self.get_buffer("cos_TE")[:num_tokens, None], self.get_buffer("sin_TE")[:num_tokens, None]
        x_BTD = F.embedding(ids_BT, self.model.embed_tokens.weight)
        for weights in self.layers():
            q, k, v = (part.transpose(1, 2) for part in project_qkv(x_BTD, weights, config, cos, sin))
            if keys_values is not None:
                keys_values.append((k, v))
            shared = config.num_query_heads_a_kv
            attended = F.scaled_dot_product_attention(
                q, k.repeat_interleave(shared, 1), v.repeat_interleave(shared, 1), is_causal=True
            )
            x_BTD = finish_layer(x_BTD, attended.transpose(1, 2).flatten(2), weights, config)
        return rms_norm(x_BTD, self.model.norm.weight, config)

    def logits(self, hidden_D: Tensor) -> Tensor:
        """Scores over the vocabulary for hidden states of any leading shape."""
        return F.linear(hidden_D, self.output_VD)

    def load(self, weights: Mapping[str, Tensor]) -> None:
        """Copies weights in; KeyError or RuntimeError where names or shapes differ."""
        self.load_state_dict(dict(weights), strict=True)


def project_qkv(
    x_D: Tensor, weights: LayerWeights, config: ModelConfig, cos: Tensor, sin: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Rotated q [..., H, E], rotated k [..., K, E] and v [..., K, E]; cos and sin must broadcast against [..., heads, E]."""
    heads, kv_heads = config.num_attention_heads, config.num_key_value_heads
    fused = F.linear(rms_norm(x_D, weights.norm_in_D, config), weights.qkv)
    by_head = fused.view(*fused.shape[:-1], heads + 2 * kv_heads, config.head_dim)
    q, k, v = torch.split(by_head, [heads, kv_heads, kv_heads], -2)
    return (
        rotate(rms_norm(q, weights.norm_q_E, config), cos, sin),
        rotate(rms_norm(k, weights.norm_k_E, config), cos, sin),
        v,
    )


def finish_layer(x_D: Tensor, attended: Tensor, weights: LayerWeights, config: ModelConfig) -> Tensor:
    """The residual stream after the attention's output projection and the feed-forward."""
    x_D = x_D + F.linear(attended, weights.out)
    gate, up = F.linear(rms_norm(x_D, weights.norm_mlp_D, config), weights.gate_up).chunk(2, -1)
    return x_D + F.linear(F.silu(gate) * up, weights.down)


def rms_norm(x: Tensor, weight: Tensor, config: ModelConfig) -> Tensor:
    """Root-mean-square normalisation over the last dimension."""
    return F.rms_norm(x, (x.shape[-1],), weight, config.rms_norm_eps)


def rotate(x_E: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotary position embedding of the last dimension."""
    first, second = x_E.chunk(2, -1)
    return x_E * cos + torch.cat([-second, first], -1) * sin


def rope_tables(config: ModelConfig) -> tuple[Tensor, Tensor]:
    """cos and sin [max_position_embeddings, E]."""
    frequencies = config.rope_theta ** -(torch.arange(0, config.head_dim, 2).float() / config.head_dim)
    angles = torch.arange(config.max_position_embeddings).float()[:, None] * frequencies[None]
    return torch.cat([angles.cos()] * 2, -1), torch.cat([angles.sin()] * 2, -1)


def initialise(model: Qwen3, seed: int) -> Qwen3:
    """Fresh weights from a seed: norms 1, embeddings 1/sqrt(D), matrices scaled by fan-in, residual outputs also by depth."""
    generator = torch.Generator().manual_seed(seed)
    residual = 1.0 / math.sqrt(2 * model.config.num_hidden_layers)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.ndim == 1:
                parameter.fill_(1.0)
                continue
            std = (1.0 if "embed_tokens" in name else 0.7) / math.sqrt(parameter.shape[1])
            if name.endswith(("o_proj.weight", "down_proj.weight")):
                std *= residual
            parameter.copy_(torch.randn(parameter.shape, generator=generator) * std)
    return model
