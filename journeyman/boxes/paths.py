"""Names of files in a box. Used at every edge that takes such a name."""

from journeyman.errors import ErrorCode, JourneymanError

MAX_PATH_CHARS = 1024


def checked_path(path: str) -> str:
    """The path itself. INVALID_INPUT unless it is relative, non-empty and has no empty, "." or ".." part and no NUL."""
    parts = path.split("/")
    if not path or len(path) > MAX_PATH_CHARS or "\0" in path or any(part in ("", ".", "..") for part in parts):
        message = f"file path {path[:80]!r} must be relative to the working folder, without empty, '.' or '..' parts"
        raise JourneymanError(ErrorCode.INVALID_INPUT, message)
    return path
