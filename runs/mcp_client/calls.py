"""One leg of an operation on a fresh session that is always closed: `perform`."""

from __future__ import annotations

from collections.abc import Mapping

from mcp_types import INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND, UNSUPPORTED_PROTOCOL_VERSION

from .clock import DeadlinePassedError, HumanClock, run_until
from .failures import failed_from, timed_out
from .leg import Leg
from .live import Keep
from .sessions import Attempt, Session, with_session
from .values import (
    MAX_RESULT_BYTES,
    Binding,
    Elicit,
    Failed,
    FailureCode,
    Journal,
    Json,
    OnElicitationComplete,
    OnSession,
    Operation,
    Outcome,
    Progress,
)

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
    keep: Keep | None = None,
    max_bytes: int = MAX_RESULT_BYTES,
) -> Outcome:
    """Drive one leg of `operation` and close the session.

    `saved` is the negotiation saved for this server. `elicit` is awaited for every prompt of an older server
    on the open session, for several at once if it sends several; meanwhile `timeout` (seconds, for everything
    else together) stands still. None refuses every prompt at once. `journal` is awaited with "sent" before
    the operation's request is written and with "result" or "error" before anything looks at the answer;
    handshake and listings are not journalled. `on_session` gets what an attaching process would need; with `keep`
    an older server's session may outlive this process, and `resume` goes on with it.

    An exception of a callback stops the leg and comes out unchanged. Cancelling the awaiting task tells the
    server that the call is cancelled, closes the session and raises CancelledError. `keep.leave` changes both.
    """
    leg = _FreshLeg(
        binding=binding,
        operation=operation,
        clock=HumanClock(timeout),
        elicit=elicit,
        journal=journal,
        progress=progress,
        on_elicitation_complete=on_elicitation_complete,
        on_session=on_session,
        max_bytes=max_bytes,
        keep=keep,
    )
    try:
        return await run_until(leg.run(saved), leg.clock, leg.before_cancel)
    except DeadlinePassedError:
        return timed_out(timeout, leg.attempt)


class _FreshLeg(Leg):
    """A leg that opens its own session, once more if the saved generation is wrong."""

    _refused_on: str | None = None
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
        refused = failed.code is FailureCode.HTTP_STATUS or self.error_code in _WRONG_GENERATION
        return failed.answered and refused

    async def _attempt(self, saved: Mapping[str, Json] | None) -> Outcome | None:
        """One session; None if it came out on the generation that has refused already."""
        try:
            return await with_session(
                self.binding,
                saved,
                self.work,
                max_bytes=self.max_bytes,
                watch=self._watch,
                keep=self.keep,
            )
        except Exception as error:
            if error is self.fault:
                raise
            failed = failed_from(error, self.attempt, max_bytes=self.max_bytes)
            if failed is None:
                raise
            return failed

    def _watch(self, attempt: Attempt) -> None:
        self.attempt = attempt

    async def work(self, session: Session) -> Outcome | None:
        """As `Leg.work`; None if this session has the generation that has refused already."""
        if self._refused_on is not None and self._refused_on in session.negotiated:
            return None
        return await super().work(session)
