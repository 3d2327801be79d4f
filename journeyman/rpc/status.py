"""ErrorCode <-> gRPC status, and the trailing metadata that carries an error to the client unchanged."""

from collections.abc import Sequence
from typing import cast

import grpc

from journeyman.errors import ErrorCode, JourneymanError

CODE_KEY = "jm-error-code"
RETRYABLE_KEY = "jm-error-retryable"

STATUS: dict[ErrorCode, grpc.StatusCode] = {
    ErrorCode.INVALID_INPUT: grpc.StatusCode.INVALID_ARGUMENT,
    ErrorCode.NOT_FOUND: grpc.StatusCode.NOT_FOUND,
    ErrorCode.CONFLICT: grpc.StatusCode.ALREADY_EXISTS,
    ErrorCode.PRECONDITION: grpc.StatusCode.FAILED_PRECONDITION,
    ErrorCode.EXHAUSTED: grpc.StatusCode.RESOURCE_EXHAUSTED,
    ErrorCode.TIMED_OUT: grpc.StatusCode.DEADLINE_EXCEEDED,
    ErrorCode.UNAVAILABLE: grpc.StatusCode.UNAVAILABLE,
    ErrorCode.CORRUPT: grpc.StatusCode.DATA_LOSS,
    ErrorCode.INTERNAL: grpc.StatusCode.INTERNAL,
}
_CODE = {
    **{status: code for code, status in STATUS.items()},
    grpc.StatusCode.CANCELLED: ErrorCode.UNAVAILABLE,  # the server stopped before it answered
    grpc.StatusCode.UNIMPLEMENTED: ErrorCode.PRECONDITION,  # another service, or an older one, listens there
}


def to_trailers(error: JourneymanError) -> tuple[tuple[str, str], ...]:
    """Trailing metadata for the error."""
    return ((CODE_KEY, error.code.value), (RETRYABLE_KEY, "1" if error.retryable else "0"))


def from_rpc_error(error: grpc.aio.AioRpcError) -> JourneymanError:
    """The server's JourneymanError, or one that fits the status where the server sent none."""
    pairs = cast("Sequence[tuple[str, str | bytes]]", tuple(error.trailing_metadata() or ()))
    trailers = dict(pairs)
    message = error.details() or error.code().name.lower()
    named = trailers.get(CODE_KEY)
    if isinstance(named, str) and named in set(ErrorCode):
        return JourneymanError(ErrorCode(named), message, retryable=trailers.get(RETRYABLE_KEY) == "1")
    return JourneymanError(_CODE.get(error.code(), ErrorCode.INTERNAL), message)
