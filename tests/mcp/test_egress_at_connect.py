"""The guard works where the connection is made, so a name that changes its mind gains nothing."""

from __future__ import annotations

import socket
from typing import Any

import httpx2
import pytest

from runs.errors import EgressRefused
from runs.mcp_client.http import GuardedTransport, Seen


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[list[str]]]:
    """Answers of the resolver by host, one list of addresses per question."""
    answers: dict[str, list[list[str]]] = {}

    def getaddrinfo(host: str, port: int, *_: Any, **__: Any) -> list[Any]:
        return [(socket.AF_INET, 0, 0, "", (address, port)) for address in answers[host].pop(0)]

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    return answers


class Wire(httpx2.AsyncBaseTransport):
    """Stands where the sockets are and keeps what would have been connected to."""

    def __init__(self, *refusing: str) -> None:
        self.refusing = refusing
        self.requests: list[httpx2.Request] = []

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        self.requests.append(request)
        if request.url.host in self.refusing:
            raise httpx2.ConnectError("refused", request=request)
        return httpx2.Response(200, json={})


def guarded(wire: Wire) -> httpx2.AsyncClient:
    transport = GuardedTransport(Seen(), allow_private=False, max_bytes=1000)
    transport._inner = wire  # type: ignore[assignment]
    return httpx2.AsyncClient(transport=transport, trust_env=False)


async def test_the_connection_goes_to_the_checked_address_under_the_hosts_name(names: Any) -> None:
    names["example.com"] = [["93.184.216.34"]]
    wire = Wire()
    async with guarded(wire) as client:
        await client.post("https://example.com/mcp", json={})
    (request,) = wire.requests
    assert request.url.host == "93.184.216.34"
    assert request.headers["host"] == "example.com"
    assert request.extensions["sni_hostname"] == "example.com"


async def test_a_name_that_turns_private_after_it_was_saved_is_refused_before_connecting(names: Any) -> None:
    names["example.com"] = [["93.184.216.34"], ["127.0.0.1"]]
    wire = Wire()
    async with guarded(wire) as client:
        await client.post("https://example.com/mcp", json={})
        with pytest.raises(EgressRefused, match="loopback"):
            await client.post("https://example.com/mcp", json={})
    assert len(wire.requests) == 1


async def test_the_next_checked_address_is_tried_if_one_does_not_answer(names: Any) -> None:
    names["example.com"] = [["93.184.216.34", "93.184.216.35"]]
    wire = Wire("93.184.216.34")
    async with guarded(wire) as client:
        await client.post("https://example.com/mcp", json={})
    assert [request.url.host for request in wire.requests] == ["93.184.216.34", "93.184.216.35"]
