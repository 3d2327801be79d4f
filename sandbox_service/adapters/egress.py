"""The way out for boxes that may reach some hosts: a forward proxy (HTTP, and CONNECT for the rest) that admits only what is on a box's list.

Whoever makes boxes calls serve with a socket that listens inside the box; names are resolved and connections made here, on the service's
side, so the box needs no other network. A name that leads to this host, its networks or its cloud is refused unless the address itself is
on the list. Every request is one log line.
"""

import asyncio
import contextlib
import ipaddress
import logging
import socket
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from journeyman.errors import ErrorCode, JourneymanError
from sandbox_service.adapters.egress_relay import ByteBudget, Relay, RelayEnded, Wire
from sandbox_service.core.egress import AllowList, Target
from sandbox_service.core.proxy_requests import HEAD_END, BadRequest, ProxyRequest, parse_request

log = logging.getLogger(__name__)

PROXY_PORT = 3128
"""Where programs in a box find the proxy, on 127.0.0.1."""
_ESTABLISHED = b"HTTP/1.1 200 Connection established\r\n\r\n"
_FAREWELL_S = 1.0
_FAREWELL_BYTES = 1024 * 1024
_MAX_LIST_CHARS = 500

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]
"""Addresses of a host name. OSError where there are none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EgressLimits:
    """Of each box."""

    max_connections: int = 32
    """At once."""
    max_requests: int = 10_000
    """During the box's life, refused ones too: each is a line in the log."""
    max_bytes: int = 256 * 1024 * 1024
    """Both directions and all connections together, during the box's life."""
    max_head_bytes: int = 16 * 1024
    head_s: float = 10.0
    """From a connection's start to the end of its request's head."""
    connect_s: float = 10.0
    idle_s: float = 60.0
    """Without a byte in either direction."""


@dataclass(slots=True)
class EgressUse:
    """What a box has done."""

    num_requests: int = 0
    num_refused: int = 0
    out_bytes: int = 0
    in_bytes: int = 0


class _Refusal(Exception):
    """Ends a request with a status."""

    def __init__(self, status: str, reason: str) -> None:
        super().__init__(reason)
        self.status = status


