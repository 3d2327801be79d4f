"""The proxy for boxes between real sockets: what passes, what is refused, what is counted and logged."""

import asyncio
import contextlib
import logging
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field

import pytest

from journeyman.errors import ErrorCode, JourneymanError
from journeyman.testing.missing import missing
from sandbox_service.adapters.egress import BoxEgress, EgressLimits, EgressProxy

Handle = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
HEAD_END = b"\r\n\r\n"
IN_A_BOX = """
import fcntl, socket, struct, sys, urllib.error, urllib.request
with socket.socket() as any_socket:
    fcntl.ioctl(any_socket, 0x8914, struct.pack("16sh14x", b"lo", 1))
connection = socket.socket(fileno=int(sys.argv[1]))
with socket.create_server(("127.0.0.1", 3128)) as listening:
    socket.send_fds(connection, [b"listening"], [listening.fileno()])
connection.recv(1)
for url in sys.argv[2:]:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({"http": "http://127.0.0.1:3128"}))
    try:
        print(opener.open(url, timeout=10).read().decode())
    except urllib.error.HTTPError as error:
        print(error.code)
    try:
        urllib.request.build_opener(urllib.request.ProxyHandler({})).open(url, timeout=10)
    except OSError:
        print("not without the proxy")
"""


@dataclass(slots=True)
class Bench:
    """Starts servers and proxies; all end with the test."""

    endings: contextlib.AsyncExitStack
    heads: list[bytes] = field(default_factory=list)
    """Heads that the servers were sent."""

    async def server(self, handle: Handle) -> int:
        """A server on 127.0.0.1; its port."""
        server = await asyncio.start_server(handle, "127.0.0.1", 0)
        self.endings.callback(server.close)
        return int(server.sockets[0].getsockname()[1])

    async def web_server(self, body: bytes = b"hello") -> int:
        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            self.heads.append(await reader.readuntil(HEAD_END))
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))
            writer.close()

        return await self.server(answer)

    async def proxy(
        self, allowed: Sequence[str], limits: EgressLimits | None = None, names: dict[str, list[str]] | None = None
    ) -> "Client":
        async def resolve(host: str, port: int) -> Sequence[str]:
            if names is None or host not in names:
                raise OSError("no such name")
            return names[host]

        listening = socket.create_server(("127.0.0.1", 0))
        port = listening.getsockname()[1]
        egress = await EgressProxy(limits, resolve).serve("box-1", listening, allowed)
        self.endings.push_async_callback(egress.close)
        return Client(port, egress)


