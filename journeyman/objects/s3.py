"""S3Objects: a store in a bucket of any S3 server, through the minio client. The client blocks, so calls run in threads.

Settings name it as s3://KEY:SECRET@HOST:PORT/BUCKET[?secure=true]; the bucket is made when absent.
"""

import asyncio
import hashlib
import io
from collections.abc import Callable, Sequence
from typing import TypeVar
from urllib.parse import parse_qs, unquote, urlsplit

from minio import Minio
from minio.error import MinioException, S3Error
from urllib3.exceptions import HTTPError

from journeyman.errors import ErrorCode, JourneymanError
from journeyman.objects.folder import verified
from journeyman.objects.keys import checked
from journeyman.records import ObjectRef

Result = TypeVar("Result")
_ABSENT = ("NoSuchKey", "NoSuchObject", "NotFound")


class S3Objects:
    """Objects in one bucket."""

    def __init__(self, client: Minio, bucket: str) -> None:
        self._client, self._bucket = client, bucket
        self._has_bucket = False

    @classmethod
    def from_url(cls, url: str) -> "S3Objects":
        """INVALID_INPUT for a URL of another form."""
        parts = urlsplit(url)
        bucket = parts.path.strip("/")
        if not (parts.username and parts.password and parts.hostname and bucket) or "/" in bucket:
            form = "s3://KEY:SECRET@HOST:PORT/BUCKET[?secure=true]"
            raise JourneymanError(
                ErrorCode.INVALID_INPUT, f"objects setting: expected {form}, got host {parts.hostname!r}"
            )
        endpoint = parts.hostname + (f":{parts.port}" if parts.port else "")
        secure = parse_qs(parts.query).get("secure", ["false"])[0].lower() == "true"
        key, secret = unquote(parts.username), unquote(parts.password)
        return cls(Minio(endpoint, access_key=key, secret_key=secret, secure=secure), bucket)

    async def put(self, key: str, data: bytes) -> ObjectRef:
        """See Objects."""
        checked(key)
        await self._call(key, lambda: self._client.put_object(self._bucket, key, io.BytesIO(data), len(data)))
        return ObjectRef(uri=key, sha256=hashlib.sha256(data).hexdigest(), num_bytes=len(data))

    async def get(self, key: str) -> bytes:
        """See Objects."""
        checked(key)
        return await self._call(key, lambda: self._read(key))

    def _read(self, key: str) -> bytes:
        response = self._client.get_object(self._bucket, key)
        try:
            return bytes(response.read())
        finally:
            response.close()
            response.release_conn()

    async def get_checked(self, ref: ObjectRef) -> bytes:
        """See Objects."""
        return verified(ref, await self.get(ref.uri))

    async def exists(self, key: str) -> bool:
        """See Objects."""
        checked(key)
        try:
            await self._call(key, lambda: self._client.stat_object(self._bucket, key))
        except JourneymanError as error:
            if error.code is ErrorCode.NOT_FOUND:
                return False
            raise
        return True

    async def list(self, prefix: str) -> Sequence[str]:
        """See Objects."""

        def names() -> list[str]:
            found = self._client.list_objects(self._bucket, prefix=prefix, recursive=True)
            return sorted(str(item.object_name) for item in found)

        return await self._call(prefix, names)

    async def delete(self, key: str) -> None:
        """See Objects."""
        checked(key)
        await self._call(key, lambda: self._client.remove_object(self._bucket, key))

    async def _call(self, key: str, work: Callable[[], Result]) -> Result:
        """Runs work in a thread. NOT_FOUND for an absent key, UNAVAILABLE when the server cannot be reached or refuses."""

        def with_bucket() -> Result:
            if not self._has_bucket:
                self._make_bucket()
            return work()

        try:
            return await asyncio.to_thread(with_bucket)
        except S3Error as error:
            if error.code in _ABSENT:
                raise JourneymanError(ErrorCode.NOT_FOUND, f"no object {key!r}") from error
            raise JourneymanError(
                ErrorCode.UNAVAILABLE, f"S3 store refused {key!r}: {error.code}: {error.message}"
            ) from error
        except (MinioException, HTTPError, OSError) as error:
            raise JourneymanError(ErrorCode.UNAVAILABLE, f"S3 store cannot be reached for {key!r}: {error}") from error

    def _make_bucket(self) -> None:
        if not self._client.bucket_exists(self._bucket):
            try:
                self._client.make_bucket(self._bucket)
            except S3Error as error:
                if error.code not in ("BucketAlreadyOwnedByYou", "BucketAlreadyExists"):
                    raise
        self._has_bucket = True
