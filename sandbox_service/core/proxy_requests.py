"""Reads the head of a request to a forward proxy and writes the one to send on. Pure; used by adapters.egress.

Strict, so that the proxy and the server behind it cannot understand a head differently: exact line ends, no folded lines, no odd names.
The server is told the host that was checked, whatever the Host header said, and to close after its answer.
"""

import re
from dataclasses import dataclass

from sandbox_service.core.egress import Target, parse_target

HEAD_END = b"\r\n\r\n"
_REQUEST_LINE = re.compile(r"([!#$%&'*+.^_`|~0-9A-Za-z-]{1,32}) ([\x21-\x7e]+) HTTP/1\.([01])")
_FIELD = re.compile(r"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([^\r\n\0]*)")
_SCHEME = re.compile(r"http://([^/?#]*)([^#]*)(?:#.*)?", re.IGNORECASE)
_HTTP_PORT = 80
_NOT_SENT_ON = frozenset(
    {"host", "connection", "keep-alive", "proxy-connection", "proxy-authorization", "proxy-authenticate", "upgrade"}
)
_FRAMING = frozenset({"content-length", "transfer-encoding"})
"""Say where the body ends, so they are sent on whatever else is said."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProxyRequest:
    """What a client asks of the proxy."""

    target: Target
    method: str
    head: bytes | None
    """To be sent to the target before the rest; None for a tunnel (CONNECT)."""


class BadRequest(Exception):
    """Not a request that a proxy serves; says why."""


def parse_request(head: bytes) -> ProxyRequest:
    """The request whose head, up to and with the empty line, is given."""
    line, *fields = head.removesuffix(HEAD_END).decode("latin-1").split("\r\n")
    match = _REQUEST_LINE.fullmatch(line)
    if match is None:
        raise BadRequest("not a request line of HTTP/1")
    method, wanted, _ = match.groups()
    parsed = [_parse_field(field) for field in fields]
    if method == "CONNECT":
        return ProxyRequest(target=_target(wanted, None), method=method, head=None)
    place = _SCHEME.fullmatch(wanted)
    if place is None:
        raise BadRequest("this is a proxy: ask for http://HOST/PATH, or CONNECT HOST:PORT")
    authority, path = place.groups()
    target = _target(authority, _HTTP_PORT)
    path = path if path.startswith("/") else "/" + path
    return ProxyRequest(target=target, method=method, head=_rewritten(method, path, target, parsed))


def _target(authority: str, default_port: int | None) -> Target:
    try:
        return parse_target(authority, default_port)
    except ValueError as error:
        raise BadRequest(f"{authority[:100]!r}: {error}") from error


def _parse_field(field: str) -> tuple[str, str]:
    match = _FIELD.fullmatch(field)
    if match is None:
        raise BadRequest("a header line that is none")
    return match[1], match[2].rstrip(" \t")


def _rewritten(method: str, path: str, target: Target, fields: list[tuple[str, str]]) -> bytes:
    """The head for the target itself. Fields that Connection names are meant for us only."""
    named = {name.strip().lower() for key, value in fields if key.lower() == "connection" for name in value.split(",")}
    kept = [(key, value) for key, value in fields if key.lower() not in _NOT_SENT_ON | (named - _FRAMING)]
    host = str(target).removesuffix(f":{_HTTP_PORT}") if target.port == _HTTP_PORT else str(target)
    lines = [f"{method} {path} HTTP/1.1", f"Host: {host}", *(f"{key}: {value}" for key, value in kept)]
    return "\r\n".join([*lines, "Connection: close", "", ""]).encode("latin-1")