@dataclass(frozen=True, slots=True)
class Client:
    """A program in a box."""

    port: int
    egress: BoxEgress

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection("127.0.0.1", self.port)

    async def ask(self, text: str) -> bytes:
        """Everything that comes back."""
        reader, writer = await self.connect()
        writer.write(text.encode())
        answer = await asyncio.wait_for(reader.read(), 10.0)
        writer.close()
        return answer

    async def tunnel(self, where: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        reader, writer = await self.connect()
        writer.write(f"CONNECT {where} HTTP/1.1\r\n\r\n".encode())
        assert (await reader.readuntil(HEAD_END)).startswith(b"HTTP/1.1 200 ")
        return reader, writer


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    async with contextlib.AsyncExitStack() as endings:
        yield Bench(endings)


def lines(caplog: pytest.LogCaptureFixture) -> list[dict[str, object]]:
    return [vars(record) for record in caplog.records if record.getMessage() == "egress"]


async def test_a_listed_request_passes_with_the_host_that_was_checked(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    port = await bench.web_server()
    client = await bench.proxy([f"127.0.0.1:{port}"])
    answer = await client.ask(f"GET http://127.0.0.1:{port}/x HTTP/1.1\r\nHost: other.org\r\nA: b\r\n\r\n")
    assert answer.endswith(b"\r\n\r\nhello")
    (head,) = bench.heads
    assert head == f"GET /x HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nA: b\r\nConnection: close\r\n\r\n".encode()
    await client.egress.close()
    (line,) = lines(caplog)
    assert (line["box_id"], line["host"], line["port"]) == ("box-1", "127.0.0.1", port)
    assert (line["decision"], line["out_bytes"], line["in_bytes"]) == ("allowed", len(head), len(answer))
    assert isinstance(line["seconds"], float)


async def test_another_host_is_refused_with_one_line_that_names_it_and_the_list(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    client = await bench.proxy(["example.com:443", "*.pypi.org:443"])
    for request in (
        "CONNECT evil-example.com:443 HTTP/1.1\r\n\r\n",
        "GET http://evil-example.com:443/ HTTP/1.1\r\n\r\n",
    ):
        head, _, body = (await client.ask(request)).partition(HEAD_END)
        assert head.startswith(b"HTTP/1.1 403 ")
        assert body == b"evil-example.com:443 is not on this box's list of hosts (example.com:443, *.pypi.org:443)\n"
    await client.egress.close()
    assert [(line["decision"], line["host"]) for line in lines(caplog)] == [("refused", "evil-example.com")] * 2
    assert (client.egress.use.num_requests, client.egress.use.num_refused) == (2, 2)


async def test_a_refused_upload_still_hears_why(bench: Bench) -> None:
    client = await bench.proxy([])
    reader, writer = await client.connect()
    writer.write(b"POST http://example.com/ HTTP/1.1\r\nContent-Length: 500000\r\n\r\n" + bytes(500_000))
    assert (await reader.read()).startswith(b"HTTP/1.1 403 ")
    writer.close()


@pytest.mark.parametrize(
    "near", ["127.0.0.1", "169.254.169.254", "10.0.0.1", "::1", "fd00:ec2::254", "::ffff:127.0.0.1"]
)
async def test_a_listed_name_that_leads_here_is_refused(bench: Bench, near: str) -> None:
    client = await bench.proxy(["trap.example:443"], names={"trap.example": [near]})
    answer = await client.ask("CONNECT trap.example:443 HTTP/1.1\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 403 Not a public address")
    assert near.encode() in answer


async def test_a_name_may_lead_to_an_address_that_is_listed_itself(bench: Bench) -> None:
    port = await bench.web_server()
    client = await bench.proxy(
        [f"own.example:{port}", f"127.0.0.1:{port}"], names={"own.example": ["10.255.255.1", "127.0.0.1"]}
    )
    assert (await client.ask(f"GET http://own.example:{port}/ HTTP/1.1\r\n\r\n")).endswith(b"hello")
    assert f"Host: own.example:{port}\r\n".encode() in bench.heads[0]


async def test_what_cannot_be_resolved_or_reached_is_said(bench: Bench) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    client = await bench.proxy(["gone.example:443", f"127.0.0.1:{port}"])
    assert b"502 Bad Gateway" in await client.ask("CONNECT gone.example:443 HTTP/1.1\r\n\r\n")
    assert b"cannot be reached" in await client.ask(f"CONNECT 127.0.0.1:{port} HTTP/1.1\r\n\r\n")


async def test_a_tunnel_carries_much_both_ways_and_may_be_closed_by_halves(bench: Bench) -> None:
    async def send_back(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        content = await reader.read()  # until the client has said all
        writer.write(content[::-1])
        writer.write_eof()

    port = await bench.server(send_back)
    client = await bench.proxy([f"127.0.0.1:{port}"])
    reader, writer = await client.tunnel(f"127.0.0.1:{port}")
    content = bytes(range(256)) * 8192
    writer.write(content)
    writer.write_eof()
    assert await asyncio.wait_for(reader.read(), 20.0) == content[::-1]
    writer.close()


async def test_a_slow_reader_slows_its_server_instead_of_filling_memory(bench: Bench) -> None:
    sent = 0

    async def pour(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        with contextlib.suppress(OSError):
            while sent < 1 << 28:
                writer.write(bytes(1 << 16))
                await writer.drain()
                sent += 1 << 16

    port = await bench.server(pour)
    client = await bench.proxy([f"127.0.0.1:{port}"])
    reader, writer = await client.tunnel(f"127.0.0.1:{port}")
    before = -1
    while before != sent:  # until it stands still
        before = sent
        await asyncio.sleep(0.2)
    assert 0 < sent < 1 << 26
    assert await reader.readexactly(1 << 20) == bytes(1 << 20)
    writer.close()


async def test_bytes_of_a_box_are_limited_over_all_its_connections(bench: Bench) -> None:
    port = await bench.web_server(bytes(3000))
    client = await bench.proxy([f"127.0.0.1:{port}"], EgressLimits(max_bytes=5000))
    request = f"GET http://127.0.0.1:{port}/ HTTP/1.1\r\n\r\n"
    assert len(await client.ask(request)) > 3000
    assert len(await client.ask(request)) < 3000
    assert b"403 Bytes used up" in await client.ask(request)


async def test_connections_at_once_are_limited(bench: Bench) -> None:
    async def wait(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    port = await bench.server(wait)
    client = await bench.proxy([f"127.0.0.1:{port}"], EgressLimits(max_connections=2))
    held = [await client.tunnel(f"127.0.0.1:{port}") for _ in range(2)]
    assert (await client.ask("")).startswith(b"HTTP/1.1 503 ")
    for _, writer in held:
        writer.close()


async def test_requests_of_a_box_are_limited(bench: Bench) -> None:
    client = await bench.proxy([], EgressLimits(max_requests=1))
    assert (await client.ask("CONNECT a.example:443 HTTP/1.1\r\n\r\n")).startswith(b"HTTP/1.1 403")
    with contextlib.suppress(ConnectionError):
        assert await client.ask("CONNECT a.example:443 HTTP/1.1\r\n\r\n") == b""


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("GET / HTTP/1.1\r\n\r\n", b"400"),
        ("GET http://user@example.com/ HTTP/1.1\r\n\r\n", b"400"),
        ("\x16\x03\x01 this is no HTTP\r\n\r\n", b"400"),
        ("GET http://example.com/ HTTP/1.1\r\nA: " + "x" * 20_000 + "\r\n\r\n", b"431"),
        ("GET http://example.com/ HTT", b"408"),
    ],
)
async def test_bad_heads_are_answered(bench: Bench, text: str, status: bytes) -> None:
    client = await bench.proxy([], EgressLimits(head_s=0.3))
    assert (await client.ask(text)).startswith(b"HTTP/1.1 " + status)


async def test_a_silent_tunnel_ends(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)

    async def wait(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    port = await bench.server(wait)
    client = await bench.proxy([f"127.0.0.1:{port}"], EgressLimits(idle_s=0.2))
    reader, writer = await client.tunnel(f"127.0.0.1:{port}")
    with contextlib.suppress(ConnectionError):
        assert await asyncio.wait_for(reader.read(), 10.0) == b""
    writer.close()
    assert [line["reason"] for line in lines(caplog)] == ["idle for 0.2 s"]


async def test_closing_ends_tunnels_and_the_listening_socket(bench: Bench) -> None:
    async def wait(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    port = await bench.server(wait)
    client = await bench.proxy([f"127.0.0.1:{port}"])
    reader, writer = await client.tunnel(f"127.0.0.1:{port}")
    await client.egress.close()
    with contextlib.suppress(ConnectionError):
        assert await asyncio.wait_for(reader.read(), 10.0) == b""
    writer.close()
    with pytest.raises(ConnectionRefusedError):
        await client.connect()


async def test_a_program_without_network_reaches_what_is_listed_and_nothing_else(bench: Bench) -> None:
    unshare = [shutil.which("unshare") or "unshare", *(["-n"] if os.geteuid() == 0 else ["-rn"])]
    if await asyncio.to_thread(subprocess.call, [*unshare, "true"]):
        missing("no network namespaces")
    listed, other = await bench.web_server(), await bench.web_server()
    ours, theirs = socket.socketpair()
    ours.settimeout(20.0)
    urls = [f"http://127.0.0.1:{port}/" for port in (listed, other)]
    command = [*unshare, sys.executable, "-c", IN_A_BOX, str(theirs.fileno()), *urls]
    with ours, theirs:
        process = await asyncio.create_subprocess_exec(
            *command, pass_fds=[theirs.fileno()], stdout=asyncio.subprocess.PIPE
        )
        _, fds, _, _ = await asyncio.to_thread(socket.recv_fds, ours, 100, 1)
        egress = await EgressProxy().serve("box-1", socket.socket(fileno=fds[0]), [f"127.0.0.1:{listed}"])
        bench.endings.push_async_callback(egress.close)
        ours.send(b"g")
        told, _ = await process.communicate()
    assert told.decode().split("\n") == ["hello", "not without the proxy", "403", "not without the proxy", ""]


async def test_boxes_have_lists_of_their_own(bench: Bench) -> None:
    port = await bench.web_server()
    one, other = await bench.proxy([f"127.0.0.1:{port}"]), await bench.proxy(["example.com:443"])
    request = f"GET http://127.0.0.1:{port}/ HTTP/1.1\r\n\r\n"
    assert (await one.ask(request)).endswith(b"hello")
    assert b" 403 " in await other.ask(request)


async def test_a_bad_list_is_refused(bench: Bench) -> None:
    with pytest.raises(JourneymanError, match=r"egress: 'example.com' is neither HOST:PORT") as caught:
        await bench.proxy(["example.com"])
    assert caught.value.code is ErrorCode.INVALID_INPUT
