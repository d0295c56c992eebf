"""Going on with a call whose first process is gone: `resume`, and ending one that nobody wants any more."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any

from mcp import ClientSession
from mcp.types import InitializeResult

from .clock import DeadlinePassedError, HumanClock, run_until
from .failures import failed_from, timed_out
from .http import HttpLink
from .kept import KeeperGoneError, KeptLink, attach_kept, end_kept
from .leg import Leg
from .live import Keep, LiveSession, ResumedOutcome, SessionLost
from .resumed_http import ReplyLostError, SessionGoneError, end_http, resume_http
from .sessions import Attempt, Session, on_one_session
from .stdio import StdioLink
from .values import (
    MAX_RESULT_BYTES,
    Binding,
    Elicit,
    Failed,
    FailureCode,
    HttpBinding,
    Journal,
    Json,
    Operation,
    Outcome,
    Progress,
)

KEEPER_LOST = (
    "The process that kept the server's session is gone: it ended, or the run was without its worker or its database "
    "for too long, or the machine was started anew. What the server had done so far cannot be known from here: look at "
    "it before you start the run again."
)
SERVER_LOST = (
    "The server's session is gone: {reason}. What it had done so far cannot be known from here: look at the server, "
    "then start the run again."
)
REPLY_LOST = (
    "The answer was handed to the server, but the server keeps nothing for a client that comes back, so its reply "
    "is lost. Whether the call took effect is unknown."
)


async def resume(
    binding: Binding | None,
    operation: Operation,
    live: LiveSession,
    *,
    keep: Keep,
    elicit: Elicit,
    journal: Journal,
    progress: Progress | None = None,
    timeout: float,
    max_bytes: int = MAX_RESULT_BYTES,
) -> ResumedOutcome:
    """Drive the rest of a leg on a live session that another process began, and close the session.

    The operation is not sent again. Prompts without an answer that has surely arrived are handed to `elicit` once
    more, with the same origin; `elicit` gives the stored answer if there is one, and the server takes one answer
    for each. `binding` is needed for HTTP alone. Journal, `timeout` (seconds), callbacks and cancellation are as
    in `perform`; only "result" and "error" are journalled.
    """
    leg = _ResumedLeg(
        live,
        binding=binding or HttpBinding(url=""),
        operation=operation,
        clock=HumanClock(timeout),
        elicit=elicit,
        journal=journal,
        progress=progress,
        on_elicitation_complete=None,
        on_session=None,
        max_bytes=max_bytes,
        keep=keep,
    )
    try:
        return await run_until(leg.run_on(), leg.clock, leg.before_cancel)
    except DeadlinePassedError:
        return timed_out(timeout, leg.attempt)


async def end_session(binding: Binding | None, live: LiveSession, *, token: int) -> None:
    """Tell the server of a session that nobody drives that its call is cancelled, and close the session.

    `token` is the fence, as in Keep. Best effort: what is gone already is gone.
    """
    if live.keeper is not None:
        await end_kept(live.keeper, token, live.operation_id)
    elif isinstance(binding, HttpBinding) and live.session_id is not None:
        await end_http(binding, live)


class _ResumedLeg(Leg):
    """A leg whose operation is out already."""

    def __init__(self, live: LiveSession, **leg: Any) -> None:
        super().__init__(**leg)
        self.live = live

    async def run_on(self) -> ResumedOutcome:
        """The rest of the leg."""
        attempt = self.attempt = Attempt(self.binding, resumed=True)
        try:
            outcome = await on_one_session(attempt, self._open(), self._adopt, self.work)
        except KeeperGoneError:
            return SessionLost(lost="keeper", message=KEEPER_LOST)
        except SessionGoneError as error:
            return SessionLost(lost="server", message=SERVER_LOST.format(reason=error))
        except ReplyLostError:
            return Failed(code=FailureCode.SERVER_DIED, message=REPLY_LOST, sent=True)
        except Exception as error:
            if error is self.fault:
                raise
            failed = failed_from(error, attempt, max_bytes=self.max_bytes)
            if failed is None:
                raise
            return self._lost_or(failed)
        if outcome is None:
            raise RuntimeError("a resumed leg cannot repeat a refusal")
        return self._lost_or(outcome)

    async def work(self, session: Session) -> Outcome | None:
        """As `Leg.work`, but the operation is only waited for."""
        session.dispatcher.resumed_id = self.live.operation_id
        return await super().work(session)

    def _open(self) -> AbstractAsyncContextManager[StdioLink | HttpLink]:
        if self.live.keeper is not None and self.keep is not None:
            return attach_kept(
                self.live.keeper, self.keep.token, max_bytes=self.max_bytes, on_first_message=True
            )
        if isinstance(self.binding, HttpBinding):
            return resume_http(self.binding, self.live, max_bytes=self.max_bytes)
        raise ValueError("a live session is reached through its keeper or by its URL")

    async def _adopt(self, client: ClientSession) -> Mapping[str, Json]:
        client.adopt(InitializeResult.model_validate(self.live.negotiated["initialize"]))
        return self.live.negotiated

    def _lost_or(self, outcome: Outcome) -> ResumedOutcome:
        """A connection that ends tells whether the server or its keeper did."""
        link = self.attempt.link
        died = isinstance(outcome, Failed) and outcome.code is FailureCode.SERVER_DIED
        if not died or not isinstance(link, KeptLink) or link.taken:
            return outcome
        if not link.heard_of_end:
            return SessionLost(lost="keeper", message=KEEPER_LOST)
        words = link.last_words()
        reason = "its process has ended" + (f", and its last line was: {words}" if words else "")
        return SessionLost(lost="server", message=SERVER_LOST.format(reason=reason))
