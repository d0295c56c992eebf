"""Following a task (SEP-2663): `poll` looks at it once and hands over answers, `cancel_task` gives it up.

A task lives on its server. Between two looks nothing is open here, so any process that knows its id can follow it,
and a look that came to nothing is simply made again.
"""

from __future__ import annotations

from collections.abc import Awaitable, Collection, Mapping
from typing import Protocol

from mcp import MCPError
from mcp_types import INVALID_PARAMS, METHOD_NOT_FOUND

from . import task_wire
from .clock import DeadlinePassedError, HumanClock, run_until
from .failures import MAX_SERVER_TEXT, failed_from, timed_out
from .mapping import UnacceptableError, clip
from .results import completed, unusable
from .sessions import Attempt, Session, with_session
from .values import (
    MAX_RESULT_BYTES,
    Binding,
    Failed,
    FailureCode,
    InputRequired,
    Json,
    Operation,
    TaskOutcome,
    Unanswered,
    Working,
)

_NOT_KNOWN = frozenset({INVALID_PARAMS, METHOD_NOT_FOUND})
"""Error codes by which a server says that it has no such task, or no tasks any more."""


class TaskJournal(Protocol):
    """What is written down around the wire. An exception of these stops the look and comes out unchanged."""

    async def updating(self, keys: Collection[str]) -> None:
        """The answers to these keys are about to leave."""

    async def updated(self, keys: Collection[str]) -> None:
        """The server has acknowledged the answers to these keys; they are never sent again."""

    async def finished(self, raw: Mapping[str, Json]) -> None:
        """The final result of the call, before anything looks at it."""


async def poll(
    binding: Binding,
    task_id: str,
    operation: Operation,
    *,
    saved: Mapping[str, Json] | None,
    responses: Mapping[str, Mapping[str, Json]],
    answered: Collection[str],
    journal: TaskJournal,
    timeout: float,
    max_bytes: int = MAX_RESULT_BYTES,
) -> TaskOutcome:
    """Look at a task on a session of its own, and hand over what it asked for.

    `operation` is the call that the task stands for. `responses` are the answers, as they go over the wire, that
    no server has acknowledged yet; of these the ones that the task asks for *now* are sent, in one `tasks/update`.
    So an answer whose delivery was cut off goes out again exactly if it is still wanted, and no key is answered
    that nobody asked for. `answered` are the keys that were acknowledged: a server may show them a little longer
    (the extension permits it), which is no new question. `timeout` in seconds bounds the whole look.

    Failed means that the task will not go on. It is `outcome_unknown` if the server does not know the task any
    more, or answers about it in a way that cannot be understood: what it did until then nobody knows. Cancelling
    the awaiting task closes the session and leaves the server's task alone.
    """
    look = _Look(binding, task_id, operation, responses, answered, journal, HumanClock(timeout), max_bytes)
    try:
        return await run_until(look.run(saved), look.clock)
    except DeadlinePassedError:
        return Unanswered(message=timed_out(timeout, None).message)


async def cancel_task(
    binding: Binding, task_id: str, *, saved: Mapping[str, Json] | None, timeout: float
) -> bool:
    """Tell the server that nobody waits for the task any more; whether it heard.

    That is all the extension offers: the server decides whether and when it stops (SEP-2663, Task Cancellation).
    """
    attempts: list[Attempt] = []

    async def cancel(session: Session) -> None:
        if session.modern:
            await session.request(task_wire.CANCEL, {"taskId": task_id})

    work = with_session(binding, saved, cancel, max_bytes=MAX_RESULT_BYTES, watch=attempts.append)
    try:
        await run_until(work, HumanClock(timeout))
    except DeadlinePassedError:
        return False
    except Exception as error:
        if isinstance(error, MCPError) and error.code in _NOT_KNOWN:
            return True
        if failed_from(error, attempts[-1], max_bytes=MAX_RESULT_BYTES) is None:
            raise
        return False
    return True


