"""Heads of requests to the proxy: what is sent on, and what is refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox_service.core.proxy_requests import BadRequest, parse_request


def test_a_tunnel_has_nothing_to_send() -> None:
    request = parse_request(b"CONNECT example.com:443 HTTP/1.1\r\nHost: example.com:443\r\n\r\n")
    assert (str(request.target), request.method, request.head) == ("example.com:443", "CONNECT", None)


@pytest.mark.parametrize(
    ("wanted", "first", "host"),
    [
        ("http://example.com/a/b?c=d", "GET /a/b?c=d HTTP/1.1", "example.com"),
        ("HTTP://EXAMPLE.com:80", "GET / HTTP/1.1", "example.com"),
        ("http://example.com:8080?q#part", "GET /?q HTTP/1.1", "example.com:8080"),
        ("http://[::1]:81/x", "GET /x HTTP/1.1", "[::1]:81"),
        ("http://[::1]/x", "GET /x HTTP/1.1", "[::1]"),
        ("http://example.com/http://other/@x", "GET /http://other/@x HTTP/1.1", "example.com"),
    ],
)
def test_a_request_is_rewritten_for_its_server(wanted: str, first: str, host: str) -> None:
    head = parse_request(f"GET {wanted} HTTP/1.1\r\nHost: other.org\r\nhost: third\r\n\r\n".encode()).head
    assert head is not None
    assert head.decode().split("\r\n") == [first, f"Host: {host}", "Connection: close", "", ""]


def test_fields_for_the_proxy_alone_stay_here() -> None:
    text = (
        "POST http://example.com/ HTTP/1.0\r\nContent-Length: 3\r\nProxy-Authorization: x\r\nConnection: keep-alive, X-Own, Content-Length\r\n"
        "X-Own: 1\r\nAccept:  */* \r\nUpgrade: websocket\r\nProxy-Connection: keep-alive\r\nEmpty:\r\n\r\n"
    )
    head = parse_request(text.encode()).head or b""
    assert head.decode().split("\r\n")[1:-2] == [
        "Host: example.com",
        "Content-Length: 3",
        "Accept: */*",
        "Empty: ",
        "Connection: close",
    ]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\r\n",
        "GET / HTTP/1.1",
        "GET example.com/ HTTP/1.1",
        "GET https://example.com/ HTTP/1.1",
        "GET ftp://example.com/ HTTP/1.1",
        "GET http:/example.com/ HTTP/1.1",
        "GET http:///x HTTP/1.1",
        "GET http://user@example.com/ HTTP/1.1",
        "GET http://example.com:80@evil.org/ HTTP/1.1",
        "GET http://example.com\\@evil.org/ HTTP/1.1",
        "GET http://127.1/ HTTP/1.1",
        "GET  http://example.com/ HTTP/1.1",
        "GET http://example.com/ HTTP/2",
        "GET http://example.com/ HTTP/1.1 x",
        "GET http://example.com/\x01 HTTP/1.1",
        "GET\nhttp://example.com/ HTTP/1.1",
        "G<T http://example.com/ HTTP/1.1",
        "CONNECT example.com HTTP/1.1",
        "CONNECT http://example.com:443 HTTP/1.1",
        "CONNECT example.com:443/x HTTP/1.1",
        "CONNECT user@example.com:443 HTTP/1.1",
        "GET http://example.com/ HTTP/1.1\r\nHost : x",
        "GET http://example.com/ HTTP/1.1\r\n Folded: x",
        "GET http://example.com/ HTTP/1.1\r\nA: x\r\n folded",
        "GET http://example.com/ HTTP/1.1\r\nA: x\nHost: y",
        "GET http://example.com/ HTTP/1.1\r\nA: x\rHost: y",
        "GET http://example.com/ HTTP/1.1\r\nno colon",
        "GET http://example.com/ HTTP/1.1\r\n: x",
        "GET http://example.com/ HTTP/1.1\r\nA: \0",
    ],
)
def test_what_is_no_request_is_refused(text: str) -> None:
    with pytest.raises(BadRequest):
        parse_request(f"{text}\r\n\r\n".encode("latin-1"))


@given(head=st.binary(max_size=200))
def test_no_bytes_break_the_reader(head: bytes) -> None:
    for start in (b"", b"GET http://example.com/ HTTP/1.1\r\n", b"GET http://", b"CONNECT "):
        try:
            request = parse_request(start + head + b"\r\n\r\n")
        except BadRequest:
            continue
        assert request.head is None or request.head.endswith(b"\r\nConnection: close\r\n\r\n")
        assert request.head is None or request.head.count(b"\r\nHost: ") == 1
