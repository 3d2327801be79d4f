"""Reads a policy and fails closed: digests, tensor checksum and canaries must match its manifest, or nothing is returned.

Called by rollout engines, trainer and examples. Every refusal is JourneymanError CORRUPT and names the check that failed; an absent
manifest is NOT_FOUND.
"""

import asyncio
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass

from safetensors import SafetensorError
from torch import Tensor

from journeyman.artefacts.manifest import MANIFEST_FILE, Manifest
from journeyman.artefacts.policy_write import WEIGHTS_FILE
from journeyman.artefacts.tensors import canary_logprobs, checksum, deserialise, largest_difference
from journeyman.chat.tokenizer import ChatTokenizer
from journeyman.errors import ErrorCode, JourneymanError
from journeyman.model.config import ModelConfig
from journeyman.model.qwen3 import Qwen3
from journeyman.objects.port import Objects
from journeyman.records import PolicyRef


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedPolicy:
    """A verified policy."""

    ref: PolicyRef
    manifest: Manifest
    model: Qwen3
    tokenizer: ChatTokenizer

    @property
    def weights(self) -> Mapping[str, Tensor]:
        """For Decoder.load."""
        return self.model.state_dict()


async def read_policy(objects: Objects, ref: PolicyRef) -> LoadedPolicy:
    """The policy of a reference, verified."""
    manifest = await read_manifest(objects, ref)
    files: dict[str, bytes] = {}
    for name, expected in manifest.files.items():
        files[name] = await _get(objects, ref, name)
        found = hashlib.sha256(files[name]).hexdigest()
        if found != expected:
            raise _corrupt(ref, f"digest of {name}: {found}, the manifest says {expected}")
    return await asyncio.to_thread(assemble, ref, manifest, files)


async def read_manifest(objects: Objects, ref: PolicyRef) -> Manifest:
    """The manifest alone, against the reference's digest and name."""
    data = await objects.get(f"{ref.uri}/{MANIFEST_FILE}")
    found = hashlib.sha256(data).hexdigest()
    if found != ref.manifest_sha256:
        raise _corrupt(ref, f"digest of {MANIFEST_FILE}: {found}, the reference says {ref.manifest_sha256}")
    manifest = Manifest.from_json(data, where=ref.uri)
    if (manifest.run_id, manifest.version) != (ref.run_id, ref.version):
        raise _corrupt(ref, f"name: the manifest is of {manifest.run_id}/{manifest.version}")
    return manifest


def assemble(ref: PolicyRef, manifest: Manifest, files: Mapping[str, bytes]) -> LoadedPolicy:
    """Loads files whose digests were checked, then checks what was loaded. CPU-bound."""
    try:
        config = ModelConfig.from_hf(json.loads(files["config.json"]), where=f"{ref.uri}/config.json")
        tokenizer = ChatTokenizer.from_json(files["tokenizer.json"])
        model = Qwen3(config).eval()
        model.load(deserialise(files[WEIGHTS_FILE]))
    except (KeyError, ValueError, RuntimeError, SafetensorError) as error:
        raise _corrupt(ref, f"content of the files: {error}") from error
    check_loaded(ref, manifest, model)
    if tuple(tokenizer.forbidden_ids) != manifest.forbidden_ids:
        raise _corrupt(ref, f"forbidden ids: {tokenizer.forbidden_ids}, the manifest says {manifest.forbidden_ids}")
    return LoadedPolicy(ref=ref, manifest=manifest, model=model, tokenizer=tokenizer)


def check_loaded(ref: PolicyRef, manifest: Manifest, model: Qwen3) -> None:
    """Tensor checksum and canaries of a model in memory; an engine calls it again after it took weights in flight."""
    found = checksum(model.state_dict())
    if found != manifest.tensor_checksum:
        raise _corrupt(ref, f"tensor checksum: {found}, the manifest says {manifest.tensor_checksum}")
    if not manifest.canaries:
        raise _corrupt(ref, "canaries: the manifest has none")
    ids = [canary.ids for canary in manifest.canaries]
    logprobs = canary_logprobs(model, ids, manifest.forbidden_ids)
    for index, (canary, row) in enumerate(zip(manifest.canaries, logprobs, strict=True)):
        difference = largest_difference([row], [canary.logprobs])
        if difference > manifest.tolerance:
            raise _corrupt(ref, f"canary {index}: off by {difference:.3g}, allowed is {manifest.tolerance:.3g}")
        if canary.parent_logprobs is None:
            continue
        # Only where the two versions can be told apart at all.
        between = largest_difference([canary.logprobs], [canary.parent_logprobs])
        if between > manifest.tolerance and largest_difference([row], [canary.parent_logprobs]) <= difference:
            raise _corrupt(ref, f"canary {index}: nearer to the parent than to {ref.version}")


async def _get(objects: Objects, ref: PolicyRef, name: str) -> bytes:
    try:
        return await objects.get(f"{ref.uri}/{name}")
    except JourneymanError as error:
        if error.code is ErrorCode.NOT_FOUND:
            raise _corrupt(ref, f"file {name}: absent") from error
        raise


def _corrupt(ref: PolicyRef, what: str) -> JourneymanError:
    return JourneymanError(ErrorCode.CORRUPT, f"policy {ref.name} at {ref.uri} is refused; {what}")
