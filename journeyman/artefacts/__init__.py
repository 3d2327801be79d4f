"""Policies in the object store: a Hugging Face folder and a manifest that lets nobody serve the wrong weights."""

from journeyman.artefacts.manifest import MadeHow, Manifest
from journeyman.artefacts.policy_read import LoadedPolicy, read_manifest, read_policy
from journeyman.artefacts.policy_write import BuiltPolicy, build_policy, store_policy, write_policy

__all__ = [
    "BuiltPolicy",
    "LoadedPolicy",
    "MadeHow",
    "Manifest",
    "build_policy",
    "read_manifest",
    "read_policy",
    "store_policy",
    "write_policy",
]
