"""Reads a file of any length in parts of moderate length. Used by the application; a part is all that is ever in memory."""

from collections.abc import AsyncGenerator, Awaitable, Callable

from journeyman.errors import ErrorCode, JourneymanError
from sandbox_service.core.programs import FilePart

PART_BYTES = 1024 * 1024
_TO_THE_END = 1 << 62


async def parts_of(
    read: Callable[[int, int], Awaitable[FilePart]], offset: int, length: int
) -> AsyncGenerator[FilePart, None]:
    """What read, called with an offset and a greatest length, gives of a file; at least one part. A negative offset counts from the end."""
    if length < 0:
        raise JourneymanError(ErrorCode.INVALID_INPUT, f"length = {length}: must not be negative; 0 means to the end")
    left = length or _TO_THE_END
    while True:
        part = await read(offset, min(left, PART_BYTES))
        yield part
        offset, left = part.start + len(part.content), left - len(part.content)
        if not part.content or left <= 0 or offset >= part.total_bytes:
            return
