"""One session for one piece of work: open the transport, settle the generation, work, close everything."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from mcp import ClientSession
from mcp.shared.dispatcher import ProgressFnT
from mcp.shared.message import ClientMessageMetadata
from mcp.types import INVALID_REQUEST, ErrorData, Implementation, Request, RequestParams, Result
from pydantic import ConfigDict, ValidationError

from . import task_wire
from .dispatcher import LegDispatcher
from .http import HttpLink, open_http
from .kept import open_kept
from .live import Keep
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


class TaskWireRequest(WireRequest):
    """A request about a task; over HTTP the task's id is mirrored as `Mcp-Name`, for whoever routes (SEP-2663)."""

    name_param = "taskId"


@dataclass
class Attempt:
    """What is known of one connection; it is filled step by step and outlives the connection, so that a
    failure can be explained."""

    binding: Binding
    link: StdioLink | HttpLink | None = None
    dispatcher: LegDispatcher | None = None
    resumed: bool = False
    """Whether another process has sent the operation; whatever happens here, it is out."""

    @property
    def operation_started(self) -> bool:
        """Whether the operation's request was handed to the transport."""
        return self.resumed or (self.dispatcher is not None and self.dispatcher.operation_started)


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
        kind = TaskWireRequest if method.startswith("tasks/") else WireRequest
        wire = kind(method=method, params=WireParams.model_validate(dict(params)))
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
    keep: Keep | None = None,
) -> T:
    """Run `work` on a fresh session. An older server that dies of the probe is started again without it.

    `watch` receives each Attempt before it begins. What the transport raises comes out as the bare exception,
    not in a group; once `work` has returned, trouble in closing is logged and does not cost the result. With `keep`
    a stdio server lives under a keeper, unless it is known to be of the present generation: such a server has no
    session worth keeping, and its calls do not pay for one.
    """

    async def one(saved: Mapping[str, Json] | None) -> T:
        attempt = Attempt(binding)
        watch(attempt)
        link = _open(binding, max_bytes, None if saved and "discover" in saved else keep)
        return await on_one_session(attempt, link, partial(negotiate, saved=saved), work)

    try:
        return await one(saved)
    except ProbeEndedServerError:
        return await one(LEGACY_ONLY)


async def on_one_session(
    attempt: Attempt,
    opening: AbstractAsyncContextManager[StdioLink | HttpLink],
    settle: Callable[[ClientSession], Awaitable[Mapping[str, Json]]],
    work: Callable[[Session], Awaitable[T]],
) -> T:
    """Open the link, `settle` the generation and run `work`; what `with_session` says of exceptions holds."""
    done: list[T] = []
    failure: Exception | None = None
    tasks = _invites_tasks(attempt.binding)
    try:
        async with opening as link:
            attempt.link = link
            dispatcher = attempt.dispatcher = LegDispatcher(link.read_stream, link.write_stream)
            async with ClientSession(
                dispatcher=dispatcher,
                elicitation_callback=_declare_elicitation,
                client_info=CLIENT_INFO,
                extensions={task_wire.EXTENSION: {}} if tasks else None,
                result_claims=task_wire.CLAIMS if tasks else None,
            ) as client:
                # Kept and raised outside: task groups on the way out would wrap it in a group.
                try:
                    negotiated = await settle(client)
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


def _open(
    binding: Binding, max_bytes: int, keep: Keep | None
) -> AbstractAsyncContextManager[StdioLink | HttpLink]:
    if isinstance(binding, StdioBinding):
        return (
            open_kept(binding, keep, max_bytes=max_bytes)
            if keep
            else open_stdio(binding, max_bytes=max_bytes)
        )
    return open_http(binding, max_bytes=max_bytes)


def _invites_tasks(binding: Binding) -> bool:
    """Whether a call may be answered with a task: not where the task would die with the session's own child."""
    return binding.tasks if isinstance(binding, StdioBinding) else True


def _first_leaf(error: Exception) -> Exception:
    """The first real error inside nested groups (python-sdk #2114)."""
    while isinstance(error, ExceptionGroup):
        error = error.exceptions[0]
    return error


async def _declare_elicitation(context: object, params: object) -> ErrorData:
    """Never called: the dispatcher answers before. Its presence declares elicitation by form and by URL."""
    return ErrorData(code=INVALID_REQUEST, message="Elicitation is answered elsewhere.")