class _Look:
    """The state of one `poll`."""

    def __init__(
        self,
        binding: Binding,
        task_id: str,
        operation: Operation,
        responses: Mapping[str, Mapping[str, Json]],
        answered: Collection[str],
        journal: TaskJournal,
        clock: HumanClock,
        max_bytes: int,
    ) -> None:
        self.binding = binding
        self.task_id = task_id
        self.operation = operation
        self.responses = responses
        self.answered = set(answered)
        self.journal = journal
        self.clock = clock
        self._max_bytes = max_bytes
        self._attempt = Attempt(binding)
        self._fault: Exception | None = None

    async def run(self, saved: Mapping[str, Json] | None) -> TaskOutcome:
        try:
            return await with_session(
                self.binding, saved, self._work, max_bytes=self._max_bytes, watch=self._watch
            )
        except Exception as error:
            if error is self._fault:
                raise
            return self._came_to_nothing(error)

    def _watch(self, attempt: Attempt) -> None:
        self._attempt = attempt

    async def _work(self, session: Session) -> TaskOutcome:
        if not session.modern:
            return _lost(FailureCode.TASK_GONE, "The server now speaks a protocol without tasks.")
        raw = await self._get(session)
        if isinstance(raw, Failed):
            return raw
        wanted = self._wanted(raw)
        if wanted:
            refusal = await self._update(session, wanted)
            raw = await self._get(session)
            if isinstance(raw, Failed):
                return raw
            if refusal is not None and wanted.keys() & self._wanted(raw).keys():
                message = f"The server did not take the answer: {refusal}"
                return Failed(code=FailureCode.REFUSED_BY_SERVER, message=message, sent=True, answered=True)
        return await self._outcome(raw, session)

    # --- the wire -----------------------------------------------------------------------------------------

    async def _get(self, session: Session) -> Mapping[str, Json] | Failed:
        """The task as its server describes it now, or that there is none."""
        try:
            return await session.request(task_wire.GET, {"taskId": self.task_id})
        except MCPError as error:
            refusal = self._refusal(error)
            if refusal is None or error.code not in _NOT_KNOWN:
                raise
            return _lost(FailureCode.TASK_GONE, f"The server does not know its task any more: {refusal}")

    async def _update(self, session: Session, wanted: Mapping[str, Mapping[str, Json]]) -> str | None:
        """Hand over answers; the server's words if it finds them unfit."""
        await self._noted(self.journal.updating(wanted.keys()))
        try:
            await session.request(task_wire.UPDATE, {"taskId": self.task_id, "inputResponses": dict(wanted)})
        except MCPError as error:
            refusal = self._refusal(error)
            if refusal is None or error.code != INVALID_PARAMS:
                raise
            return refusal
        self.answered |= wanted.keys()
        await self._noted(self.journal.updated(wanted.keys()))
        return None

    def _refusal(self, error: MCPError) -> str | None:
        """The words of an error that the server itself gave, not its gateway or the line to it."""
        failed = failed_from(error, self._attempt, max_bytes=self._max_bytes)
        if failed is None or failed.code is not FailureCode.REFUSED_BY_SERVER:
            return None
        return clip(error.message, MAX_SERVER_TEXT) or "no reason"

    async def _noted(self, note: Awaitable[None]) -> None:
        try:
            await note
        except Exception as error:
            self._fault = error
            raise

    # --- what it means ------------------------------------------------------------------------------------

    def _wanted(self, raw: Mapping[str, Json]) -> dict[str, Mapping[str, Json]]:
        """The answers that the task asks for now and has not acknowledged."""
        asked = raw.get("inputRequests")
        if raw.get("status") != task_wire.INPUT_REQUIRED or raw.get("taskId") != self.task_id:
            return {}
        if not isinstance(asked, dict):
            return {}
        return {
            key: answer for key, answer in self.responses.items() if key in asked and key not in self.answered
        }

    async def _outcome(self, raw: Mapping[str, Json], session: Session) -> TaskOutcome:
        try:
            status = task_wire.checked_status(raw, self.task_id)
        except UnacceptableError as problem:
            return _lost(FailureCode.PROTOCOL_ERROR, problem.message)
        match status:
            case task_wire.COMPLETED:
                return await self._completed(raw, session)
            case task_wire.FAILED:
                return _ended(FailureCode.TASK_FAILED, f"The task failed: {_why(raw)}")
            case task_wire.CANCELLED:
                return _ended(FailureCode.TASK_CANCELLED, f"The server cancelled its task: {_why(raw)}")
            case task_wire.INPUT_REQUIRED:
                return self._asked(raw, session)
        return _working(raw, session)

    async def _completed(self, raw: Mapping[str, Json], session: Session) -> TaskOutcome:
        self.clock.stop()  # the result is here, and keeping it must not be cut short
        result = raw.get("result")
        result = result if isinstance(result, dict) else {}
        await self._noted(self.journal.finished(result))
        return await completed(result, self.operation, session.negotiated)

    def _asked(self, raw: Mapping[str, Json], session: Session) -> TaskOutcome:
        try:
            requests = task_wire.outstanding(raw)
        except UnacceptableError as problem:
            return unusable(problem)
        new = {key: request for key, request in requests.items() if key not in self.answered}
        if not new:
            return _working(raw, session)
        return InputRequired(requests=new, request_state=None, negotiated=session.negotiated)

    def _came_to_nothing(self, error: Exception) -> Unanswered | Failed:
        failed = failed_from(error, self._attempt, max_bytes=self._max_bytes)
        if failed is None:
            raise error
        if failed.code is FailureCode.TOO_LARGE:
            return _lost(failed.code, failed.message)
        return Unanswered(message=failed.message)


def _working(raw: Mapping[str, Json], session: Session) -> Working:
    return Working(
        poll_after=task_wire.poll_after(raw),
        ttl=task_wire.ttl(raw),
        message=task_wire.status_message(raw),
        negotiated=session.negotiated,
    )


def _ended(code: FailureCode, message: str) -> Failed:
    """The server says how it ended."""
    return Failed(code=code, message=message, sent=True, answered=True)


def _lost(code: FailureCode, message: str) -> Failed:
    """Nobody can say how it ended."""
    return Failed(code=code, message=message, sent=True)


def _why(raw: Mapping[str, Json]) -> str:
    error = raw.get("error")
    text = clip(error.get("message"), MAX_SERVER_TEXT) if isinstance(error, dict) else ""
    return text or task_wire.status_message(raw) or "it gives no reason."
