"""Reads a user's own Hugging Face folder as a base model: Qwen3 architecture, safetensors, tokenizer.json.

Called by the trainer's init job. Everything that does not fit is INVALID_INPUT and says what was found and what is supported. The role tokens
that the tokenizer lacks are added; where the vocabulary has no room, the embedding grows by rows at the mean of the others.
"""

import json
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from journeyman.chat.tokenizer import ChatTokenizer
from journeyman.errors import ErrorCode, JourneymanError
from journeyman.model.config import ModelConfig
from journeyman.model.qwen3 import Qwen3

SUPPORTED = (
    "a folder with config.json of a Qwen3ForCausalLM, model.safetensors (or its index and shards) and tokenizer.json"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class BaseModel:
    """A model and its tokenizer, in float32."""

    model: Qwen3
    tokenizer: ChatTokenizer


def read_folder(path: str) -> BaseModel:
    """Loads the folder."""
    folder = Path(path)
    if not folder.is_dir():
        found = "a file" if folder.exists() else "nothing"
        raise _invalid(path, found)
    config = ModelConfig.from_hf(_read_json(folder / "config.json"), where=str(folder / "config.json"))
    tokenizer = ChatTokenizer.adopt(_read(folder / "tokenizer.json"))
    weights = _read_weights(folder)
    if config.tie_word_embeddings:
        weights.pop("lm_head.weight", None)
    if tokenizer.vocab_size > config.vocab_size:
        weights = _grow(weights, tokenizer.vocab_size)
        config = replace(config, vocab_size=tokenizer.vocab_size)
    model = Qwen3(config).eval()
    try:
        model.load(weights)
    except RuntimeError as error:
        raise _invalid(path, f"tensors that do not fit config.json ({_first_lines(error)})") from error
    return BaseModel(model=model, tokenizer=tokenizer)


def _read_weights(folder: Path) -> dict[str, Tensor]:
    index = folder / "model.safetensors.index.json"
    if index.is_file():
        weight_map = _read_json(index).get("weight_map")
        shards = sorted(set(weight_map.values())) if isinstance(weight_map, dict) else []
    else:
        shards = ["model.safetensors"]
    weights: dict[str, Tensor] = {}
    for shard in shards:
        if not (folder / shard).is_file():
            raise _invalid(str(folder), f"no {shard}")
        try:
            weights.update(load_file(folder / shard))
        except SafetensorError as error:
            raise _invalid(str(folder / shard), f"unreadable tensors ({error})") from error
    return {name: tensor.float() for name, tensor in weights.items()}


def _grow(weights: dict[str, Tensor], num_rows: int) -> dict[str, Tensor]:
    grown = dict(weights)
    for name in ("model.embed_tokens.weight", "lm_head.weight"):
        if name in grown:
            rows_VD = grown[name]
            added = rows_VD.mean(0, keepdim=True).expand(num_rows - rows_VD.shape[0], -1)
            grown[name] = torch.cat([rows_VD, added])
    return grown


def _read(path: Path) -> bytes:
    if not path.is_file():
        raise _invalid(str(path.parent), f"no {path.name}")
    return path.read_bytes()


def _read_json(path: Path) -> dict[str, object]:
    try:
        document = json.loads(_read(path))
    except ValueError as error:
        raise _invalid(str(path), f"no JSON ({error})") from error
    if not isinstance(document, dict):
        raise _invalid(str(path), "JSON that is no object")
    return document


def _first_lines(error: RuntimeError) -> str:
    return " ".join(str(error).split())[:300]


def _invalid(where: str, found: str) -> JourneymanError:
    return JourneymanError(ErrorCode.INVALID_INPUT, f"{where}: found {found}; supported is {SUPPORTED}")
