"""One session for one piece of work: open the transport, settle the generation, work, close everything."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, TypeVar

from mcp import ClientSession
from mcp.shared.dispatcher import ProgressFnT
from mcp.shared.message import ClientMessageMetadata
from mcp.types import INVALID_REQUEST, ErrorData, Implementation, Request, RequestParams, Result
from pydantic import ConfigDict, ValidationError

from .dispatcher import LegDispatcher
from .http import HttpLink, open_http
from .negotiation import LEGACY_ONLY, ProbeEndedServerError, negotiate
from .stdio import StdioLink, open_stdio
from .values import Binding, Json, StdioBinding

T = TypeVar("T")
logger = logging.getLogger(__name__)

CLIENT_INFO = Implementation(name="m3web", title="M3 Web", version="0.1.0")


class WireParams(RequestParams):
    """Params that go out as they are; the SDK adds its `_meta`."""

    model_config = ConfigDict(extra="allow")


class WireRequest(Request[WireParams, str]):
    """A request whose params the SDK's models neither normalise nor refuse."""


@dataclass
class Attempt:
    """What is known of one connection; it is filled step by step and outlives the connection, so that a
    failure can be explained."""

    binding: Binding
    link: StdioLink | HttpLink | None = None
    dispatcher: LegDispatcher | None = None

    @property
    def operation_started(self) -> bool:
        """Whether the operation's request was handed to the transport."""
        return self.dispatcher is not None and self.dispatcher.operation_started


@dataclass(frozen=True)
class Session:
    """A session with its generation settled."""

    client: ClientSession
    dispatcher: LegDispatcher
    link: StdioLink | HttpLink
    negotiated: Mapping[str, Json]

    @property
    def modern(self) -> bool:
        return "discover" in self.negotiated

    async def request(
        self,
        method: str,
        params: Mapping[str, Json],
        *,
        progress: ProgressFnT | None = None,
        metadata: ClientMessageMetadata | None = None,
    ) -> dict[str, Any]:
        """Send one request and return its result as the server sent it, whether or not it fits the protocol.

        Raises MCPError.
        """
        wire = WireRequest(method=method, params=WireParams.model_validate(dict(params)))
        try:
            await self.client.send_request(wire, Result, metadata=metadata, progress_callback=progress)
        except ValidationError:
            # A result that breaks the SDK's models is still the server's answer, and mapping judges it.
            if self.dispatcher.last_result is None:
                raise
        return self.dispatcher.last_result or {}


async def with_session(
    binding: Binding,
    saved: Mapping[str, Json] | None,
    work: Callable[[Session], Awaitable[T]],
    *,
    max_bytes: int,
    watch: Callable[[Attempt], None],
) -> T:
    """Run `work` on a fresh session. An older server that dies of the probe is started again without it.

    `watch` receives each Attempt before it begins. What the transport raises comes out as the bare exception,
    not in a group; once `work` has returned, trouble in closing is logged and does not cost the result.
    """
    attempt = Attempt(binding)
    watch(attempt)
    try:
        return await _on_one_session(attempt, saved, work, max_bytes)
    except ProbeEndedServerError:
        attempt = Attempt(binding)
        watch(attempt)
        return await _on_one_session(attempt, LEGACY_ONLY, work, max_bytes)


async def _on_one_session(
    attempt: Attempt,
    saved: Mapping[str, Json] | None,
    work: Callable[[Session], Awaitable[T]],
    max_bytes: int,
) -> T:
    done: list[T] = []
    failure: Exception | None = None
    try:
        async with _open(attempt.binding, max_bytes) as link:
            attempt.link = link
            dispatcher = attempt.dispatcher = LegDispatcher(link.read_stream, link.write_stream)
            async with ClientSession(
                dispatcher=dispatcher, elicitation_callback=_declare_elicitation, client_info=CLIENT_INFO
            ) as client:
                # Kept and raised outside: task groups on the way out would wrap it in a group.
                try:
                    negotiated = await negotiate(client, saved)
                    done.append(await work(Session(client, dispatcher, link, negotiated)))
                except Exception as error:
                    failure = error
    except Exception as trouble:
        leaf = _first_leaf(trouble)
        if not done and failure is None:
            raise leaf from None
        logger.info("closing an MCP session failed: %r", leaf)
    if failure is not None:
        raise failure
    return done[0]


def _open(binding: Binding, max_bytes: int) -> AbstractAsyncContextManager[StdioLink | HttpLink]:
    if isinstance(binding, StdioBinding):
        return open_stdio(binding, max_bytes=max_bytes)
    return open_http(binding, max_bytes=max_bytes)


def _first_leaf(error: Exception) -> Exception:
    """The first real error inside nested groups (python-sdk #2114)."""
    while isinstance(error, ExceptionGroup):
        error = error.exceptions[0]
    return error


async def _declare_elicitation(context: object, params: object) -> ErrorData:
    """Never called: the dispatcher answers before. Its presence declares elicitation by form and by URL."""
    return ErrorData(code=INVALID_REQUEST, message="Elicitation is answered elsewhere.")
