"""ModelConfig: the shape of a Qwen3 model, read from and written as a Hugging Face config.json.

Called by trainer, engine and artefacts. from_hf refuses what qwen3.py does not compute, so a wrong model fails here and not in its numbers.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from journeyman.errors import ErrorCode, JourneymanError

ARCHITECTURE = "Qwen3ForCausalLM"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelConfig:
    """Hugging Face names. The defaults are the quickstart's model: 0.85 million parameters."""

    vocab_size: int = 512
    hidden_size: int = 128
    intermediate_size: int = 384
    num_hidden_layers: int = 4
    num_attention_heads: int = 4
    num_key_value_heads: int = 2
    head_dim: int = 32
    max_position_embeddings: int = 512
    rope_theta: float = 10_000.0
    rms_norm_eps: float = 1e-6
    tie_word_embeddings: bool = True

    @property
    def num_query_heads_a_kv(self) -> int:
        """Query heads that share one key and value head."""
        return self.num_attention_heads // self.num_key_value_heads

    def to_hf(self, *, pad_id: int, eos_id: int) -> dict[str, object]:
        """config.json."""
        return {
            "architectures": [ARCHITECTURE],
            "model_type": "qwen3",
            "vocab_size": self.vocab_size,
            "hidden_size": self.hidden_size,
            "intermediate_size": self.intermediate_size,
            "num_hidden_layers": self.num_hidden_layers,
            "num_attention_heads": self.num_attention_heads,
            "num_key_value_heads": self.num_key_value_heads,
            "head_dim": self.head_dim,
            "max_position_embeddings": self.max_position_embeddings,
            "rope_parameters": {"rope_type": "default", "rope_theta": self.rope_theta},
            "rms_norm_eps": self.rms_norm_eps,
            "tie_word_embeddings": self.tie_word_embeddings,
            "attention_bias": False,
            "attention_dropout": 0.0,
            "hidden_act": "silu",
            "use_sliding_window": False,
            "dtype": "float32",
            "bos_token_id": None,
            "eos_token_id": eos_id,
            "pad_token_id": pad_id,
        }

    @classmethod
    def from_hf(cls, document: Mapping[str, object], *, where: str) -> "ModelConfig":
        """Reads config.json; INVALID_INPUT says what was found at where and what is supported."""
        _refuse_unsupported(document, where)
        config = cls(
            vocab_size=_integer(document, "vocab_size", where),
            hidden_size=_integer(document, "hidden_size", where),
            intermediate_size=_integer(document, "intermediate_size", where),
            num_hidden_layers=_integer(document, "num_hidden_layers", where),
            num_attention_heads=_integer(document, "num_attention_heads", where),
            num_key_value_heads=_integer(document, "num_key_value_heads", where),
            head_dim=_integer(document, "head_dim", where),
            max_position_embeddings=_integer(document, "max_position_embeddings", where),
            rope_theta=_rope_theta(document, where),
            rms_norm_eps=_number(document, "rms_norm_eps", where),
            tie_word_embeddings=bool(document.get("tie_word_embeddings", False)),
        )
        if config.num_attention_heads % config.num_key_value_heads or config.head_dim % 2:
            raise _invalid(where, "heads that do not divide", "num_attention_heads a multiple of num_key_value_heads")
        return config


def _refuse_unsupported(document: Mapping[str, object], where: str) -> None:
    found = document.get("architectures") or document.get("model_type")
    if document.get("model_type") != "qwen3" or document.get("architectures", [ARCHITECTURE]) != [ARCHITECTURE]:
        raise _invalid(where, f"architecture {found}", ARCHITECTURE)
    if document.get("attention_bias"):
        raise _invalid(where, "attention_bias true", "attention_bias false")
    if document.get("use_sliding_window"):
        raise _invalid(where, "use_sliding_window true", "full attention in every layer")
    if document.get("hidden_act", "silu") != "silu":
        raise _invalid(where, f"hidden_act {document['hidden_act']}", "silu")


def _rope_theta(document: Mapping[str, object], where: str) -> float:
    rope = document.get("rope_parameters") or document.get("rope_scaling")
    if rope is None:
        return _number(document, "rope_theta", where)
    kind = rope.get("rope_type", rope.get("type", "default")) if isinstance(rope, dict) else rope
    if not isinstance(rope, dict) or kind != "default":
        raise _invalid(where, f"rope type {kind}", "rope type default")
    return _number(rope if "rope_theta" in rope else document, "rope_theta", where)


def _number(document: Mapping[str, object], name: str, where: str) -> float:
    value = document.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float) or value <= 0:
        raise _invalid(where, f"{name} {value!r}", f"{name} greater than 0")
    return float(value)


def _integer(document: Mapping[str, object], name: str, where: str) -> int:
    value = _number(document, name, where)
    if value != int(value):
        raise _invalid(where, f"{name} {value!r}", f"a whole number as {name}")
    return int(value)


def _invalid(where: str, found: str, supported: str) -> JourneymanError:
    return JourneymanError(ErrorCode.INVALID_INPUT, f"{where}: found {found}; supported is {supported}")
