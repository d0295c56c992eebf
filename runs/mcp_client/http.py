"""A server behind a URL: the SDK's streamable HTTP transport over an HTTP client that guards every request.

The guard resolves the host itself, checks every address (`runs.egress`) and connects to a checked address, so
what was checked is what is called. It also bounds bodies, keeps the last status and the session id, and never
leaves the origin (the SDK refuses redirects to another one).
"""

from __future__ import annotations

import asyncio
import functools
import ipaddress
import socket
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import httpx2
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.message import SessionMessage

from runs.egress import parse_url, permitted_addresses
from runs.errors import EgressRefused

from .values import HttpBinding

if TYPE_CHECKING:
    from mcp.client._transport import ReadStream, WriteStream

CONNECT_SECONDS = 10.0
WRITE_SECONDS = 30.0
NOTICE_SECONDS = 5.0
"""How long a server may take to acknowledge the end of a session."""

SESSION_HEADER = "mcp-session-id"


class BodyTooLargeError(Exception):
    """A response body went over the bound."""


class BodyEncodedError(Exception):
    """A server sent a compressed body although we asked for none; its real size would be unbounded."""


@dataclass
class Seen:
    """Facts of the responses that the SDK drops (python-sdk #2110)."""

    status: int | None = None
    """Status of the latest POST if it was a redirect or an error, else None."""
    session_id: str | None = None
    never_left: bytes = b""
    """Body of the latest POST for which no connection could be made."""
    detached: bool = False
    """Nothing goes out any more: the session is left to whoever attaches next, and its server notices nothing."""


@dataclass
class HttpLink:
    """The two message streams of an HTTP session, and what was seen of its responses."""

    read_stream: ReadStream[SessionMessage | Exception]
    write_stream: WriteStream[SessionMessage]
    seen: Seen

    @property
    def detached(self) -> bool:
        return self.seen.detached

    @detached.setter
    def detached(self, detached: bool) -> None:
        self.seen.detached = detached


@asynccontextmanager
async def open_http(binding: HttpBinding, *, max_bytes: int) -> AsyncIterator[HttpLink]:
    """Connect lazily: nothing is sent before the first message.

    Failures of a request end the context with an ExceptionGroup of EgressRefused, httpx2.TransportError,
    BodyTooLargeError or BodyEncodedError. There is no read timeout: a legacy call stays silent
    while a person thinks.
    """
    seen = Seen()
    async with (
        guarded_client(binding, seen, max_bytes=max_bytes) as client,
        streamable_http_client(binding.url, http_client=client, max_sse_event_size=max_bytes) as streams,
    ):
        yield HttpLink(read_stream=streams[0], write_stream=streams[1], seen=seen)


def guarded_client(
    binding: HttpBinding, seen: Seen, *, max_bytes: int, headers: Mapping[str, str] | None = None
) -> httpx2.AsyncClient:
    """An HTTP client whose every request is guarded; `headers` come on top of the binding's."""
    return httpx2.AsyncClient(
        transport=GuardedTransport(seen, allow_private=binding.allow_private, max_bytes=max_bytes),
        headers={**binding.headers, **(headers or {}), "accept-encoding": "identity"},
        timeout=httpx2.Timeout(WRITE_SECONDS, connect=CONNECT_SECONDS, read=None),
        trust_env=False,
    )


@functools.cache
def _tls() -> ssl.SSLContext:
    """One TLS context for all connections; building it costs more than a call."""
    return httpx2.create_ssl_context(trust_env=False)


class GuardedTransport(httpx2.AsyncBaseTransport):
    """Checks, pins and bounds every request of one session."""

    def __init__(self, seen: Seen, *, allow_private: bool, max_bytes: int) -> None:
        self._seen = seen
        self._allow_private = allow_private
        self._max_bytes = max_bytes
        self._inner = httpx2.AsyncHTTPTransport(verify=_tls(), trust_env=False)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send the request to a checked address.

        Raises EgressRefused, or httpx2.ConnectError if the name does not resolve or nothing listens.
        """
        if self._seen.detached:
            return httpx2.Response(204, request=request)
        try:
            async with asyncio.timeout(NOTICE_SECONDS if request.method == "DELETE" else None):
                response = await self._connect(request)
        except (EgressRefused, httpx2.ConnectError, httpx2.ConnectTimeout):
            if request.method == "POST":
                self._seen.never_left = await request.aread()
            raise
        self._note(request, response)
        if request.method == "DELETE":
            return await _without_body(response)
        encoding = response.headers.get("content-encoding", "identity").strip().lower()
        if encoding not in ("", "identity"):
            await response.aclose()
            raise BodyEncodedError(encoding)
        if response.headers.get("content-type", "").lower().startswith("text/event-stream"):
            return response  # bounded per event by the SDK
        if isinstance(response.stream, httpx2.AsyncByteStream):
            response.stream = _BoundedStream(response.stream, self._max_bytes)
        return response

    async def aclose(self) -> None:
        await self._inner.aclose()

    async def _connect(self, request: httpx2.Request) -> httpx2.Response:
        host, port = parse_url(str(request.url), allow_private=self._allow_private)
        addresses = permitted_addresses(
            host, await self._resolve(host, port, request), allow_private=self._allow_private
        )
        for address in addresses[:-1]:
            try:
                return await self._inner.handle_async_request(_pinned(request, host, address))
            except (httpx2.ConnectError, httpx2.ConnectTimeout):
                continue
        return await self._inner.handle_async_request(_pinned(request, host, addresses[-1]))

    async def _resolve(self, host: str, port: int, request: httpx2.Request) -> list[str]:
        try:
            return [str(ipaddress.ip_address(host))]
        except ValueError:
            pass
        loop = asyncio.get_running_loop()
        try:
            found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError) as error:
            raise httpx2.ConnectError(f"The host “{host}” cannot be resolved", request=request) from error
        return [str(entry[4][0]) for entry in found]

    def _note(self, request: httpx2.Request, response: httpx2.Response) -> None:
        if session := response.headers.get(SESSION_HEADER):
            self._seen.session_id = session
        if request.method == "POST":
            self._seen.status = response.status_code if response.status_code >= 300 else None


def _pinned(request: httpx2.Request, host: str, address: str) -> httpx2.Request:
    """The same request aimed at one address; Host header and TLS name stay the URL's."""
    return httpx2.Request(
        request.method,
        request.url.copy_with(host=address),
        headers=request.headers,
        stream=request.stream,
        extensions={**request.extensions, "sni_hostname": host},
    )


async def _without_body(response: httpx2.Response) -> httpx2.Response:
    """Only the status: a server must not hold us by the answer to the end of its session."""
    await response.aclose()
    return httpx2.Response(response.status_code, headers=response.headers, content=b"")


class _BoundedStream(httpx2.AsyncByteStream):
    def __init__(self, inner: httpx2.AsyncByteStream, limit: int) -> None:
        self._inner = inner
        self._left = limit

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for chunk in self._inner:
            self._left -= len(chunk)
            if self._left < 0:
                raise BodyTooLargeError
            yield chunk

    async def aclose(self) -> None:
        await self._inner.aclose()
