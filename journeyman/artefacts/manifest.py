"""Manifest: what manifest.json of a policy says about its files, its tensors and how its weights behave.

Written by policy_write, read by policy_read; the SHA-256 of its bytes is part of the PolicyRef, so the manifest itself cannot change unseen.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from journeyman.errors import ErrorCode, JourneymanError
from journeyman.records import PolicyRef, PolicyVersion

MANIFEST_FILE = "manifest.json"
_FORMAT = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class MadeHow:
    """Where the weights come from."""

    stage: str
    """init | sft | rl."""
    metrics: Mapping[str, float] = field(default_factory=dict)
    """Figures of the step that made them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Canary:
    """A short sequence and the log-probability of each of its tokens but the first, under exactly these weights where they were made."""

    ids: tuple[int, ...]
    logprobs: tuple[float, ...]
    parent_logprobs: tuple[float, ...] | None
    """The same under the parent; None without a parent of the same vocabulary."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """manifest.json."""

    run_id: str
    version: PolicyVersion
    dtype: str
    files: Mapping[str, str]
    """SHA-256 (hex) by file name."""
    tensor_checksum: str
    """journeyman.artefacts.tensors.checksum of the weights as loaded."""
    canaries: tuple[Canary, ...]
    noise: float
    """Largest difference of a canary's log-probabilities between two ways of computing them (whole sequence, cached decoding)."""
    forbidden_ids: tuple[int, ...]
    parent: PolicyRef | None
    made_how: MadeHow

    @property
    def tolerance(self) -> float:
        """How far a canary's log-probability may be off elsewhere: another CPU or batch shape rounds differently."""
        return max(1e-4, 8 * self.noise)

    def to_json(self) -> bytes:
        """The stored document."""
        document = {
            "format": _FORMAT,
            "run_id": self.run_id,
            "version": [self.version.incarnation, self.version.step],
            "dtype": self.dtype,
            "files": dict(self.files),
            "tensor_checksum": self.tensor_checksum,
            "canaries": [
                {"ids": canary.ids, "logprobs": canary.logprobs, "parent_logprobs": canary.parent_logprobs}
                for canary in self.canaries
            ],
            "noise": self.noise,
            "forbidden_ids": self.forbidden_ids,
            "parent": policy_to_document(self.parent) if self.parent else None,
            "made_how": {"stage": self.made_how.stage, "metrics": dict(self.made_how.metrics)},
        }
        return json.dumps(document, indent=1).encode()

    @classmethod
    def from_json(cls, data: bytes, *, where: str) -> "Manifest":
        """CORRUPT where a field is missing or of another kind."""
        try:
            document = json.loads(data)
            if document["format"] != _FORMAT:
                raise ValueError(f"format {document['format']}")
            return cls(
                run_id=str(document["run_id"]),
                version=_version(document["version"]),
                dtype=str(document["dtype"]),
                files={str(name): str(digest) for name, digest in document["files"].items()},
                tensor_checksum=str(document["tensor_checksum"]),
                canaries=tuple(_canary(canary) for canary in document["canaries"]),
                noise=float(document["noise"]),
                forbidden_ids=tuple(int(identity) for identity in document["forbidden_ids"]),
                parent=policy_from_document(document["parent"]) if document["parent"] else None,
                made_how=MadeHow(
                    stage=str(document["made_how"]["stage"]),
                    metrics={str(name): float(value) for name, value in document["made_how"]["metrics"].items()},
                ),
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise JourneymanError(ErrorCode.CORRUPT, f"{where}: manifest cannot be read: {error!r}") from error


def policy_to_document(ref: PolicyRef) -> dict[str, object]:
    """JSON form of a reference."""
    version = [ref.version.incarnation, ref.version.step]
    return {"run_id": ref.run_id, "version": version, "uri": ref.uri, "manifest_sha256": ref.manifest_sha256}


def policy_from_document(document: Mapping[str, object]) -> PolicyRef:
    """Inverse of policy_to_document; KeyError, TypeError or ValueError where it is none."""
    return PolicyRef(
        run_id=str(document["run_id"]),
        version=_version(document["version"]),
        uri=str(document["uri"]),
        manifest_sha256=str(document["manifest_sha256"]),
    )


def _version(value: object) -> PolicyVersion:
    if not isinstance(value, list) or len(value) != 2:
        raise ValueError(f"version {value!r}")
    return PolicyVersion(incarnation=int(value[0]), step=int(value[1]))


def _canary(document: Mapping[str, list[float] | None]) -> Canary:
    ids, logprobs, parent = document["ids"], document["logprobs"], document["parent_logprobs"]
    if ids is None or logprobs is None or len(logprobs) != len(ids) - 1 or (parent and len(parent) != len(logprobs)):
        raise ValueError("a canary whose lengths do not match")
    return Canary(
        ids=tuple(int(identity) for identity in ids),
        logprobs=tuple(float(value) for value in logprobs),
        parent_logprobs=tuple(float(value) for value in parent) if parent else None,
    )
