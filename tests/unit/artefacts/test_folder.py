"""A user's own folder as the base: what Hugging Face writes is read, what does not fit is named."""

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer, models, pre_tokenizers, trainers

from journeyman.artefacts.folder import read_folder
from journeyman.errors import ErrorCode, JourneymanError


def foreign_folder(folder: Path, *, max_shard_size: str = "1GB") -> Path:
    from transformers import Qwen3Config, Qwen3ForCausalLM

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    tokenizer.train_from_iterator(["abc"], trainers.BpeTrainer(vocab_size=258, initial_alphabet=alphabet))
    shape = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "head_dim": 8}
    heads = {"num_attention_heads": 4, "num_key_value_heads": 2, "tie_word_embeddings": False}
    model = Qwen3ForCausalLM(Qwen3Config(vocab_size=258, max_position_embeddings=64, **shape, **heads)).bfloat16()
    model.save_pretrained(folder, max_shard_size=max_shard_size)
    tokenizer.save(str(folder / "tokenizer.json"))
    return folder


@pytest.mark.parametrize("max_shard_size", ["1GB", "20KB"])
def test_a_hugging_face_folder_is_read_and_grows_role_tokens(tmp_path: Path, max_shard_size: str) -> None:
    from transformers import AutoModelForCausalLM

    folder = foreign_folder(tmp_path, max_shard_size=max_shard_size)
    base = read_folder(str(folder))
    assert base.tokenizer.vocab_size == base.model.config.vocab_size > 258
    theirs = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    ids_BT = torch.arange(20)[None]
    with torch.no_grad():
        ours = base.model.logits(base.model.hidden(ids_BT))[..., :258]
        torch.testing.assert_close(ours, theirs(ids_BT).logits, atol=2e-5, rtol=0)


def refused(path: Path) -> str:
    with pytest.raises(JourneymanError) as caught:
        read_folder(str(path))
    assert caught.value.code is ErrorCode.INVALID_INPUT
    assert "supported" in caught.value.message
    return caught.value.message


def test_what_does_not_fit_is_named(tmp_path: Path) -> None:
    assert "found nothing" in refused(tmp_path / "absent")
    assert "no config.json" in refused(tmp_path)
    folder = foreign_folder(tmp_path)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text("{")
    assert "no JSON" in refused(folder)
    (folder / "config.json").write_text(json.dumps({**config, "architectures": ["LlamaForCausalLM"]}))
    assert "LlamaForCausalLM" in refused(folder)
    (folder / "config.json").write_text(json.dumps({**config, "hidden_size": 16}))
    assert "do not fit" in refused(folder)
    (folder / "config.json").write_text(json.dumps(config))
    save_file({"other": torch.zeros(2)}, folder / "model.safetensors")
    assert "do not fit" in refused(folder)
    (folder / "model.safetensors").write_bytes(b"not tensors")
    assert "unreadable tensors" in refused(folder)
    (folder / "model.safetensors").unlink()
    assert "no model.safetensors" in refused(folder)
    (folder / "tokenizer.json").unlink()
    assert "no tokenizer.json" in refused(folder)
