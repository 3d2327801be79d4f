"""Channels to services: default deadline, trace passed on, the server's error raised as the same JourneymanError."""

from collections.abc import AsyncGenerator, Callable
from typing import Any, TypeVar

import grpc

from journeyman.observe import trace
from journeyman.rpc import deadline
from journeyman.rpc.server import MAX_MESSAGE_BYTES
from journeyman.rpc.status import from_rpc_error

Answer = TypeVar("Answer")


def channel(target: str, timeout_s: float = 30.0) -> grpc.aio.Channel:
    """A channel to host:port. Calls without a timeout get timeout_s, or what the call being served has left."""
    options = (
        ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
        ("grpc.max_send_message_length", MAX_MESSAGE_BYTES),
        ("grpc.initial_reconnect_backoff_ms", 100),
        ("grpc.min_reconnect_backoff_ms", 100),
        ("grpc.max_reconnect_backoff_ms", 1000),
    )
    return grpc.aio.insecure_channel(target, options=options, interceptors=[CallInterceptor(timeout_s)])  # type: ignore[list-item]  # the stubs name a private union


class CallInterceptor(grpc.aio.UnaryUnaryClientInterceptor):  # type: ignore[type-arg]  # generic only in the stubs
    """Surrounds every unary call."""

    def __init__(self, timeout_s: float) -> None:
        self._timeout_s = timeout_s

    async def intercept_unary_unary(
        self,
        continuation: Callable[[grpc.aio.ClientCallDetails, Any], Any],
        client_call_details: grpc.aio.ClientCallDetails,
        request: Any,
    ) -> Any:
        """Raises JourneymanError instead of AioRpcError."""
        metadata = grpc.aio.Metadata(*(client_call_details.metadata or ()))
        if trace.current():
            metadata.add(trace.TRACEPARENT, trace.current())
        details = grpc.aio.ClientCallDetails(
            method=client_call_details.method,
            timeout=deadline.shortened(client_call_details.timeout or self._timeout_s),
            metadata=metadata,
            credentials=client_call_details.credentials,
            wait_for_ready=client_call_details.wait_for_ready,
        )
        call = await continuation(details, request)
        try:
            return await call
        except grpc.aio.AioRpcError as error:
            raise from_rpc_error(error) from error


async def read_stream(
    method: "grpc.aio.UnaryStreamMultiCallable[Any, Answer]", request: object, timeout_s: float
) -> AsyncGenerator[Answer, None]:
    """Answers of a streaming method, read as they are asked for. Leaving the loop cancels the call. Raises JourneymanError."""
    metadata = grpc.aio.Metadata()
    if trace.current():
        metadata.add(trace.TRACEPARENT, trace.current())
    call = method(request, timeout=deadline.shortened(timeout_s), metadata=metadata)
    try:
        async for answer in call:
            yield answer
    except grpc.aio.AioRpcError as error:
        raise from_rpc_error(error) from error
    finally:
        call.cancel()
