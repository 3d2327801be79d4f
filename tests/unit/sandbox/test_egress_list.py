"""Whom a box may reach: the pure rules."""

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox_service.core.egress import AllowList, is_public, parse_target

LABEL = st.from_regex(r"[a-z]([a-z0-9-]{0,10}[a-z0-9])?", fullmatch=True)
NAME = st.lists(LABEL, min_size=2, max_size=4).map(".".join)


@pytest.mark.parametrize(
    ("entry", "wanted", "is_allowed"),
    [
        ("example.com:443", "example.com:443", True),
        ("example.com:443", "EXAMPLE.Com:443", True),
        ("example.com:443", "example.com.:443", True),
        ("Example.COM.:443", "example.com:443", True),
        ("example.com:443", "example.com:80", False),
        ("example.com:443", "www.example.com:443", False),
        ("example.com:443", "evil-example.com:443", False),
        ("example.com:443", "example.com.evil.org:443", False),
        ("example.com:443", "example.co:443", False),
        ("*.example.com:443", "www.example.com:443", True),
        ("*.example.com:443", "a.b.example.com:443", True),
        ("*.example.com:443", "WWW.example.com.:443", True),
        ("*.example.com:443", "example.com:443", False),
        ("*.example.com:443", "evil-example.com:443", False),
        ("*.example.com:443", "www.example.com.evil.org:443", False),
        ("bücher.example:443", "xn--bcher-kva.example:443", True),
        ("xn--bcher-kva.example:443", "BÜCHER.example:443", True),
        ("*.bücher.example:443", "www.xn--bcher-kva.example:443", True),
        ("example.com:443", "example。com:443", True),
        ("127.0.0.1:80", "127.0.0.1:80", True),
        ("127.0.0.1:80", "localhost:80", False),
        ("localhost:80", "127.0.0.1:80", False),
        ("*.0.0.1:80", "127.0.0.1:80", None),
        ("127.0.0.1:80", "[::ffff:127.0.0.1]:80", True),
        ("127.0.0.1:80", "[::ffff:7f00:1]:80", True),
        ("[::1]:80", "[0:0:0:0:0:0:0:1]:80", True),
        ("[::1]:80", "[::2]:80", False),
        ("*.1:80", "127.0.0.1:80", None),
    ],
)
def test_entries_match_what_they_say(entry: str, wanted: str, is_allowed: bool | None) -> None:
    if is_allowed is None:
        with pytest.raises(ValueError, match="address"):
            AllowList([entry])
    else:
        assert AllowList([entry]).allows(parse_target(wanted)) is is_allowed


@pytest.mark.parametrize(
    "wanted",
    [
        "user@example.com:443",
        "example.com@evil.org:443",
        "example.com:443@evil.org:443",
        "example.com:pass@evil.org:443",
        "example.com",
        "example.com:",
        "example.com:0",
        "example.com:65536",
        "example.com:-1",
        "example.com:+443",
        "example.com:4 3",
        "example.com:44３",
        "example.com:443:443",
        "example.com:000443",
        ":443",
        "..:443",
        "example..com:443",
        ".example.com:443",
        "example.com..:443",
        "exa mple.com:443",
        "example.com\0.evil.org:443",
        "example.com%2eevil.org:443",
        "example.com/evil:443",
        "example.com\\evil:443",
        "example.com?x:443",
        "example.com#x:443",
        "-example.com:443",
        "a" * 64 + ".com:443",
        ".".join(["abcdefgh"] * 30) + ":443",
        "127.1:80",
        "0x7f.0.0.1:80",
        "0x7f000001:80",
        "2130706433:80",
        "0177.0.0.1:80",
        "127.0.0.01:80",
        "1.2.3.4.5:80",
        "example.0x1:80",
        "::1:80",
        "[::1:80",
        "[127.0.0.1]:80",
        "[example.com]:80",
        "[::1]80",
        "[::1]",
        "[fe80::1%25eth0]:80",
        "[fe80::1%eth0]:80",
    ],
)
def test_what_is_no_target_is_refused(wanted: str) -> None:
    with pytest.raises(ValueError, match=" "):
        parse_target(wanted)


