"""FolderObjects: a store in a local folder. Writes go to a temporary file and are renamed, so readers never see a part.

Survives kill -9 of any process; like most of a file system it does not promise to survive loss of power. File work is done inline: at
the sizes of one machine it takes less time than handing it to a thread.
"""

import contextlib
import hashlib
import os
import secrets
from collections.abc import Sequence
from pathlib import Path

from journeyman.errors import ErrorCode, JourneymanError
from journeyman.objects.keys import checked, checked_prefix
from journeyman.records import ObjectRef

_TEMPORARY = ".part-"


class FolderObjects:
    """Objects below `root`; the folder is made when absent."""

    def __init__(self, root: Path) -> None:
        self._root = root
        try:
            root.mkdir(parents=True, exist_ok=True)
            trial = root / f"{_TEMPORARY}{secrets.token_hex(8)}"
            trial.write_bytes(b"\0")
            trial.unlink()
        except OSError as error:
            raise JourneymanError(
                ErrorCode.INVALID_INPUT, f"objects folder {str(root)!r}: {error.strerror}; choose a writable one"
            ) from error

    async def put(self, key: str, data: bytes) -> ObjectRef:
        """See Objects. UNAVAILABLE when the disk refuses (full, read-only)."""
        target = self._root / checked(key)
        temporary = target.with_name(f"{_TEMPORARY}{secrets.token_hex(8)}")
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            temporary.write_bytes(data)
            os.replace(temporary, target)
        except OSError as error:
            with contextlib.suppress(OSError):
                temporary.unlink()
            message = (
                f"cannot write object {key!r}: {error.strerror}; free space or mend the folder {str(self._root)!r}"
            )
            raise JourneymanError(ErrorCode.UNAVAILABLE, message) from error
        return ObjectRef(uri=key, sha256=hashlib.sha256(data).hexdigest(), num_bytes=len(data))

    async def get(self, key: str) -> bytes:
        """See Objects."""
        try:
            return (self._root / checked(key)).read_bytes()
        except (FileNotFoundError, IsADirectoryError, NotADirectoryError) as error:
            raise JourneymanError(ErrorCode.NOT_FOUND, f"no object {key!r}") from error
        except OSError as error:
            raise JourneymanError(ErrorCode.UNAVAILABLE, f"cannot read object {key!r}: {error.strerror}") from error

    async def get_checked(self, ref: ObjectRef) -> bytes:
        """See Objects."""
        data = await self.get(ref.uri)
        return verified(ref, data)

    async def exists(self, key: str) -> bool:
        """See Objects."""
        return (self._root / checked(key)).is_file()

    async def list(self, prefix: str) -> Sequence[str]:
        """See Objects. The prefix is a plain string: "a/b" also finds "a/bc"."""
        folder = self._root / checked_prefix(prefix).rpartition("/")[0]
        found = (path for path in folder.rglob("*") if path.is_file() and not path.name.startswith(_TEMPORARY))
        keys = (path.relative_to(self._root).as_posix() for path in found)
        return sorted(key for key in keys if key.startswith(prefix))

    async def delete(self, key: str) -> None:
        """See Objects."""
        (self._root / checked(key)).unlink(missing_ok=True)


def verified(ref: ObjectRef, data: bytes) -> bytes:
    """The bytes, when they have the reference's digest. CORRUPT otherwise."""
    found = hashlib.sha256(data).hexdigest()
    if found != ref.sha256:
        raise JourneymanError(
            ErrorCode.CORRUPT, f"object {ref.uri!r} has digest {found[:12]}, expected {ref.sha256[:12]}"
        )
    return data
