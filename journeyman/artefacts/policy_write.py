"""Writes a policy: files first, manifest last, so a reference never names something incomplete.

Called by the trainer. build_policy is pure computation (for a worker thread), store_policy is the I/O (for the event loop); write_policy
is both. A folder from the store loads with `transformers` as it is.
"""

import asyncio
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass

from journeyman.artefacts.manifest import MANIFEST_FILE, Canary, MadeHow, Manifest
from journeyman.artefacts.tensors import (
    canary_ids,
    canary_logprobs,
    checksum,
    decoded_logprobs,
    largest_difference,
    serialise,
)
from journeyman.chat.tokenizer import ChatTokenizer
from journeyman.errors import ErrorCode, JourneymanError
from journeyman.model.qwen3 import Qwen3
from journeyman.objects.port import Objects
from journeyman.records import PolicyRef, PolicyVersion

WEIGHTS_FILE = "model.safetensors"


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltPolicy:
    """A policy ready to be stored."""

    ref: PolicyRef
    manifest: Manifest
    files: Mapping[str, bytes]
    """By name inside the folder, without manifest.json."""


def build_policy(
    *,
    run_id: str,
    version: PolicyVersion,
    model: Qwen3,
    tokenizer: ChatTokenizer,
    made_how: MadeHow,
    parent: PolicyRef | None = None,
    parent_manifest: Manifest | None = None,
) -> BuiltPolicy:
    """Serialises and describes a model. parent_manifest lets readers tell the new weights from the parent's; INTERNAL where the
    weights give a canary no finite log-probability (training diverged)."""
    weights = model.state_dict()
    files = {WEIGHTS_FILE: serialise(weights), **_small_files(model, tokenizer)}
    canaries, noise = _measure(model, tokenizer, parent_manifest)
    manifest = Manifest(
        run_id=run_id,
        version=version,
        dtype="float32",
        files={name: hashlib.sha256(content).hexdigest() for name, content in files.items()},
        tensor_checksum=checksum(weights),
        canaries=canaries,
        noise=noise,
        forbidden_ids=tuple(tokenizer.forbidden_ids),
        parent=parent,
        made_how=made_how,
    )
    ref = PolicyRef(
        run_id=run_id,
        version=version,
        uri=f"policies/{run_id}/{version}",
        manifest_sha256=hashlib.sha256(manifest.to_json()).hexdigest(),
    )
    return BuiltPolicy(ref=ref, manifest=manifest, files=files)


async def store_policy(objects: Objects, built: BuiltPolicy) -> PolicyRef:
    """Stores the files and then the manifest; storing the same policy again changes nothing."""
    for name, content in built.files.items():
        await objects.put(f"{built.ref.uri}/{name}", content)
    await objects.put(f"{built.ref.uri}/{MANIFEST_FILE}", built.manifest.to_json())
    return built.ref


async def write_policy(
    objects: Objects,
    *,
    run_id: str,
    version: PolicyVersion,
    model: Qwen3,
    tokenizer: ChatTokenizer,
    made_how: MadeHow,
    parent: PolicyRef | None = None,
    parent_manifest: Manifest | None = None,
) -> PolicyRef:
    """Builds in a thread and stores."""
    built = await asyncio.to_thread(
        build_policy,
        run_id=run_id,
        version=version,
        model=model,
        tokenizer=tokenizer,
        made_how=made_how,
        parent=parent,
        parent_manifest=parent_manifest,
    )
    return await store_policy(objects, built)


def _small_files(model: Qwen3, tokenizer: ChatTokenizer) -> dict[str, bytes]:
    generation = {
        "do_sample": True,
        "temperature": 1.0,
        "eos_token_id": tokenizer.end_id,
        "pad_token_id": tokenizer.pad_id,
        "suppress_tokens": list(tokenizer.forbidden_ids),
    }
    config = model.config.to_hf(pad_id=tokenizer.pad_id, eos_id=tokenizer.end_id)
    return {
        "config.json": json.dumps(config, indent=1).encode(),
        "generation_config.json": json.dumps(generation, indent=1).encode(),
        **tokenizer.files(max_tokens=model.config.max_position_embeddings),
    }


def _measure(model: Qwen3, tokenizer: ChatTokenizer, parent: Manifest | None) -> tuple[tuple[Canary, ...], float]:
    forbidden = tokenizer.forbidden_ids
    ids = canary_ids(model.config.vocab_size, forbidden)
    logprobs = canary_logprobs(model, ids, forbidden)
    noise = largest_difference(logprobs, decoded_logprobs(model, ids, forbidden))
    if noise == float("inf"):
        raise JourneymanError(ErrorCode.INTERNAL, "the weights give no finite log-probabilities: training has diverged")
    before = {canary.ids: canary.logprobs for canary in parent.canaries} if parent else {}
    canaries = tuple(
        Canary(ids=tuple(row), logprobs=tuple(values), parent_logprobs=before.get(tuple(row)))
        for row, values in zip(ids, logprobs, strict=True)
    )
    return canaries, noise
