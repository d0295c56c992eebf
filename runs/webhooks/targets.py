"""Which addresses an endpoint may have: public ones, by https (m8tes-http 7)."""

from __future__ import annotations

import socket
from typing import Final

import httpx2
from django.conf import settings

from runs.egress import parse_url, permitted_addresses
from runs.errors import EgressRefused

LOCAL_NAMES: Final = ("localhost", "internal", "local", "localdomain", "home.arpa")
"""Names, and ends of names, that never stand for a public address, whatever a resolver makes of them."""


def check_target(url: str) -> None:
    """Refuse an address that must not be called, before anything is stored.

    A name that nobody can resolve yet is taken: each delivery resolves it anew and connects to what it has checked.
    `M3_ALLOW_PRIVATE_URLS` permits http and private addresses, for development. May wait for the resolver.

    Raises EgressRefused, which names the field.
    """
    try:
        _check(url, allow_private=settings.M3.allow_private_urls)
    except EgressRefused as refused:
        fields = [{"path": ["url"], "message": refused.message}]
        raise EgressRefused(refused.message, details={"fields": fields}) from refused


def _check(url: str, *, allow_private: bool) -> None:
    host, port = parse_url(url, allow_private=allow_private)
    if not allow_private and is_local_name(host):
        raise EgressRefused(f"The host “{host}” is a name inside a network, which may not be called.")
    try:
        httpx2.URL(url)  # what will call it has to understand it too
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (httpx2.InvalidURL, UnicodeError) as error:
        raise EgressRefused(f"“{host}” is not a name that a host can have. Check its spelling.") from error
    except OSError:
        return
    permitted_addresses(host, (str(entry[4][0]) for entry in found), allow_private=allow_private)


def is_local_name(host: str) -> bool:
    name = host.rstrip(".").lower()
    return any(name == local or name.endswith(f".{local}") for local in LOCAL_NAMES)
