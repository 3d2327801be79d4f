"""Keys of objects: relative paths that stay inside the store."""

from journeyman.errors import ErrorCode, JourneymanError


def checked(key: str) -> str:
    """The key itself. INVALID_INPUT when it is empty, absolute, or has an empty, "." or ".." part or a NUL."""
    parts = key.split("/")
    if not key or "\0" in key or any(part in ("", ".", "..") for part in parts):
        raise JourneymanError(
            ErrorCode.INVALID_INPUT, f"object key {key!r} must be a relative path without '.', '..' or empty parts"
        )
    return key


def checked_prefix(prefix: str) -> str:
    """The prefix itself. INVALID_INPUT as for a key, but it may be empty and may end with a slash."""
    if prefix:
        checked(prefix.removesuffix("/"))
    return prefix
