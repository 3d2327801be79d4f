"""Qwen3 and Decoder: equal to Hugging Face's model and to each other."""

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from journeyman.errors import ErrorCode, JourneymanError
from journeyman.model.config import ModelConfig
from journeyman.model.decoder import Decoder
from journeyman.model.qwen3 import Qwen3, initialise

TINY = ModelConfig()
UNTIED = ModelConfig(hidden_size=64, num_attention_heads=6, num_key_value_heads=3, tie_word_embeddings=False)


def make(config: ModelConfig = TINY, seed: int = 3) -> Qwen3:
    return initialise(Qwen3(config), seed)


def test_default_size() -> None:
    assert sum(parameter.numel() for parameter in make().parameters()) == 853_376


@pytest.mark.parametrize("config", [TINY, UNTIED])
def test_logits_equal_hugging_face(config: ModelConfig, tmp_path: Path) -> None:
    from transformers import AutoModelForCausalLM

    model = make(config)
    save_file(model.state_dict(), tmp_path / "model.safetensors", {"format": "pt"})
    document = config.to_hf(pad_id=0, eos_id=5)
    (tmp_path / "config.json").write_text(json.dumps(document))
    theirs = AutoModelForCausalLM.from_pretrained(tmp_path).eval()
    ids_BT = torch.randint(0, config.vocab_size, (3, 40), generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        difference = (theirs(ids_BT).logits - model.logits(model.hidden(ids_BT))).abs().max()
    assert difference < 2e-5
    assert ModelConfig.from_hf(document, where="config.json") == config


def test_config_written_by_hugging_face_is_read() -> None:
    from transformers import Qwen3Config

    theirs = Qwen3Config(
        vocab_size=300, hidden_size=64, num_hidden_layers=2, head_dim=32, architectures=["Qwen3ForCausalLM"]
    )
    config = ModelConfig.from_hf(json.loads(theirs.to_json_string(use_diff=False)), where="x")
    assert (config.vocab_size, config.head_dim, config.rope_theta) == (300, 32, 10_000.0)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"model_type": "llama", "architectures": ["LlamaForCausalLM"]}, "LlamaForCausalLM"),
        ({"attention_bias": True}, "attention_bias"),
        ({"use_sliding_window": True}, "sliding"),
        ({"rope_parameters": {"rope_type": "yarn", "rope_theta": 1e6}}, "yarn"),
        ({"hidden_size": None}, "hidden_size"),
        ({"hidden_act": "gelu"}, "gelu"),
    ],
)
def test_unsupported_models_are_refused_by_name(change: dict[str, object], words: str) -> None:
    with pytest.raises(JourneymanError, match=words) as caught:
        ModelConfig.from_hf({**TINY.to_hf(pad_id=0, eos_id=5), **change}, where="folder/config.json")
    assert caught.value.code is ErrorCode.INVALID_INPUT
    assert "folder/config.json" in caught.value.message


def test_decoder_equals_full_forward_with_rows_joining_moving_and_leaving() -> None:
    model = make()
    generator = torch.Generator().manual_seed(1)
    long_T, short_T = (torch.randint(6, 512, (size,), generator=generator) for size in (30, 22))
    decoder = Decoder(model, 4, 64)
    with torch.no_grad():
        full_long, full_short = (model.logits(model.hidden(ids[None]))[0] for ids in (long_T, short_T))
    decoder.prefill([long_T[:10].tolist(), short_T[:5].tolist()], [[0], [1, 2]])
    for step in range(12):
        positions = torch.tensor([9 + step, 4 + step, 4 + step])
        tokens = torch.stack([long_T[9 + step], short_T[4 + step], short_T[4 + step]])
        logits_NV = decoder.step(tokens, positions, 3)
        torch.testing.assert_close(logits_NV[0], full_long[9 + step], atol=1e-5, rtol=0)
        torch.testing.assert_close(logits_NV[2], full_short[4 + step], atol=1e-5, rtol=0)
    decoder.move(2, 0)  # the long row leaves, the last row takes its slot
    for position in range(16, 22):
        logits_NV = decoder.step(short_T[[position, position]], torch.tensor([position, position]), 2)
        torch.testing.assert_close(logits_NV, full_short[position].expand(2, -1), atol=1e-5, rtol=0)


def test_decoder_takes_new_weights_and_refuses_other_shapes() -> None:
    decoder = Decoder(make(seed=3), 1, 16)
    other = make(seed=4)
    decoder.load(other.state_dict())
    ids = torch.tensor([7])
    with torch.no_grad():
        expected = other.logits(other.hidden(ids[None]))[0]
    torch.testing.assert_close(decoder.step(ids, torch.tensor([0]), 1), expected, atol=1e-5, rtol=0)
    with pytest.raises(RuntimeError):
        decoder.load(make(UNTIED).state_dict())
    with pytest.raises(JourneymanError, match="max_position_embeddings"):
        Decoder(make(), 1, 1024)
