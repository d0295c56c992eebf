"""No URL leads from here into the private network."""

from __future__ import annotations

import socket
from typing import Any

import pytest

from runs.egress import check_url, parse_url, permitted_addresses, refusal
from runs.errors import EgressRefused


@pytest.fixture
def resolver(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Make every name resolve to the given addresses."""

    def to(*addresses: str) -> None:
        def getaddrinfo(host: str, port: int, **_: Any) -> list[Any]:
            return [(None, None, None, "", (address, port)) for address in addresses]

        monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)

    return to


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "127.8.8.8",
        "10.1.2.3",
        "172.16.0.1",
        "192.168.1.1",
        "100.64.0.1",
        "0.0.0.0",
        "169.254.1.1",
        "169.254.169.254",
        "224.0.0.1",
        "255.255.255.255",
        "192.0.2.1",
        "::1",
        "::",
        "fe80::1",
        "fe80::1%eth0",
        "fc00::1",
        "fd00:ec2::254",
        "ff02::1",
        "::ffff:127.0.0.1",
        "::ffff:10.0.0.1",
        "::127.0.0.1",
        "64:ff9b::7f00:1",
        "2002:7f00:1::",
        "not an address",
    ],
)
def test_an_address_that_is_not_public_is_refused(address: str) -> None:
    assert refusal(address, allow_private=False)


@pytest.mark.parametrize(
    "address", ["93.184.216.34", "2606:4700::1111", "::ffff:93.184.216.34", "64:ff9b::5db8:d822"]
)
def test_a_public_address_is_permitted(address: str) -> None:
    assert refusal(address, allow_private=False) is None


@pytest.mark.parametrize("address", ["127.0.0.1", "10.1.2.3", "::1", "fc00::1", "100.64.0.1"])
def test_private_addresses_are_permitted_where_the_host_says_so(address: str) -> None:
    assert refusal(address, allow_private=True) is None


@pytest.mark.parametrize(
    "address",
    [
        "169.254.169.254",
        "::ffff:169.254.169.254",
        "fd00:ec2::254",
        "169.254.1.1",
        "224.0.0.1",
        "0.0.0.0",
        "240.0.0.1",
    ],
)
def test_metadata_link_local_and_multicast_stay_refused_even_then(address: str) -> None:
    assert refusal(address, allow_private=True)


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("http://example.com/", "https"),
        ("ftp://example.com/", "https"),
        ("file:///etc/passwd", "https"),
        ("//example.com/", "https"),
        ("https://user:pw@example.com/", "credentials"),
        ("https://@example.com/", "credentials"),
        ("https:///path", "no host"),
        ("https://example.com:99999/", "host and port"),
        ("https://[::1/", "host and port"),
        ("https://exa mple.com/", "not allowed"),
        ("https://example.com\\@127.0.0.1/", "not allowed"),
        ("https://example.com/\r\nX: y", "not allowed"),
        ("https://example.com/" + "a" * 2048, "longer"),
    ],
)
def test_a_url_that_is_not_plain_https_is_refused(url: str, words: str) -> None:
    with pytest.raises(EgressRefused, match=words):
        parse_url(url, allow_private=False)


def test_odd_ports_are_fine() -> None:
    assert parse_url("https://example.com:8443/mcp", allow_private=False) == ("example.com", 8443)
    assert parse_url("http://example.com/mcp", allow_private=True) == ("example.com", 80)


@pytest.mark.parametrize(
    "url", ["https://localhost/", "https://2130706433/", "https://0x7f.1/", "https://127.1/"]
)
def test_other_spellings_of_loopback_are_refused(url: str) -> None:
    with pytest.raises(EgressRefused, match="loopback"):
        check_url(url, allow_private=False)


def test_a_name_with_one_private_address_among_public_ones_is_refused(resolver: Any) -> None:
    resolver("93.184.216.34", "10.0.0.1")
    with pytest.raises(EgressRefused, match="private"):
        check_url("https://example.com/", allow_private=False)


def test_a_name_with_public_addresses_alone_is_permitted(resolver: Any) -> None:
    resolver("93.184.216.34", "2606:4700::1111")
    check_url("https://example.com/", allow_private=False)


def test_a_name_that_does_not_resolve_is_refused_with_advice() -> None:
    with pytest.raises(EgressRefused, match="spelling"):
        check_url("https://no-such-host.invalid/", allow_private=False)


def test_the_addresses_to_connect_to_are_the_ones_that_were_checked() -> None:
    found = permitted_addresses(
        "h", ["93.184.216.34", "93.184.216.34", "2606:4700::1111"], allow_private=False
    )
    assert found == ("93.184.216.34", "2606:4700::1111")
    with pytest.raises(EgressRefused, match="no address"):
        permitted_addresses("h", [], allow_private=False)
