"""Opens the object store that a setting names. The S3 client is imported only where it is asked for."""

from pathlib import Path

from journeyman.errors import ErrorCode, JourneymanError
from journeyman.objects.port import Objects


def open_objects(url: str) -> Objects:
    """file:PATH | s3://KEY:SECRET@HOST:PORT/BUCKET[?secure=true]. INVALID_INPUT names the value and these forms."""
    scheme, _, rest = url.partition(":")
    if scheme == "file" and rest:
        from journeyman.objects.folder import FolderObjects

        return FolderObjects(Path(rest))
    if scheme == "s3" and rest.startswith("//"):
        from journeyman.objects.s3 import S3Objects

        return S3Objects.from_url(url)
    raise JourneymanError(
        ErrorCode.INVALID_INPUT, f"objects {url!r}: expected file:PATH or s3://KEY:SECRET@HOST:PORT/BUCKET"
    )
