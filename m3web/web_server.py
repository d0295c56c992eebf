"""What the web server keeps of a request body.

Twisted stores a whole body, in memory or in a file, before any application sees the request, and the application
cannot stop it. So the bound stands here: too much is counted and thrown away, and the application hears the true
length, which `m3web.middleware` refuses in the shape of a page or of the API.
"""

from __future__ import annotations

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
