"""Whom a box may talk to: entries of an allow-list, targets of requests, addresses that are never reached by name. Pure; used by the proxy.

Entries are "HOST:PORT" or "*.DOMAIN:PORT" (any depth below the domain, not the domain itself). Both sides are brought to one form first:
lower case, no trailing dot, internationalized names as punycode, addresses as ipaddress writes them. What cannot be is refused.
"""

import ipaddress
import re
from collections.abc import Sequence
from dataclasses import dataclass

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

_LABEL = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?")
_NUMERIC_LABEL = re.compile(r"[0-9]+|0x[0-9a-f]*")
_PORT = re.compile(r"[0-9]{1,5}")
_MAX_HOST_CHARS = 253
_MAX_PORT = 65535
_WILDCARD = "*."
_NEAR = tuple(map(ipaddress.ip_network, ("168.63.129.16/32", "192.0.0.0/24", "64:ff9b:1::/48", "fec0::/10")))
"""Public to some releases of ipaddress, but answered by the machine's own cloud or network."""
_NAT64 = ipaddress.ip_network("64:ff9b::/96")


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Where a request wants to go."""

    host: str
    """In the one form; an address without brackets."""
    port: int

    @property
    def address(self) -> Address | None:
        """Where the host is an address and no name."""
        return _as_address(self.host)

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Entry:
    target: Target
    covers_subdomains: bool

    def matches(self, target: Target) -> bool:
        if self.target.port != target.port:
            return False
        if self.covers_subdomains:
            return target.address is None and target.host.endswith("." + self.target.host)
        return target.host == self.target.host


class AllowList:
    """What one box may reach."""

    def __init__(self, entries: Sequence[str]) -> None:
        """ValueError names the entry that is none."""
        self._entries = tuple(_parse_entry(text) for text in entries)
        self.text = ", ".join(entries) or "empty"
        """As it was given, for messages."""

    def allows(self, target: Target) -> bool:
        """Whether a request may go there."""
        return any(entry.matches(target) for entry in self._entries)

    def allows_address(self, address: Address, port: int) -> bool:
        """Whether a name that resolved to address may be connected: it is public, or is on the list itself."""
        return is_public(address) or self.allows(Target(host=str(_unmapped(address)), port=port))


def parse_target(authority: str, default_port: int | None = None) -> Target:
    """HOST:PORT of a request. ValueError where it is none, or hides something (user info, other spellings of addresses)."""
    host, port = _split_port(authority)
    if port is None:
        port = default_port
    if port is None:
        raise ValueError("no port")
    return Target(host=_canonical_host(host), port=port)


def is_public(address: Address) -> bool:
    """Whether an address is one of the internet at large: not of this host, its networks, or its cloud's own services."""
    plain = _unmapped(address)
    if isinstance(plain, ipaddress.IPv6Address):
        inner = plain.sixtofour or (plain.teredo[1] if plain.teredo else None)
        if inner is None and plain in _NAT64:
            inner = ipaddress.IPv4Address(int(plain) & 0xFFFFFFFF)
        if inner is not None:
            return is_public(inner)
    return plain.is_global and not plain.is_multicast and not any(plain in network for network in _NEAR)


def _parse_entry(text: str) -> _Entry:
    covers_subdomains = text.startswith(_WILDCARD)
    try:
        target = parse_target(text.removeprefix(_WILDCARD))
    except ValueError as error:
        raise ValueError(f"{text!r} is neither HOST:PORT nor *.DOMAIN:PORT ({error})") from error
    if covers_subdomains and target.address is not None:
        raise ValueError(f"{text!r}: an address has no subdomains")
    return _Entry(target=target, covers_subdomains=covers_subdomains)


def _split_port(authority: str) -> tuple[str, int | None]:
    if authority.startswith("["):
        host, closed, rest = authority[1:].partition("]")
        if not closed or ":" not in host or (rest and not rest.startswith(":")):
            raise ValueError("brackets without an IPv6 address")
        text = rest[1:] if rest else None
    else:
        host, colon, after = authority.partition(":")
        text = after if colon else None
    if text is None:
        return host, None
    if not _PORT.fullmatch(text) or not 1 <= int(text) <= _MAX_PORT:
        raise ValueError("a port that is no number from 1 to 65535")
    return host, int(text)


def _canonical_host(host: str) -> str:
    if ":" in host:
        return str(_unmapped(_checked_address(host)))
    if not host.isascii():
        try:
            host = host.encode("idna").decode("ascii")
        except UnicodeError as error:
            raise ValueError("a host name that is no international one") from error
    host = host.lower().removesuffix(".")
    labels = host.split(".")
    if len(host) > _MAX_HOST_CHARS or not all(_LABEL.fullmatch(label) for label in labels):
        raise ValueError("a host name with characters or lengths that none has")
    if _NUMERIC_LABEL.fullmatch(labels[-1]):  # a resolver would take it for an address, in whatever spelling
        return str(_checked_address(host))
    return host


def _checked_address(text: str) -> Address:
    try:
        address = ipaddress.ip_address(text)
    except ValueError as error:
        raise ValueError("an address in no standard spelling") from error
    if isinstance(address, ipaddress.IPv6Address) and address.scope_id is not None:
        raise ValueError("an address with a zone")
    return address


def _as_address(host: str) -> Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


def _unmapped(address: Address) -> Address:
    """IPv4 where IPv6 only wraps it."""
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return mapped or address
