"""Policies in the store: `transformers` loads them, and whatever is changed in one is refused by name."""

import dataclasses
import hashlib
import json
from pathlib import Path

import pytest
import torch

from journeyman.artefacts import LoadedPolicy, MadeHow, read_manifest, read_policy, write_policy
from journeyman.artefacts.manifest import MANIFEST_FILE
from journeyman.artefacts.policy_read import check_loaded
from journeyman.artefacts.tensors import deserialise, serialise
from journeyman.chat.tokenizer import ChatTokenizer
from journeyman.errors import ErrorCode, JourneymanError
from journeyman.model.config import ModelConfig
from journeyman.model.qwen3 import Qwen3, initialise
from journeyman.objects.connect import open_objects
from journeyman.objects.port import Objects
from journeyman.records import PolicyRef, PolicyVersion

CONFIG = ModelConfig(
    hidden_size=64, intermediate_size=96, num_hidden_layers=2, num_attention_heads=2, num_key_value_heads=1
)
TOKENIZER = ChatTokenizer.train(["calc 1 + 2", "answer 3"], 300)


async def write(objects: Objects, *, step: int = 1, seed: int = 0, parent: LoadedPolicy | None = None) -> PolicyRef:
    return await write_policy(
        objects,
        run_id="run",
        version=PolicyVersion(incarnation=1, step=step),
        model=initialise(Qwen3(CONFIG), seed),
        tokenizer=TOKENIZER,
        made_how=MadeHow(stage="rl", metrics={"loss": 0.5}),
        parent=parent.ref if parent else None,
        parent_manifest=parent.manifest if parent else None,
    )


async def refused(objects: Objects, ref: PolicyRef) -> str:
    with pytest.raises(JourneymanError) as caught:
        await read_policy(objects, ref)
    assert caught.value.code is ErrorCode.CORRUPT
    return caught.value.message


@pytest.fixture
def objects(tmp_path: Path) -> Objects:
    return open_objects(f"file:{tmp_path}")


async def test_round_trip(objects: Objects) -> None:
    base = await read_policy(objects, await write(objects, step=0))
    loaded = await read_policy(objects, await write(objects, seed=1, parent=base))
    expected = initialise(Qwen3(CONFIG), 1).state_dict()
    assert all(torch.equal(tensor, expected[name]) for name, tensor in loaded.weights.items())
    assert loaded.manifest.made_how == MadeHow(stage="rl", metrics={"loss": 0.5})
    assert loaded.manifest.parent == base.ref
    assert loaded.manifest.noise < 1e-4
    assert loaded.tokenizer.encode("calc 3") == TOKENIZER.encode("calc 3")
    assert await read_manifest(objects, loaded.ref) == loaded.manifest


async def test_transformers_loads_the_folder(objects: Objects, tmp_path: Path) -> None:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    ref = await write(objects)
    folder = tmp_path / ref.uri
    theirs, tokenizer = AutoModelForCausalLM.from_pretrained(folder).eval(), AutoTokenizer.from_pretrained(folder)
    ids = tokenizer.apply_chat_template(
        [{"role": "user", "content": "calc 1"}], add_generation_prompt=True, return_dict=False
    )
    ids_BT = torch.tensor([ids])
    model = (await read_policy(objects, ref)).model
    with torch.no_grad():
        ours = model.logits(model.hidden(ids_BT))
    torch.testing.assert_close(theirs(ids_BT).logits, ours, atol=2e-5, rtol=0)
    answer = theirs.generate(ids_BT, max_new_tokens=8)[0, len(ids) :].tolist()
    assert not set(answer) & set(TOKENIZER.forbidden_ids[1:])  # padding may follow the end


@pytest.mark.parametrize("name", ["model.safetensors", "config.json", "tokenizer.json", "generation_config.json"])
async def test_a_flipped_byte_is_refused(objects: Objects, name: str) -> None:
    ref = await write(objects)
    data = bytearray(await objects.get(f"{ref.uri}/{name}"))
    data[-3] ^= 1
    await objects.put(f"{ref.uri}/{name}", bytes(data))
    assert f"digest of {name}" in await refused(objects, ref)


async def test_an_absent_file_and_another_manifest_are_refused(objects: Objects) -> None:
    ref = await write(objects)
    await objects.delete(f"{ref.uri}/tokenizer.json")
    assert "tokenizer.json: absent" in await refused(objects, ref)
    other = await write(objects, step=2, seed=2)
    await objects.put(f"{ref.uri}/{MANIFEST_FILE}", await objects.get(f"{other.uri}/{MANIFEST_FILE}"))
    assert f"digest of {MANIFEST_FILE}" in await refused(objects, ref)
    renamed = dataclasses.replace(other, version=ref.version)
    assert "name" in await refused(objects, renamed)


async def forge(objects: Objects, ref: PolicyRef, **changes: object) -> PolicyRef:
    """Rewrites the manifest, as a writer with a fault would, and refers to it."""
    document = json.loads(await objects.get(f"{ref.uri}/{MANIFEST_FILE}"))
    data = json.dumps({**document, **changes}).encode()
    await objects.put(f"{ref.uri}/{MANIFEST_FILE}", data)
    return dataclasses.replace(ref, manifest_sha256=hashlib.sha256(data).hexdigest())


async def test_swapped_tensors_are_refused(objects: Objects) -> None:
    ref = await write(objects)
    weights = deserialise(await objects.get(f"{ref.uri}/model.safetensors"))
    left, right = (f"model.layers.{layer}.mlp.up_proj.weight" for layer in (0, 1))
    weights[left], weights[right] = weights[right], weights[left]
    data = serialise(weights)
    await objects.put(f"{ref.uri}/model.safetensors", data)
    files = json.loads(await objects.get(f"{ref.uri}/{MANIFEST_FILE}"))["files"]
    forged = await forge(objects, ref, files={**files, "model.safetensors": hashlib.sha256(data).hexdigest()})
    assert "tensor checksum" in await refused(objects, forged)


async def test_wrong_canaries_are_refused(objects: Objects) -> None:
    ref = await write(objects)
    canaries = json.loads(await objects.get(f"{ref.uri}/{MANIFEST_FILE}"))["canaries"]
    canaries[2]["logprobs"][3] += 0.01
    assert "canary 2: off by" in await refused(objects, await forge(objects, ref, canaries=canaries))
    assert "canaries: the manifest has none" in await refused(objects, await forge(objects, ref, canaries=[]))


async def test_weights_nearer_to_the_parent_are_refused(objects: Objects) -> None:
    child = await read_policy(objects, await write(objects))
    canaries = tuple(
        dataclasses.replace(
            canary,
            logprobs=tuple(value - 0.7 for value in canary.logprobs),
            parent_logprobs=tuple(value + 0.3 for value in canary.logprobs),
        )
        for canary in child.manifest.canaries
    )
    # An artefact so noisy, for instance a quantised one, that its tolerance of 0.8 alone would let the parent's weights pass.
    noisy = dataclasses.replace(child.manifest, noise=0.1, canaries=canaries)
    with pytest.raises(JourneymanError, match="nearer to the parent"):
        check_loaded(child.ref, noisy, child.model)