async def resolve_by_system(host: str, port: int) -> Sequence[str]:
    """By the service's own resolver."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(place[0]) for *_, place in found))


class BoxEgress:
    """One box's way out. Made by EgressProxy.serve."""

    def __init__(self, box_id: str, allowed: AllowList, limits: EgressLimits, resolve: Resolve) -> None:
        self._box_id = box_id
        self._allowed = allowed
        self._limits = limits
        self._resolve = resolve
        self._budget = ByteBudget(limits.max_bytes)
        self._connections: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None
        self.use = EgressUse()

    async def start(self, listening: socket.socket) -> None:
        """Takes the socket over."""
        listening.setblocking(False)
        self._server = await asyncio.start_server(self._accept, sock=listening, limit=self._limits.max_head_bytes)

    async def close(self) -> None:
        """Ends every connection."""
        if self._server is not None:
            self._server.close()
        for task in list(self._connections):
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.use.num_requests += 1
        if (
            self.use.num_requests > self._limits.max_requests
            or len(self._connections) > 2 * self._limits.max_connections
        ):
            writer.transport.abort()
            return
        task = asyncio.ensure_future(self._serve(Wire(reader, writer)))
        self._connections.add(task)
        task.add_done_callback(self._connections.discard)

    async def _serve(self, box: Wire) -> None:
        """One connection: one request, logged."""
        started_s = asyncio.get_running_loop().time()
        record = _Record()
        try:
            await self._answer(box, record)
        except _Refusal as refusal:
            record.decision, record.reason = "refused", str(refusal)
            self.use.num_refused += 1
            with contextlib.suppress(OSError, RuntimeError, TimeoutError):
                await _say_farewell(box, refusal)
        except (RelayEnded, OSError) as error:
            record.reason = str(error)
        except asyncio.CancelledError:
            record.reason = "the box has ended"
            raise
        finally:
            box.abort()
            self.use.out_bytes += record.out_bytes
            self.use.in_bytes += record.in_bytes
            self._log(record, asyncio.get_running_loop().time() - started_s)

    async def _answer(self, box: Wire, record: "_Record") -> None:
        request = await self._read_request(box)
        record.target = request.target
        if not self._allowed.allows(request.target):
            names = self._allowed.text[:_MAX_LIST_CHARS]
            raise _Refusal("403 Not on the list", f"{request.target} is not on this box's list of hosts ({names})")
        if self._budget.left <= 0:
            raise _Refusal("403 Bytes used up", f"the box has used up its {self._limits.max_bytes} bytes")
        server = await self._connect(request.target)
        try:
            record.decision = "allowed"
            if request.head is None:
                box.writer.write(_ESTABLISHED)
            else:
                server.writer.write(request.head)
            relay = Relay(box, server, self._budget, self._limits.idle_s)
            try:
                await relay.run(after_server_s=None if request.head is None else _FAREWELL_S)
                async with asyncio.timeout(self._limits.idle_s):
                    await _flush(box)
            finally:
                record.out_bytes = relay.out_bytes + len(request.head or b"")
                record.in_bytes = relay.in_bytes
        finally:
            server.abort()

    async def _read_request(self, box: Wire) -> ProxyRequest:
        if len(self._connections) > self._limits.max_connections:
            raise _Refusal(
                "503 Too many connections", f"a box may have {self._limits.max_connections} connections at once"
            )
        try:
            async with asyncio.timeout(self._limits.head_s):
                return parse_request(await box.reader.readuntil(HEAD_END))
        except TimeoutError:
            raise _Refusal("408 Request Timeout", f"no whole request within {self._limits.head_s:g} s") from None
        except asyncio.LimitOverrunError:
            raise _Refusal(
                "431 Request Header Fields Too Large", f"a head of more than {self._limits.max_head_bytes} bytes"
            ) from None
        except asyncio.IncompleteReadError as error:
            raise _Refusal("400 Bad Request", f"a head cut off after {len(error.partial)} bytes") from None
        except BadRequest as error:
            raise _Refusal("400 Bad Request", str(error)) from None

    async def _connect(self, target: Target) -> Wire:
        """To the first address that answers."""
        cause = "no answer"
        for address in await self._addresses(target):
            try:
                async with asyncio.timeout(self._limits.connect_s):
                    return Wire(*await asyncio.open_connection(address, target.port))
            except TimeoutError:
                cause = f"no answer within {self._limits.connect_s:g} s"
            except OSError as error:
                cause = error.strerror or str(error)
        raise _Refusal("502 Bad Gateway", f"{target} cannot be reached: {cause}")

    async def _addresses(self, target: Target) -> Sequence[str]:
        if target.address is not None:
            return [target.host]  # on the list as it is
        try:
            async with asyncio.timeout(self._limits.connect_s):
                found = await self._resolve(target.host, target.port)
        except (OSError, UnicodeError) as error:
            raise _Refusal("502 Bad Gateway", f"{target.host} cannot be resolved: {error or 'no answer'}") from None
        allowed = [text for text in found if self._allowed.allows_address(ipaddress.ip_address(text), target.port)]
        if not allowed:
            reason = f"{target} leads to an address that is not public ({', '.join(found)}) and not on this box's list"
            raise _Refusal("403 Not a public address", reason)
        return allowed

    def _log(self, record: "_Record", seconds: float) -> None:
        line = {"box_id": self._box_id, "decision": record.decision, "reason": record.reason, "seconds": seconds}
        where = {} if record.target is None else {"host": record.target.host, "port": record.target.port}
        log.info("egress", extra=line | where | {"out_bytes": record.out_bytes, "in_bytes": record.in_bytes})


class EgressProxy:
    """Serves boxes, each on a socket of its own with a list of its own."""

    def __init__(self, limits: EgressLimits | None = None, resolve: Resolve = resolve_by_system) -> None:
        self._limits = limits or EgressLimits()
        self._resolve = resolve

    async def serve(self, box_id: str, listening: socket.socket, allowed: Sequence[str]) -> BoxEgress:
        """Serves until the handle is closed; the socket is closed with it. INVALID_INPUT names a bad entry of the list."""
        egress = BoxEgress(box_id, checked_list(allowed), self._limits, self._resolve)
        await egress.start(listening)
        return egress


def checked_list(allowed: Sequence[str]) -> AllowList:
    """The list. INVALID_INPUT names a bad entry."""
    try:
        return AllowList(allowed)
    except ValueError as error:
        raise JourneymanError(ErrorCode.INVALID_INPUT, f"egress: {error}") from error


@dataclass(slots=True)
class _Record:
    """Of one request, for the log."""

    target: Target | None = None
    decision: str = "refused"
    reason: str = ""
    out_bytes: int = 0
    in_bytes: int = 0


async def _say_farewell(box: Wire, refusal: _Refusal) -> None:
    """Answers, and takes what the client still sends: closing at once could cost it the answer."""
    body = f"{refusal}\n".encode(errors="replace")
    head = f"HTTP/1.1 {refusal.status}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {len(body)}\r\n"
    box.writer.write(f"{head}Connection: close\r\n\r\n".encode() + body)
    async with asyncio.timeout(_FAREWELL_S):
        await _flush(box)
        left = _FAREWELL_BYTES
        while left > 0 and (data := await box.reader.read(left)):
            left -= len(data)


async def _flush(box: Wire) -> None:
    """Waits until the kernel has all that was written."""
    box.writer.transport.set_write_buffer_limits(high=0)
    await box.writer.drain()
    with contextlib.suppress(OSError, RuntimeError):
        box.writer.write_eof()
