"""One leg of an operation on a fresh session that is always closed: `perform`."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from typing import Any, TypeVar

import anyio
from mcp import MCPError
from mcp.shared.message import ClientMessageMetadata
from mcp_types import (
    HEADER_MISMATCH,
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    UNSUPPORTED_PROTOCOL_VERSION,
)

from .clock import DeadlinePassedError, HumanClock, run_until
from .failures import failed_from, timed_out
from .http import HttpLink
from .listing import argument_headers, find_tool
from .mapping import METHODS, UnacceptableError, answer_to_wire, clip, operation_params, request_from_wire
from .results import outcome_from_error, outcome_from_result
from .sessions import Attempt, Session, with_session
from .stdio import StdioLink
from .values import (
    ELICITATION_KEY,
    MAX_RESULT_BYTES,
    Binding,
    Elicit,
    Failed,
    FailureCode,
    Journal,
    JournalEvent,
    Json,
    OnElicitationComplete,
    OnSession,
    Operation,
    Outcome,
    Progress,
    Refusal,
    SessionInfo,
    StateRefused,
)

T = TypeVar("T")
MAX_PROGRESS_TEXT = 500
MAX_OPEN_PROMPTS = 20
"""Most prompts of one call that may wait for a person at once; further ones are refused to the server."""

_WRONG_GENERATION = frozenset(
    {UNSUPPORTED_PROTOCOL_VERSION, INVALID_REQUEST, METHOD_NOT_FOUND, INVALID_PARAMS, -32000}
)
"""Error codes by which servers have been seen to refuse a message of the other generation."""


async def perform(
    binding: Binding,
    operation: Operation,
    *,
    saved: Mapping[str, Json] | None,
    elicit: Elicit | None,
    journal: Journal,
    progress: Progress | None = None,
    timeout: float,
    on_elicitation_complete: OnElicitationComplete | None = None,
    on_session: OnSession | None = None,
    max_bytes: int = MAX_RESULT_BYTES,
) -> Outcome:
    """Drive one leg of `operation` and close the session.

    `saved` is the negotiation saved for this server. `elicit` is awaited for every prompt of an older server
    on the open session, for several at once if it sends several; meanwhile `timeout` (seconds, for everything
    else together) stands still. None refuses every prompt at once. `journal` is awaited with "sent" before
    the operation's request is written and with "result" or "error" before anything looks at the answer;
    handshake and listings are not journalled. `on_session` gets what an attaching process would need.

    An exception of a callback stops the leg and comes out unchanged. Cancelling the awaiting task tells the
    server that the call is cancelled, closes the session and raises CancelledError.
    """
    leg = _Leg(
        binding=binding,
        operation=operation,
        clock=HumanClock(timeout),
        elicit=elicit,
        journal=journal,
        progress=progress,
        on_elicitation_complete=on_elicitation_complete,
        on_session=on_session,
        max_bytes=max_bytes,
    )
    try:
        return await run_until(leg.run(saved), leg.clock)
    except DeadlinePassedError:
        return timed_out(timeout, leg.attempt)


class _Leg:
    """The state of one `perform`."""

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
        self._max_bytes = max_bytes
        self._scope = anyio.CancelScope()
        self._fault: Exception | None = None
        self._error_code: int | None = None
        self._open_prompts = 0
        self._refused_on: str | None = None
        """The generation on which the server refused; the same again would change nothing."""

    async def run(self, saved: Mapping[str, Json] | None) -> Outcome:
        """The leg; once more on a newly negotiated session if the saved generation proves wrong."""
        outcome = await self._attempt(saved)
        if outcome is None:
            raise RuntimeError("a first attempt cannot repeat a refusal")
        if saved is None or not isinstance(outcome, Failed) or not self._may_be_wrong_generation(outcome):
            return outcome
        self._refused_on = next(iter(saved)) if outcome.sent else None
        self.clock.restart()
        second = await self._attempt(None)
        if second is None or (isinstance(second, Failed) and outcome.sent and not second.sent):
            return outcome
        return second

    def _may_be_wrong_generation(self, failed: Failed) -> bool:
        if not failed.sent:  # the handshake was refused; nothing has happened
            return failed.code not in (FailureCode.UNREACHABLE, FailureCode.TOO_LARGE)
        refused = failed.code is FailureCode.HTTP_STATUS or self._error_code in _WRONG_GENERATION
        return failed.answered and refused

    async def _attempt(self, saved: Mapping[str, Json] | None) -> Outcome | None:
        """One session; None if it came out on the generation that has refused already."""
        try:
            return await with_session(
                self.binding, saved, self._work, max_bytes=self._max_bytes, watch=self._watch
            )
        except Exception as error:
            if error is self._fault:
                raise
            failed = failed_from(error, self.attempt, max_bytes=self._max_bytes)
            if failed is None:
                raise
            return failed

    def _watch(self, attempt: Attempt) -> None:
        self.attempt = attempt

    async def _work(self, session: Session) -> Outcome | None:
        if self._refused_on is not None and self._refused_on in session.negotiated:
            return None
        if not session.modern and (self.operation.request_state or self.operation.input_responses):
            return StateRefused(
                message="The server now speaks a protocol without stored rounds. The call starts again."
            )
        self._prepare(session)
        outcome: Outcome | None = None
        with anyio.CancelScope() as self._scope:
            outcome = await self._operate(session)
        self.clock.stop()  # closing has bounds of its own and must not turn an outcome into a timeout
        if self._fault is not None:
            raise self._fault
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
        self._error_code = error.code
        return outcome_from_error(error, self.attempt, session.negotiated, max_bytes=self._max_bytes)

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
            self._fault = error
            raise

    async def _answer(self, params: Mapping[str, Json]) -> dict[str, Any]:
        """Answer one prompt of an older server. Raises MCPError: the protocol's refusal."""
        try:
            request = request_from_wire(ELICITATION_KEY, params)
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
        if self._on_session is None:
            return
        link = session.link
        info = SessionInfo(
            negotiated=session.negotiated,
            jsonrpc_id=jsonrpc_id,
            session_id=link.seen.session_id if isinstance(link, HttpLink) else None,
            resumption_token=token,
            pid=link.process.pid if isinstance(link, StdioLink) else None,
        )
        await self._guarded(self._on_session(info))

    def _resumption(self, session: Session) -> ClientMessageMetadata | None:
        """Ask for SSE resumption tokens where they exist and somebody wants them."""
        if self._on_session is None or session.modern or not isinstance(session.link, HttpLink):
            return None

        async def token_update(token: str) -> None:
            await self._report_session(session, session.dispatcher.operation_id or "", token)

        return ClientMessageMetadata(on_resumption_token_update=token_update)

    async def _guarded(self, callback: Awaitable[T]) -> T:
        """Await a callback inside the SDK, which would swallow its exception or send its text to the server:
        keep the exception, stop the leg, and let `_work` raise it."""
        try:
            return await callback
        except Exception as error:
            self._fault = error
            self._scope.cancel()
            raise MCPError(code=INTERNAL_ERROR, message="The client had to stop.") from None
