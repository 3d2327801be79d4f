"""RpcServer: a gRPC server with health, reflection and the edge interceptor. Every service's __main__ builds one."""

import socket
from collections.abc import Callable
from typing import Any

import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from journeyman.errors import ErrorCode, JourneymanError
from journeyman.rpc.server_interceptor import EdgeInterceptor

MAX_MESSAGE_BYTES = 64 * 1024 * 1024
"""A batch of box results (outputs and files) can pass gRPC's default of 4 MiB."""


class RpcServer:
    """Built, filled with servicers, started, stopped."""

    def __init__(self, listen: str) -> None:
        self._listen = listen
        self._server = grpc.aio.server(
            interceptors=(EdgeInterceptor(),),
            options=(
                ("grpc.so_reuseport", 0),
                ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
                ("grpc.max_send_message_length", MAX_MESSAGE_BYTES),
            ),
        )
        self._health = health.aio.HealthServicer()  # type: ignore[attr-defined]  # the stubs lack it
        self._names: list[str] = []
        self.port = 0
        """Port it listens on; 0 before start."""

    def add(self, add_to_server: Callable[[Any, Any], None], servicer: object, name: str) -> None:
        """Registers a servicer by its generated function and its full name, such as jm.scheduler.v1.SchedulerService."""
        add_to_server(servicer, self._server)
        self._names.append(name)

    async def start(self) -> None:
        """Listens and serves; health says NOT_SERVING until set_serving(True)."""
        health_pb2_grpc.add_HealthServicer_to_server(self._health, self._server)
        reflection.enable_server_reflection((*self._names, reflection.SERVICE_NAME, health.SERVICE_NAME), self._server)
        await self.set_serving(False)
        _try_to_bind(self._listen)
        try:
            self.port = self._server.add_insecure_port(self._listen)
        except RuntimeError as error:
            raise _not_listening(self._listen, str(error)) from error
        await self._server.start()

    async def set_serving(self, is_serving: bool) -> None:
        """What health answers for the whole server and for each service."""
        states = health_pb2.HealthCheckResponse.ServingStatus
        for name in ("", *self._names):
            await self._health.set(name, states.SERVING if is_serving else states.NOT_SERVING)

    async def stop(self, grace_s: float) -> None:
        """Refuses new calls and lets running ones finish for grace_s."""
        await self._server.stop(grace_s)


def _try_to_bind(listen: str) -> None:
    """Binds and lets go: gRPC writes lines of its own to standard error where it cannot bind, and we owe one clear line."""
    if listen.startswith("unix:"):
        return
    host, _, port = listen.rpartition(":")
    host = host.strip("[]")
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, int(port), type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
    except (OSError, ValueError, OverflowError) as error:
        raise _not_listening(listen, getattr(error, "strerror", None) or str(error)) from error


def _not_listening(listen: str, why: str) -> JourneymanError:
    message = f"cannot listen on {listen!r}: {why}; set LISTEN to a free host:port of this machine"
    return JourneymanError(ErrorCode.INVALID_INPUT, message)
