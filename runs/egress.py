"""Which URLs this installation may call: no way from a stored URL into the private network (SSRF).

Plain module. `check_url` is for a URL that someone saves; `permitted_addresses` is for the moment of
connecting: the transport connects to exactly the addresses it returned, so a name that resolves differently a
second later (DNS rebinding) gains nothing.
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Iterable
from urllib.parse import urlsplit

from runs.errors import EgressRefused

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

METADATA_ADDRESSES = frozenset(
    ipaddress.ip_address(text)
    for text in ("169.254.169.254", "169.254.170.2", "100.100.100.200", "168.63.129.16", "fd00:ec2::254")
)
"""Cloud metadata services; they hand out credentials, so they are refused even where private is allowed."""

_NAT64 = ipaddress.ip_network("64:ff9b::/96")
_V4_COMPATIBLE = ipaddress.ip_network("::/96")
_MAX_URL_LENGTH = 2048


def check_url(url: str, *, allow_private: bool) -> None:
    """Refuse a URL that must not be called.

    `allow_private` permits plain http and private or loopback addresses; link-local, multicast, reserved and
    metadata addresses stay refused. Resolves the host name, so it can block for as long as the resolver does.

    Raises EgressRefused.
    """
    host, port = parse_url(url, allow_private=allow_private)
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise EgressRefused(f"The host “{host}” cannot be resolved. Check its spelling.") from error
    permitted_addresses(host, (str(entry[4][0]) for entry in found), allow_private=allow_private)


def parse_url(url: str, *, allow_private: bool) -> tuple[str, int]:
    """Host and port of an acceptable URL, without a look at the network.

    Raises EgressRefused for another scheme than https (or http where allowed), userinfo, a missing host, a
    bad port, or characters that parsers disagree about.
    """
    if len(url) > _MAX_URL_LENGTH:
        raise EgressRefused(f"The URL is longer than {_MAX_URL_LENGTH} characters.")
    if any(character <= " " or character in '\\"<>`' or character == "\x7f" for character in url):
        raise EgressRefused("The URL contains spaces, control characters or characters that are not allowed.")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise EgressRefused("This is not a URL that can be read. Check host and port.") from error
    if parts.scheme not in (("https", "http") if allow_private else ("https",)):
        raise EgressRefused("The URL must start with https://.")
    if "@" in parts.netloc:
        raise EgressRefused("Put credentials into a header, not into the URL.")
    if not parts.hostname:
        raise EgressRefused("The URL names no host.")
    return parts.hostname, port or (443 if parts.scheme == "https" else 80)


def permitted_addresses(host: str, addresses: Iterable[str], *, allow_private: bool) -> tuple[str, ...]:
    """The addresses of `host`, if all of them may be called.

    One bad address refuses the host: a name that resolves to a public and a private address is an attack or a
    mistake. Raises EgressRefused, also if there is no address at all.
    """
    permitted = tuple(dict.fromkeys(addresses))
    if not permitted:
        raise EgressRefused(f"The host “{host}” has no address.")
    for text in permitted:
        reason = refusal(text, allow_private=allow_private)
        if reason is not None:
            raise EgressRefused(f"The host “{host}” leads to {reason}, which may not be called.")
    return permitted


def refusal(address: str, *, allow_private: bool) -> str | None:
    """Why an IP address may not be called, as a noun for a sentence, or None if it may."""
    try:
        parsed = _innermost(ipaddress.ip_address(address.partition("%")[0]))
    except ValueError:
        return "something that is not an IP address"
    if parsed in METADATA_ADDRESSES:
        return "a cloud metadata service"
    if parsed.is_multicast:
        return "a multicast address"
    if parsed.is_link_local:
        return "a link-local address"
    if parsed.is_unspecified:
        return "an unspecified address"
    if parsed.version == 4 and parsed.is_reserved:
        return "a reserved address"
    if parsed.is_global or allow_private:
        return None
    return "a loopback address" if parsed.is_loopback else "a private address"


def _innermost(address: Address) -> Address:
    """The IPv4 address inside an IPv6 one (mapped, compatible, 6to4, Teredo, NAT64), else the address."""
    if isinstance(address, ipaddress.IPv4Address):
        return address
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    if address.sixtofour is not None:
        return address.sixtofour
    if address.teredo is not None:
        return address.teredo[1]
    if address in _NAT64 or (address in _V4_COMPATIBLE and int(address) > 1):
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address
