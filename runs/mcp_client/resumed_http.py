"""Going on with an HTTP session that another process began (2025-11-25, streamable HTTP, "Resumability").

The order matters: answers first, then the stream. A server's reply to the operation, and what it asks meanwhile, is
fetched with `Last-Event-ID`. Some servers replay what they stored and then send nothing on that stream, so a silent
stream is left after a moment and opened again at its last event; one that streams properly loses nothing by that.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import anyio
import httpx2
from anyio.abc import ObjectReceiveStream, ObjectSendStream, TaskGroup
from mcp.shared.message import ClientMessageMetadata, SessionMessage
from mcp_types import (
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
    jsonrpc_message_adapter,
)

from runs.errors import EgressRefused

from .dispatcher import ELICIT_METHOD
from .http import SESSION_HEADER, HttpLink, Seen, guarded_client
from .live import LiveSession
from .mapping import request_to_wire
from .values import HttpBinding, Json

logger = logging.getLogger(__name__)

REACH_SECONDS = 30.0
"""How long a server that cannot be reached is tried again before its session counts as lost."""

FIRST_SILENCE, LONGEST_SILENCE = 1.0, 8.0
"""Seconds without an event after which a stream is opened again; doubled from the first to the longest."""


class SessionGoneError(Exception):
    """The server does not know the session any more, or cannot be reached; the text says which."""


class ReplyLostError(Exception):
    """The server keeps no events, so that its reply went to a connection that is closed."""


@asynccontextmanager
async def resume_http(binding: HttpBinding, live: LiveSession, *, max_bytes: int) -> AsyncIterator[HttpLink]:
    """The streams of the session as if it had been opened here: its open prompts come in at once, then what the
    server says. The operation's request is held back. Not detached, the session is ended on the way out.

    Raises SessionGoneError, ReplyLostError (in a group), and what `open_http` raises.
    """
    seen = Seen(session_id=live.session_id)
    incoming, read_stream = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    write_stream, outgoing = anyio.create_memory_object_stream[SessionMessage](0)
    async with guarded_client(binding, seen, max_bytes=max_bytes, headers=_headers(live)) as client:
        resumed = _Resumed(binding.url, client, live, incoming, max_bytes)
        await resumed.check_alive()
        link = HttpLink(read_stream=read_stream, write_stream=write_stream, seen=seen)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(resumed.write, outgoing, tasks)
            try:
                yield link
            finally:
                with anyio.CancelScope(shield=True):
                    read_stream.close()
                    write_stream.close()
                    await resumed.say_goodbye()
                tasks.cancel_scope.cancel()


async def end_http(binding: HttpBinding, live: LiveSession) -> None:
    """End a session that nobody drives any more: its call is cancelled, then it is closed. Best effort."""
    params: Json = {"requestId": live.operation_id, "reason": "The call is no longer wanted."}
    notice = JSONRPCNotification(jsonrpc="2.0", method="notifications/cancelled", params=params)
    try:
        async with (
            asyncio.timeout(REACH_SECONDS),
            guarded_client(binding, Seen(), max_bytes=1_000_000, headers=_headers(live)) as client,
        ):
            await client.post(binding.url, json=_json(notice))
            await client.delete(binding.url)
    except (httpx2.HTTPError, EgressRefused, TimeoutError) as error:
        logger.info("an MCP session could not be ended: %r", error)


def _headers(live: LiveSession) -> dict[str, str]:
    """What the SDK's transport would have learned from the handshake."""
    headers = {"accept": "application/json, text/event-stream"}
    if live.session_id:
        headers[SESSION_HEADER] = live.session_id
    handshake = live.negotiated.get("initialize")
    version = handshake.get("protocolVersion") if isinstance(handshake, Mapping) else None
    if isinstance(version, str):
        headers["mcp-protocol-version"] = version
    return headers


