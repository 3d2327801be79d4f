"""Objects: immutable payloads under keys. Implementations: folder (atomic writes, default), S3 (minio client). One contract suite."""

from collections.abc import Sequence
from typing import Protocol

from journeyman.records import ObjectRef


class Objects(Protocol):
    """A store of objects. Keys are relative paths with forward slashes: trajectories/..., policies/..., checkpoints/..."""

    async def put(self, key: str, data: bytes) -> ObjectRef:
        """Stores atomically, replacing: readers see the old bytes or the new, never a part."""
        ...

    async def get(self, key: str) -> bytes:
        """NOT_FOUND when absent."""
        ...

    async def get_checked(self, ref: ObjectRef) -> bytes:
        """As get; CORRUPT when the digest differs."""
        ...

    async def exists(self, key: str) -> bool: ...

    async def list(self, prefix: str) -> Sequence[str]:
        """Keys below the prefix, sorted."""
        ...

    async def delete(self, key: str) -> None:
        """No error when absent."""
        ...
