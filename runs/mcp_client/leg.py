"""One leg of an operation on an open session: send, be asked, be told, get the reply."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

import anyio
from mcp import MCPError
from mcp.shared.message import ClientMessageMetadata
from mcp_types import HEADER_MISMATCH, INTERNAL_ERROR, INVALID_PARAMS, INVALID_REQUEST

from .clock import HumanClock
from .http import HttpLink
from .kept import KeptLink
from .listing import argument_headers, find_tool
from .live import Keep
from .mapping import METHODS, UnacceptableError, answer_to_wire, clip, operation_params, request_from_wire
from .results import outcome_from_error, outcome_from_result
from .sessions import Attempt, Session
from .stdio import StdioLink
from .values import (
    ELICITATION_KEY,
    Binding,
    Elicit,
    Journal,
    JournalEvent,
    Json,
    OnElicitationComplete,
    OnSession,
    Operation,
    Outcome,
    Progress,
    PromptOrigin,
    Refusal,
    SessionInfo,
    StateRefused,
)

T = TypeVar("T")
MAX_PROGRESS_TEXT = 500
MAX_OPEN_PROMPTS = 20
"""Most prompts of one call that may wait for a person at once; further ones are refused to the server."""


class Leg:
    """One leg of an operation on one session: its state, its callbacks, and the work on the session."""

    def __init__(
        self,
        *,
        binding: Binding,
        operation: Operation,
        clock: HumanClock,
        elicit: Elicit | None,
        journal: Journal,
        progress: Progress | None,
        on_elicitation_complete: OnElicitationComplete | None,
        on_session: OnSession | None,
        max_bytes: int,
        keep: Keep | None,
    ) -> None:
        self.binding = binding
        self.operation = operation
        self.clock = clock
        self.attempt = Attempt(binding)
        self._elicit = elicit
        self._journal = journal
        self._progress = progress
        self._on_elicitation_complete = on_elicitation_complete
        self._on_session = on_session
        self.max_bytes = max_bytes
        self.keep = keep
        self._scope = anyio.CancelScope()
        self.fault: Exception | None = None
        self.error_code: int | None = None
        self._open_prompts = 0
        self._token: str | None = None
        """The latest place in the HTTP stream that was read, if the server numbers its events."""
        self._token_reported = False

    def before_cancel(self) -> None:
        """The leg is about to be stopped: if its session is to outlive it, the server must not hear of it."""
        link = self.attempt.link
        if self.keep is not None and self.keep.leave and isinstance(link, HttpLink | KeptLink):
            link.detached = True

    async def work(self, session: Session) -> Outcome | None:
        """Everything that happens on the session."""
        if not session.modern and (self.operation.request_state or self.operation.input_responses):
            return StateRefused(
                message="The server now speaks a protocol without stored rounds. The call starts again."
            )
        self._prepare(session)
        outcome: Outcome | None = None
        with anyio.CancelScope() as self._scope:
            outcome = await self._operate(session)
        self.clock.stop()  # closing has bounds of its own and must not turn an outcome into a timeout
        if self.fault is not None:
            raise self.fault
        return outcome

    def _prepare(self, session: Session) -> None:
        dispatcher = session.dispatcher
        dispatcher.journal = self._record
        dispatcher.before_operation = lambda jsonrpc_id: self._report_session(session, jsonrpc_id, None)
        if not session.modern:
            dispatcher.answer_elicitation = self._answer
            dispatcher.notice_completion = self._notice_completion

    # --- the operation ------------------------------------------------------------------------------------

    async def _operate(self, session: Session) -> Outcome:
        definition = self.operation.definition
        mirrors_arguments = (
            session.modern and isinstance(session.link, HttpLink) and self.operation.kind == "tool"
        )
        if mirrors_arguments:
            definition = definition or await find_tool(session, self.operation.name)
            session.dispatcher.operation_headers = argument_headers(definition, self.operation.arguments)
        try:
            return await self._send(session)
        except MCPError as error:
            if error.code != HEADER_MISMATCH or not mirrors_arguments:
                return self._outcome_of(error, session)
        # The definition changed since it was listed. The server has refused before acting (2026-07-28, HTTP).
        fresh = await find_tool(session, self.operation.name)
        session.dispatcher.operation_headers = argument_headers(fresh, self.operation.arguments)
        try:
            return await self._send(session)
        except MCPError as error:
            return self._outcome_of(error, session)

    async def _send(self, session: Session) -> Outcome:
        method = session.dispatcher.operation_method = METHODS[self.operation.kind]
        raw = await session.request(
            method,
            operation_params(self.operation, modern=session.modern),
            progress=self._report_progress if self._progress else None,
            metadata=self._resumption(session),
        )
        return await outcome_from_result(raw, self.operation, session.negotiated)

    def _outcome_of(self, error: MCPError, session: Session) -> Outcome:
        self.error_code = error.code
        return outcome_from_error(error, self.attempt, session.negotiated, max_bytes=self.max_bytes)

    # --- callbacks ----------------------------------------------------------------------------------------

    async def _record(
        self, event: JournalEvent, jsonrpc_id: str, method: str, payload: Mapping[str, Json]
    ) -> None:
        if event == "result":
            self.clock.stop()
        try:
            with self.clock.paused():
                await self._journal(event, jsonrpc_id, method, payload)
        except Exception as error:
            self.fault = error
            self.before_cancel()
            raise

    async def _answer(self, prompt_id: str | int, params: Mapping[str, Json]) -> dict[str, Any]:
        """Answer one prompt of an older server. Raises MCPError: the protocol's refusal."""
        origin = PromptOrigin(jsonrpc_id=prompt_id, resumption_token=self._token)
        try:
            request = replace(request_from_wire(ELICITATION_KEY, params), origin=origin)
        except UnacceptableError as problem:
            raise MCPError(code=INVALID_PARAMS, message=problem.message) from None
        if self._elicit is None:
            raise MCPError(code=INVALID_REQUEST, message="Nobody may be asked during this call.")
        if self._open_prompts >= MAX_OPEN_PROMPTS:
            raise MCPError(code=INVALID_REQUEST, message="Too many prompts are open at once.")
        self._open_prompts += 1
        try:
            with self.clock.paused():
                answer = await self._guarded(self._elicit(request))
        finally:
            self._open_prompts -= 1
        if isinstance(answer, Refusal):
            raise MCPError(code=INVALID_REQUEST, message=answer.message)
        return answer_to_wire(answer)

    async def _notice_completion(self, elicitation_id: str) -> None:
        if self._on_elicitation_complete is not None:
            await self._guarded(self._on_elicitation_complete(elicitation_id))

    async def _report_progress(self, progress: float, total: float | None, message: str | None) -> None:
        if self._progress is not None:
            text = None if message is None else clip(message, MAX_PROGRESS_TEXT)
            await self._guarded(self._progress(progress, total, text))

    async def _report_session(self, session: Session, jsonrpc_id: str, token: str | None) -> None:
        """Report the session, and only then let it outlive us: what nobody knows of must not stay."""
        if self._on_session is None:
            return
        link = session.link
        info = SessionInfo(
            negotiated=session.negotiated,
            jsonrpc_id=jsonrpc_id,
            session_id=link.seen.session_id if isinstance(link, HttpLink) else None,
            resumption_token=token,
            pid=link.pid if isinstance(link, StdioLink) else None,
            keeper=link.keeper if isinstance(link, KeptLink) else None,
        )
        await self._guarded(self._on_session(info))
        if isinstance(link, KeptLink) and not session.modern:
            await link.outlive_us()

    def _resumption(self, session: Session) -> ClientMessageMetadata | None:
        """Ask for SSE resumption tokens where they exist."""
        if session.modern or not isinstance(session.link, HttpLink):
            return None

        async def token_update(token: str) -> None:
            self._token = token
            if not self._token_reported:
                self._token_reported = True
                await self._report_session(session, session.dispatcher.operation_id or "", token)

        return ClientMessageMetadata(on_resumption_token_update=token_update)

    async def _guarded(self, callback: Awaitable[T]) -> T:
        """Await a callback inside the SDK, which would swallow its exception or send its text to the server:
        keep the exception, stop the leg, and let `_work` raise it."""
        try:
            return await callback
        except Exception as error:
            self.fault = error
            self.before_cancel()
            self._scope.cancel()
            raise MCPError(code=INTERNAL_ERROR, message="The client had to stop.") from None