@dataclass
class _Resumed:
    url: str
    client: httpx2.AsyncClient
    live: LiveSession
    incoming: ObjectSendStream[SessionMessage | Exception]
    max_bytes: int
    unanswered: set[str | int] = field(default_factory=set)
    heard: set[str | int] = field(default_factory=set)
    """Ids of the server's requests that were handed over or are dealt with: a replay repeats them."""
    metadata: ClientMessageMetadata | None = None
    listening: bool = False

    async def check_alive(self) -> None:
        """Ask for a sign of life, so that a session that is gone is known before a person is kept waiting."""
        ping = {"jsonrpc": "2.0", "id": f"{self.live.operation_id}-alive", "method": "ping"}
        deadline = asyncio.get_running_loop().time() + REACH_SECONDS
        while True:
            try:
                async with self.client.stream("POST", self.url, json=ping) as response:
                    _check(response)
                    return
            except httpx2.TransportError as error:
                if asyncio.get_running_loop().time() > deadline:
                    raise SessionGoneError("it cannot be reached") from error
            await asyncio.sleep(0.5)

    async def write(self, outgoing: ObjectReceiveStream[SessionMessage], tasks: TaskGroup) -> None:
        """What goes out: answers and notices; the operation itself, which is out already, only starts the rest."""
        async for item in outgoing:
            message = item.message
            if isinstance(message, JSONRPCRequest):
                self.metadata = item.metadata if isinstance(item.metadata, ClientMessageMetadata) else None
                tasks.start_soon(self._begin, tasks)
                continue
            async with self.client.stream("POST", self.url, json=_json(message)) as response:
                if isinstance(message, JSONRPCResponse | JSONRPCError):
                    _check(response)
            if isinstance(message, JSONRPCResponse | JSONRPCError) and message.id in self.unanswered:
                self.unanswered.discard(message.id)
                self._listen_if_answered(tasks)

    async def say_goodbye(self) -> None:
        """End the session at the server; nothing goes out if the link is detached."""
        try:
            await self.client.delete(self.url)
        except (httpx2.HTTPError, EgressRefused, TimeoutError) as error:
            logger.info("closing an MCP session failed: %r", error)

    async def _begin(self, tasks: TaskGroup) -> None:
        self.heard = set(self.live.answered)
        prompts = [prompt for prompt in self.live.open_prompts if prompt.origin is not None]
        self.unanswered = {prompt.origin.jsonrpc_id for prompt in prompts if prompt.origin}
        for prompt in prompts:
            if prompt.origin is None:
                continue
            params = request_to_wire(prompt)
            await self._hand_over(
                JSONRPCRequest(
                    jsonrpc="2.0", id=prompt.origin.jsonrpc_id, method=ELICIT_METHOD, params=params
                )
            )
        self._listen_if_answered(tasks)

    def _listen_if_answered(self, tasks: TaskGroup) -> None:
        if not self.unanswered and not self.listening:
            self.listening = True
            tasks.start_soon(self._listen)
            tasks.start_soon(self._listen_aside)

    async def _listen(self) -> None:
        """Follow the operation's own stream until its reply has come; the leg's clock bounds it."""
        last = self.live.resumption_token
        if last is None:
            raise ReplyLostError
        silence = FIRST_SILENCE
        while True:
            before = last
            last = await self._read_stream(last, silence)
            silence = FIRST_SILENCE if last != before else min(2 * silence, LONGEST_SILENCE)

    async def _listen_aside(self) -> None:
        """Follow the stream for messages that belong to no call, where servers of some SDKs put their prompts."""
        try:
            await self._read_stream(None, None)
        except (SessionGoneError, httpx2.HTTPError, httpx2.SSEError):
            return  # not offered, or another connection has it

    async def _read_stream(self, last: str | None, silence: float | None) -> str | None:
        """One GET, until it ends or is silent for `silence` seconds; gives the id of its last event."""
        headers = {"last-event-id": last} if last is not None else {}
        try:
            async with self.client.stream("GET", self.url, headers=headers) as response:
                _check(response)
                events = aiter(httpx2.EventSource(response, max_event_size=self.max_bytes))
                while True:
                    async with asyncio.timeout(silence):
                        event = await anext(events)
                    await self._take(event.data)
                    if event.id:
                        last = event.id
                        await self._report(last)
        except (TimeoutError, StopAsyncIteration):
            await asyncio.sleep(0.1)
        except httpx2.TransportError:
            await asyncio.sleep(1.0)
        return last

    async def _report(self, token: str) -> None:
        if self.metadata is not None and self.metadata.on_resumption_token_update is not None:
            await self.metadata.on_resumption_token_update(token)

    async def _take(self, data: str) -> None:
        try:
            message = jsonrpc_message_adapter.validate_json(data, by_name=False)
        except ValueError:
            return  # a beginning of a stream, or nothing that is for us
        await self._hand_over(message)

    async def _hand_over(self, message: JSONRPCMessage) -> None:
        if isinstance(message, JSONRPCRequest):
            if message.id in self.heard:
                return
            self.heard.add(message.id)
        await self.incoming.send(SessionMessage(message))


def _check(response: httpx2.Response) -> None:
    if 400 <= response.status_code < 500 and response.status_code != 429:
        raise SessionGoneError(f"it answers with HTTP status {response.status_code}")


def _json(message: JSONRPCMessage) -> Json:
    return message.model_dump(by_alias=True, mode="json", exclude_unset=True)