@pytest.mark.parametrize("entry", ["", "example.com", "*:443", "*.:443", "*", "ex*mple.com:443", "www.*.com:443"])
def test_a_bad_entry_is_named(entry: str) -> None:
    with pytest.raises(ValueError, match="neither HOST:PORT"):
        AllowList([entry])


def test_an_empty_list_allows_nothing() -> None:
    assert not AllowList([]).allows(parse_target("example.com:443"))


@pytest.mark.parametrize(
    "address",
    [
        *(
            "127.0.0.1",
            "127.9.9.9",
            "10.0.0.1",
            "172.16.0.1",
            "192.168.0.1",
            "169.254.169.254",
            "100.64.0.1",
            "0.0.0.0",
        ),
        *("255.255.255.255", "224.0.0.1", "100.100.100.200", "168.63.129.16", "192.0.0.192", "198.18.0.1", "240.0.0.1"),
        *("::", "::1", "fe80::1", "fc00::1", "fd00:ec2::254", "ff02::1", "::ffff:127.0.0.1", "::ffff:10.0.0.1"),
        *("64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "2002:7f00:1::", "2002:a00:1::", "fec0::1", "64:ff9b:1::1"),
    ],
)
def test_own_and_near_addresses_are_not_public(address: str) -> None:
    near = ipaddress.ip_address(address)
    assert not is_public(near)
    assert not AllowList(["example.com:443"]).allows_address(near, 443)
    written = f"[{address}]" if ":" in address else address
    assert AllowList([f"{written}:443"]).allows_address(near, 443)
    assert not AllowList([f"{written}:443"]).allows_address(near, 80)


@pytest.mark.parametrize(
    "address", ["1.1.1.1", "93.184.216.34", "2606:4700::1111", "::ffff:1.1.1.1", "64:ff9b::101:101"]
)
def test_the_internet_is_public(address: str) -> None:
    assert is_public(ipaddress.ip_address(address))


@given(name=NAME, port=st.integers(1, 65535))
def test_a_name_is_allowed_in_every_spelling_and_nothing_near_it_is(name: str, port: int) -> None:
    allowed = AllowList([f"{name}:{port}"])
    for spelling in (name, name.upper(), name + ".", name.title() + "."):
        assert allowed.allows(parse_target(f"{spelling}:{port}"))
    for other in (f"x{name}", f"x-{name}", f"x.{name}", f"{name}x", f"{name}.x"):
        assert not allowed.allows(parse_target(f"{other}:{port}"))


@given(name=NAME, below=NAME, port=st.integers(1, 65535))
def test_a_wildcard_covers_what_is_below_its_domain_only(name: str, below: str, port: int) -> None:
    allowed = AllowList([f"*.{name}:{port}"])
    assert allowed.allows(parse_target(f"{below}.{name}:{port}"))
    for other in (name, f"{below}{name}", f"{name}.{below}x"):
        assert allowed.allows(parse_target(f"{other}:{port}")) == other.endswith(f".{name}")


@given(text=st.text(max_size=60))
def test_any_text_is_a_target_in_one_form_or_refused(text: str) -> None:
    try:
        target = parse_target(text)
    except ValueError:
        return
    assert parse_target(str(target)) == target
    assert target.host.isascii()
    assert not set(target.host) & set("@/\\?# \0%[]")


@given(address=st.ip_addresses(v=4))
def test_wrapping_an_address_changes_nothing(address: ipaddress.IPv4Address) -> None:
    mapped = ipaddress.IPv6Address(f"::ffff:{address}")
    assert is_public(mapped) == is_public(address) == is_public(ipaddress.IPv6Address((0x64FF9B << 96) + int(address)))
