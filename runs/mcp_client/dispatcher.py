"""The JSON-RPC end of a session: unique ids, the journal hook, raw results, elicitation before validation.

The SDK's `JSONRPCDispatcher` is importable but not promised; tests/mcp/test_sdk_contract.py pins what we use.
"""

from __future__ import annotations

import uuid
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any

import anyio
import anyio.abc
from mcp import MCPError
from mcp.shared.dispatcher import CallOptions, DispatchContext, OnNotify, OnNotifyIntercept, OnRequest
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
from mcp.shared.message import SessionMessage
from mcp.shared.transport_context import TransportContext
from mcp_types import METHOD_NOT_FOUND, RequestId

from .values import Journal, Json

if TYPE_CHECKING:
    from mcp.client._transport import ReadStream, WriteStream

ELICIT_METHOD = "elicitation/create"
ELICIT_COMPLETE_METHOD = "notifications/elicitation/complete"
CANCEL_NOTICE_SECONDS = 2.0
"""How long a cancellation notice may take to be written before we give up on being polite."""

AnswerElicitation = Callable[[RequestId, Mapping[str, Json]], Awaitable[dict[str, Any]]]
NoticeCompletion = Callable[[str], Awaitable[None]]


class LegDispatcher(JSONRPCDispatcher[TransportContext]):
    """Drives the messages of one session that is used for one operation.

    The SDK restarts its ids at 1 on every connection, but a retry must not reuse the id of the first call
    (SEP-2322), so ours are unique for ever. `last_result` is the latest raw result, kept before the SDK
    validates it and may lose it; requests are sent one after another.
    """

    def __init__(
        self,
        read_stream: ReadStream[SessionMessage | Exception],
        write_stream: WriteStream[SessionMessage],
    ) -> None:
        super().__init__(read_stream, write_stream)
        self.operation_method: str | None = None
        self.operation_headers: Mapping[str, str] = {}
        self.operation_started = False
        self.operation_id: str | None = None
        self.resumed_id: str | None = None
        """The operation's id if another process has sent it: here its reply is only waited for."""
        self.last_result: dict[str, Any] | None = None
        self.journal: Journal | None = None
        self.before_operation: Callable[[str], Awaitable[None]] | None = None
        self.answer_elicitation: AnswerElicitation | None = None
        self.notice_completion: NoticeCompletion | None = None

    async def send_raw_request(
        self,
        method: str,
        params: Mapping[str, Any] | None,
        opts: CallOptions | None = None,
        *,
        _related_request_id: RequestId | None = None,
    ) -> dict[str, Any]:
        """Send one request under an id of our own; the operation's is journalled around the wire."""
        options: CallOptions = {**opts} if opts else {}
        request_id = f"m3-{uuid.uuid4().hex}"
        options["request_id"] = request_id
        self.last_result = None
        if method != self.operation_method:
            raw = await super().send_raw_request(
                method, params, options, _related_request_id=_related_request_id
            )
            self.last_result = dict(raw)
            return raw
        if self.operation_headers:
            options["headers"] = {**options.get("headers", {}), **self.operation_headers}
        return await self._send_operation(request_id, method, params or {}, options)

    async def _send_operation(
        self, request_id: str, method: str, params: Mapping[str, Any], options: CallOptions
    ) -> dict[str, Any]:
        if self.resumed_id is not None:
            # The transport knows that this id is out and holds the request back; see `kept` and `resumed_http`.
            request_id = options["request_id"] = self.operation_id = self.resumed_id
        else:
            self.operation_id = request_id
            await self._record("sent", request_id, method, params)
            if self.before_operation is not None:
                await self.before_operation(request_id)
        self.operation_started = True
        try:
            raw = await super().send_raw_request(method, params, options)
        except MCPError as error:
            await self._record("error", request_id, method, error.error.model_dump(exclude_none=True))
            raise
        except anyio.get_cancelled_exc_class():
            await self._cancel_resumable(request_id, options)
            raise
        # A copy: the SDK normalises the dict in place, and what we keep is what the server said.
        self.last_result = dict(raw)
        await self._record("result", request_id, method, self.last_result)
        return raw

    async def _record(self, event: Any, request_id: str, method: str, payload: Mapping[str, Any]) -> None:
        if self.journal is not None:
            await self.journal(event, request_id, method, payload)

    async def _cancel_resumable(self, request_id: str, options: CallOptions) -> None:
        """Tell the server that we gave up: the SDK omits this once resumption tokens are asked for."""
        if "on_resumption_token" not in options:
            return
        with anyio.move_on_after(CANCEL_NOTICE_SECONDS, shield=True):
            await self.notify(
                "notifications/cancelled",
                {"requestId": request_id, "reason": "The caller cancelled the call."},
            )

    async def run(
        self,
        on_request: OnRequest,
        on_notify: OnNotify,
        on_notify_intercept: OnNotifyIntercept | None = None,
        *,
        task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED,
    ) -> None:
        """The receive loop, with elicitation taken out before the SDK's models see it.

        The SDK would refuse a slightly odd prompt before we hear of it, and would drop what its models do not
        know; `mapping` is the one place that decides what is acceptable.
        """

        async def requests(
            context: DispatchContext[TransportContext], method: str, params: Mapping[str, Any] | None
        ) -> dict[str, Any]:
            if method != ELICIT_METHOD:
                return await on_request(context, method, params)
            if self.answer_elicitation is None:
                raise MCPError(code=METHOD_NOT_FOUND, message="Method not found", data=method)
            return await self.answer_elicitation(context.request_id or 0, params or {})

        async def notices(
            context: DispatchContext[TransportContext], method: str, params: Mapping[str, Any] | None
        ) -> None:
            if method != ELICIT_COMPLETE_METHOD:
                return await on_notify(context, method, params)
            finished = (params or {}).get("elicitationId")
            if self.notice_completion is not None and isinstance(finished, str):
                await self.notice_completion(finished)
            return None

        await super().run(requests, notices, on_notify_intercept, task_status=task_status)
