"""What is kept of a request body while it arrives, whatever it announces (`m3web.web_server`)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from daphne.http_protocol import HTTPFactory
from daphne.server import Server
from django.conf import LazySettings
from twisted.internet.testing import StringTransportWithDisconnection

from m3web.web_server import DRAINED, BoundedRequest, bound_bodies

LIMIT = 1_000


class Connection:
    """A connection to a server that listens nowhere; its application only says what it was asked."""

    def __init__(self) -> None:
        self.scopes: list[dict[str, Any]] = []
        server = Server(application=self._application, endpoints=["tcp:0"])
        server.connections = {}
        server.http_factory = HTTPFactory(server)
        bound_bodies(server)
        self.transport = StringTransportWithDisconnection()
        self.protocol = server.http_factory.buildProtocol(None)
        self.transport.protocol = self.protocol
        self.protocol.makeConnection(self.transport)

    async def _application(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        self.scopes.append(scope)

    @property
    def request(self) -> BoundedRequest:
        (request,) = self.protocol._channel.requests
        assert isinstance(request, BoundedRequest)
        return request

    @property
    def stored(self) -> int:
        return int(self.request.content.seek(0, 2))

    def head(self, *headers: str) -> None:
        lines = ["POST / HTTP/1.1", "Host: x", *headers, "", ""]
        self.protocol.dataReceived("\r\n".join(lines).encode())

    def chunk(self, size: int) -> None:
        self.protocol.dataReceived(f"{size:x}\r\n".encode() + b"x" * size + b"\r\n")


@pytest.fixture
def connection(settings: LazySettings) -> Connection:
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = LIMIT
    return Connection()


def test_no_chunk_beyond_the_limit_is_stored(connection: Connection) -> None:
    connection.head("Transfer-Encoding: chunked")
    for _ in range(5):
        connection.chunk(400)

    assert (connection.request.received, connection.stored) == (2_000, 800)


def test_nothing_beyond_the_limit_is_stored_of_an_announced_body_either(connection: Connection) -> None:
    connection.head("Content-Length: 5000")
    for _ in range(4):
        connection.protocol.dataReceived(b"x" * 600)

    assert (connection.request.received, connection.stored) == (2_400, 600)


def test_a_sender_without_end_is_cut_off(connection: Connection) -> None:
    connection.head("Transfer-Encoding: chunked")
    connection.chunk(LIMIT * DRAINED)
    assert connection.transport.connected

    connection.chunk(1)

    assert not connection.transport.connected


@pytest.mark.timeout(20)
async def test_a_complete_chunked_body_has_a_length_like_any_other(connection: Connection) -> None:
    connection.head("Transfer-Encoding: chunked")
    connection.chunk(300)
    connection.chunk(200)
    connection.protocol.dataReceived(b"0\r\n\r\n")

    while not connection.scopes:  # the application starts with the loop's next turn
        await asyncio.sleep(0)
    headers = dict(connection.scopes[0]["headers"])
    assert headers[b"content-length"] == b"500"
    assert b"transfer-encoding" not in headers
