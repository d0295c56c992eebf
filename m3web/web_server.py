"""What the web server keeps: of a request body no more than is wanted, of a stream no more than its reader takes.

Twisted stores a whole body, in memory or in a file, before any application sees the request, and the application
cannot stop it. So the bound stands here: too much is counted and thrown away, and the application hears the true
length, which `m3web.middleware` refuses in the shape of a page or of the API.

It also takes whatever an application sends and keeps it until the client reads. A stream has no end to that, so its
sender waits; a page does not, because while it is sent a thread and a connection of the database belong to it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from daphne.http_protocol import WebRequest
from daphne.server import Server
from django.conf import settings

DRAINED = 20
"""Times the limit that is read of a body too large, so that its sender is still there to read why; then the
connection is cut."""


class BoundedRequest(WebRequest):  # type: ignore[misc]
    """A request of which never more than the limit is stored, whatever it announces."""

    received = 0
    _may_write: asyncio.Event | None = None
    """Of a stream: whether its reader keeps up."""

    def handle_reply(self, message: Mapping[str, Any]) -> None:
        """What the application sends. The transport tells a stream when too much of it is waiting to be read."""
        last = message["type"] == "http.response.body" and not message.get("more_body", False)
        if last and self._may_write is not None:
            self.unregisterProducer()
        super().handle_reply(message)
        if _begins_stream(message) and self.channel is not None and not self.finished:
            self._may_write = asyncio.Event()
            self._may_write.set()
            self.registerProducer(self, True)

    async def taken(self) -> None:
        """Wait until the reader of a stream has taken most of what was sent, or is gone."""
        if self._may_write is not None:
            await self._may_write.wait()

    def pauseProducing(self) -> None:  # noqa: N802
        if self._may_write is not None:
            self._may_write.clear()

    def resumeProducing(self) -> None:  # noqa: N802
        if self._may_write is not None:
            self._may_write.set()

    stopProducing = resumeProducing  # noqa: N815

    def connectionLost(self, reason: Any) -> None:  # noqa: N802
        self.resumeProducing()
        super().connectionLost(reason)

    def handleContentChunk(self, data: bytes) -> None:  # noqa: N802  (Twisted's name)
        self.received += len(data)
        limit = settings.DATA_UPLOAD_MAX_MEMORY_SIZE
        if self.received > limit * DRAINED:
            self.channel.forceAbortClient()
        elif self.received <= limit:
            super().handleContentChunk(data)

    def requestReceived(self, command: bytes, path: bytes, version: bytes) -> None:  # noqa: N802
        """The body is complete: a chunked one now has a length like any other (RFC 9112, section 7.1.3)."""
        if self.received > settings.DATA_UPLOAD_MAX_MEMORY_SIZE:
            self.content.seek(0)
            self.content.truncate()
        if self.requestHeaders.hasHeader(b"transfer-encoding"):
            self.requestHeaders.removeHeader(b"transfer-encoding")
            self.requestHeaders.setRawHeaders(b"content-length", [str(self.received).encode()])
        super().requestReceived(command, path, version)


def bound_bodies(server: Server) -> None:
    """Make a server that is about to listen use `BoundedRequest` for every connection."""
    build = server.http_factory.buildProtocol

    def build_bounded(address: Any) -> Any:
        protocol = build(address)
        protocol.requestFactory = BoundedRequest
        return protocol

    server.http_factory.buildProtocol = build_bounded


def wait_for_readers(server: Server) -> None:
    """Make a server that is about to listen let an application go on with a stream only as its reader does."""
    reply = server.handle_reply

    async def reply_and_wait(protocol: Any, message: Mapping[str, Any]) -> None:
        await reply(protocol, message)
        if isinstance(protocol, BoundedRequest):
            await protocol.taken()

    server.handle_reply = reply_and_wait


def _begins_stream(message: Mapping[str, Any]) -> bool:
    headers = message.get("headers", ()) if message["type"] == "http.response.start" else ()
    return any(name.lower() == b"content-type" and b"text/event-stream" in value for name, value in headers)
