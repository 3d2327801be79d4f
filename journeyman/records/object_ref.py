"""ObjectRef: an immutable object in the store, named by key and digest."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectRef:
    """Key, SHA-256 (hex) and length of stored bytes."""

    uri: str
    sha256: str
    num_bytes: int
