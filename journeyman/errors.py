"""The one error type. Every service raises it; one server interceptor maps it to gRPC, one client interceptor maps it back.

A failed rollout is data (a status and an attribution on its record), never one of these.
"""

from enum import StrEnum


class ErrorCode(StrEnum):
    """What went wrong, in our words; closed: journeyman.rpc.status maps every member to a gRPC status."""

    INVALID_INPUT = "invalid_input"
    NOT_FOUND = "not_found"
    CONFLICT = "conflict"
    """The id exists with other content."""
    PRECONDITION = "precondition"
    """The state of the system does not allow it, and retrying alone will not help."""
    EXHAUSTED = "exhausted"
    """A limit or quota is spent."""
    TIMED_OUT = "timed_out"
    UNAVAILABLE = "unavailable"
    """Another part is not reachable or not ready; retrying may help."""
    CORRUPT = "corrupt"
    """Stored bytes do not match their digest or schema."""
    INTERNAL = "internal"


class JourneymanError(Exception):
    """An error with a code, a message that names field, value and fix, and whether trying again may help."""

    def __init__(self, code: ErrorCode, message: str, *, retryable: bool | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.retryable = code in _RETRYABLE if retryable is None else retryable

    def __str__(self) -> str:
        return f"{self.code}: {self.message}"


_RETRYABLE = frozenset({ErrorCode.UNAVAILABLE, ErrorCode.TIMED_OUT, ErrorCode.EXHAUSTED})
