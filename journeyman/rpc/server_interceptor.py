"""The one server interceptor: trace, deadline for calls made on behalf of this one, metrics, and errors mapped to gRPC.

Wraps methods of packages /jm. only: the bundled health service writes through its context and must not be wrapped.
"""

import asyncio
import contextlib
import logging
import secrets
import time
from collections.abc import Awaitable, Callable
from typing import Any, NoReturn, TypeAlias

import grpc

from journeyman.errors import JourneymanError
from journeyman.observe import trace
from journeyman.observe.metrics import RPC_SECONDS
from journeyman.rpc import deadline
from journeyman.rpc.status import STATUS, to_trailers

log = logging.getLogger(__name__)
Context: TypeAlias = "grpc.aio.ServicerContext[Any, Any]"
Continuation = Callable[[grpc.HandlerCallDetails], Awaitable["grpc.RpcMethodHandler[Any, Any]"]]


class EdgeInterceptor(grpc.aio.ServerInterceptor):  # type: ignore[type-arg]  # generic only in the stubs
    """Surrounds every method of ours."""

    async def intercept_service(
        self, continuation: Continuation, handler_call_details: grpc.HandlerCallDetails
    ) -> "grpc.RpcMethodHandler[Any, Any]":
        """Replaces the handler of unary-unary and unary-stream methods by a wrapped one."""
        handler = await continuation(handler_call_details)
        method = str(handler_call_details.method)
        if handler is None or not method.startswith("/jm."):
            return handler
        parent = next((str(v) for k, v in handler_call_details.invocation_metadata if k == trace.TRACEPARENT), "")
        if handler.unary_unary:
            return grpc.unary_unary_rpc_method_handler(
                _wrap_unary(handler.unary_unary, method, parent),
                request_deserializer=handler.request_deserializer,
                response_serializer=handler.response_serializer,
            )
        if handler.unary_stream:
            return grpc.unary_stream_rpc_method_handler(
                _wrap_stream(handler.unary_stream, method, parent),
                request_deserializer=handler.request_deserializer,
                response_serializer=handler.response_serializer,
            )
        return handler


def _wrap_unary(call: Callable[..., Any], method: str, parent: str) -> Callable[[Any, Context], Awaitable[Any]]:
    async def wrapped(request: Any, context: Context) -> Any:
        started = time.perf_counter()
        status = "ok"
        with trace.span(parent), deadline.until(context.time_remaining()):
            try:
                return await call(request, context)
            except Exception as error:
                status = _status_of(error)
                await _abort(context, error, method)
            finally:
                RPC_SECONDS.labels(method, status).observe(time.perf_counter() - started)

    return wrapped


def _wrap_stream(call: Callable[..., Any], method: str, parent: str) -> Callable[[Any, Context], Awaitable[None]]:
    """Writes what the handler yields, and closes the handler when the call is cancelled, wherever it stood."""

    async def wrapped(request: Any, context: Context) -> None:
        started = time.perf_counter()
        status = "ok"
        with trace.span(parent), deadline.until(context.time_remaining()):
            try:
                async with contextlib.aclosing(call(request, context)) as answers:
                    async for answer in answers:
                        await context.write(answer)
            except Exception as error:
                status = _status_of(error)
                await _abort(context, error, method)
            finally:
                RPC_SECONDS.labels(method, status).observe(time.perf_counter() - started)

    return wrapped


def _status_of(error: Exception) -> str:
    """How the call ended, for the metric."""
    if isinstance(error, JourneymanError):
        return error.code.value
    return "aborted" if isinstance(error, grpc.aio.AbortError) else "internal"


async def _abort(context: Context, error: Exception, method: str) -> NoReturn:
    """Ends the call with our error, or logs an unknown one in full and lets only its id out. Always raises."""
    if isinstance(error, grpc.aio.AbortError | asyncio.CancelledError):
        raise error
    if isinstance(error, JourneymanError):
        await context.abort(STATUS[error.code], error.message, to_trailers(error))
    error_id = secrets.token_hex(6)
    log.error("unexpected error", exc_info=error, extra={"method": method, "error_id": error_id})
    await context.abort(grpc.StatusCode.INTERNAL, f"internal error {error_id}; the service's log has it in full")
