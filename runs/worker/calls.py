"""Driving one operation: gate, send, hold a live session while a person thinks, store what came of it."""

from __future__ import annotations

import asyncio
import contextlib
import datetime as dt
import logging
import time
import uuid
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, ParamSpec, TypeVar

from django.conf import settings
from django.db import OperationalError
from django.utils import timezone

from runs import clock, db, local_tools
from runs.binding import binding_of
from runs.errors import LeaseLost, M3Error
from runs.local_tools import LOCAL, LocalTool
from runs.mcp_client import (
    Binding,
    Completed,
    Failed,
    InputRequired,
    InspectionFailed,
    LiveSession,
    Outcome,
    ResumedOutcome,
    SessionInfo,
    SessionLost,
    StateRefused,
    TaskStarted,
    UrlsRequired,
    inspect,
    perform,
    resume,
)
from runs.mcp_client.results import outcome_from_result
from runs.models import Server, Step, ToolCall
from runs.races import AWAY
from runs.worker import (
    call_journal,
    gating,
    leg_rows,
    operations,
    recovery,
    session_rows,
    task_facts,
    task_rows,
)
from runs.worker.following import Follower
from runs.worker.leftovers import end_leftovers
from runs.worker.moves import Move, next_move
from runs.worker.prompts import Held, Prompts
from runs.worker.requests_in import stored_requests

P = ParamSpec("P")
T = TypeVar("T")
log = logging.getLogger(__name__)

LIST_TIMEOUT = 30.0
"""Seconds for a look at a server's tools."""

PROGRESS_EVERY = 1.0
"""Seconds between two stored progress notes of one call."""

START_AGAIN = "Look at the server, then start the run again."


class CallDriver:
    """Drives one step's operation until it is done or parked."""

    def __init__(self, held: Held, step_id: int) -> None:
        self.held, self.lease, self.step_id = held, held.lease, step_id
        self.prompts = Prompts(held, step_id)
        self.keep = session_rows.keep_for(held.lease)
        self._kept = False
        """Whether another worker could go on with the session that is open."""
        self._progress_at = 0.0

    async def drive(self) -> None:
        """Move after move, each committed, until the rows permit none."""
        move: Move | None = None
        while True:
            before = move
            step, rounds = await db.read(call_journal.rows, self.step_id)
            if step.result is not None:
                return
            move, round_ = next_move(step.call, rounds)
            match move:
                case Move.PARKED if rounds:
                    return
                case Move.PARKED:
                    raise RuntimeError(
                        f"step {step.seq} is open, waits for nobody and cannot move ({step.call.phase})"
                    )
                case Move.GATE:
                    await self._gate(step.call)
                case Move.SEND:
                    await self._leg(step.call, just_decided=before is Move.GATE)
                case Move.RECOVER:
                    await self._recover(step.call)
                case Move.FOLLOW:
                    if not await self._follow(step):
                        return
                case Move.APPLY_APPROVAL if round_:
                    await db.write(gating.apply_approval, self.lease, self.step_id, round_.pk)
                case Move.APPLY_ANSWERS if round_:
                    await db.write(call_journal.apply_answers, self.lease, self.step_id, round_.pk)
                case Move.APPLY_OUTCOME if round_:
                    await db.write(call_journal.apply_outcome, self.lease, self.step_id, round_.pk)

    async def before_stop(self, *, taken: bool) -> None:
        """Settle what becomes of an open session when this driver is stopped.

        Of a call that is over it is ended. `taken` means that the run is somebody else's, and so is the session. A
        worker that only stops leaves a session in which a person was asked, and ends any other. So does one whose
        database does not answer: nobody has said that the call is over. Nothing more is asked from here on, so that
        the decision stays true.
        """
        self.prompts.close()
        try:
            open_ = await db.read(session_rows.is_open, self.step_id)
        except OperationalError:
            open_ = True
        self.keep.leave = open_ and self._kept and (taken or self.prompts.asked)

    async def after_stop(self) -> None:
        """A session that was ended is not to be looked for by the next worker."""
        if self._kept and not self.keep.leave:
            await db.write(session_rows.forget, self.lease, self.step_id)

    async def _gate(self, call: ToolCall) -> None:
        if await self._look(call):
            asks = await db.write(gating.gate, self.lease, self.step_id, self.held.gate)
            looks_again = asks and clock.is_shared()
            if looks_again and not await db.read(gating.still_asks, self.step_id, self.held.gate):
                await db.write(gating.ask_anew, self.lease, self.step_id, self.held.gate)

    async def _look(self, call: ToolCall) -> bool:
        """List the server's tools if the last look is too old to decide by; False if that ended the call."""
        server = call.server
        if server is None or call.operation != "tool" or _recently_listed(server):
            return True
        try:
            binding = binding_of(server)
            async with self.held.legs:
                inspection = await inspect(binding, saved=server.negotiated, timeout=LIST_TIMEOUT)
        except (M3Error, InspectionFailed) as error:
            await db.write(call_journal.failed, self.lease, self.step_id, _words(error), unknown=False)
            return False
        await db.write(leg_rows.store_look, self.lease, self.step_id, inspection)
        return True

    async def _still_permitted(self, call: ToolCall) -> bool:
        """Whether a permission from an earlier moment still holds now; if not, the call is no longer to be sent."""
        if not await self._look(call):
            return False
        return await db.write(gating.confirm, self.lease, self.step_id, self.held.gate)

    async def _leg(self, call: ToolCall, *, just_decided: bool) -> None:
        try:
            target = operations.target(call)
        except M3Error as error:
            await db.write(call_journal.failed, self.lease, self.step_id, error.message, unknown=False)
            return
        if not just_decided and not await self._still_permitted(call):
            return
        self.prompts.new_attempt()
        async with self.prompts.slot:
            if isinstance(target, LocalTool):
                outcome = await self._perform_here(call, target)
            else:
                outcome = await self._perform(call, target)
        await self._store(call, outcome)

    async def _perform(self, call: ToolCall, binding: Binding) -> Outcome:
        return await perform(
            binding,
            await db.read(operations.operation, call),
            saved=call.server.negotiated if call.server else None,
            elicit=self._guarded(self.prompts.answer),
            journal=self._guarded(self._journal),
            progress=self._guarded(self._progress),
            timeout=settings.M3.call_timeout_seconds,
            on_session=self._guarded(self._session),
            keep=self.keep,
        )

    async def _perform_here(self, call: ToolCall, tool: LocalTool) -> Outcome:
        """A local tool, with the same journal around it as a server's."""
        await self._journal("sent", f"local-{uuid.uuid4().hex}", LOCAL, {})
        timeout = settings.M3.call_timeout_seconds
        outcome = await local_tools.perform(tool, call.arguments, elicit=self.prompts.answer, timeout=timeout)
        if isinstance(outcome, Completed):
            await self._journal("result", "", LOCAL, outcome.raw)
        return outcome

    async def _recover(self, call: ToolCall) -> None:
        """The worker that sent this call is gone; its reply may have been journalled all the same."""
        if call.raw_result is None:
            await self._go_on(call)
            return
        operation = await db.read(operations.operation, call)
        negotiated = (call.server.negotiated if call.server else None) or {}
        outcome = await outcome_from_result(call.raw_result, operation, negotiated)
        await self._store(call, outcome)
        await end_leftovers(
            self.lease
        )  # the worker that stored the reply may not have come to end its session

    async def _go_on(self, call: ToolCall) -> None:
        """Attach to the session that the other worker left, or go on without it as far as can be proven."""
        live = await db.write(session_rows.take, self.lease, self.step_id)
        if live is None:
            await db.write(recovery.recover, self.lease, self.step_id)
            return
        self._kept = True
        if isinstance(live, LiveSession):
            self.prompts.asked = bool(live.open_prompts or live.answered)
            async with self.prompts.slot:
                outcome = await resume(
                    operations.binding_if_any(call),
                    await db.read(operations.operation, call),
                    live,
                    keep=self.keep,
                    elicit=self._guarded(self.prompts.answer),
                    journal=self._guarded(self._journal),
                    progress=self._guarded(self._progress),
                    timeout=settings.M3.call_timeout_seconds,
                )
            await self._store(call, outcome)
        else:
            await self._store(call, live)

    async def _follow(self, step: Step) -> bool:
        """Look at the task that the server works on; False if it is too early for that."""
        task, wanted_at = task_facts.followed(step.call), task_facts.wanted_at(step)
        if task is None or (wanted_at is not None and wanted_at > await db.read(clock.now)):
            return False
        follower = Follower(self.lease, self.held.gate, self.held.legs, self.step_id)
        await follower.look(step.call, task, await db.read(operations.operation, step.call))
        return True

    async def _store(self, call: ToolCall, outcome: ResumedOutcome) -> None:
        where, store = (self.lease, self.step_id), self.held.grip.store
        if self.prompts.unanswerable:
            await db.write(leg_rows.end_unanswered, *where, self.prompts.unanswerable)
            return
        lost = isinstance(outcome, Failed) and outcome.outcome_unknown
        if (
            lost
            and call.server_name != LOCAL
            and await self.held.grip.read(session_rows.someone_waits, self.step_id)
        ):
            outcome = SessionLost(lost="server", message=f"{getattr(outcome, 'message', '')} {START_AGAIN}")
        match outcome:
            case SessionLost(message=message):
                await store(recovery.recover, self.step_id, message)
            case Completed(raw=raw, is_error=is_error, problem=problem):
                await store(call_journal.complete, self.step_id, raw, is_error=is_error, problem=problem)
            case InputRequired(requests=asked, request_state=state):
                await store(call_journal.input_required, self.step_id, stored_requests(asked), state)
                if not asked:
                    await asyncio.sleep(
                        min(0.2 * 2**call.leg, 5.0)
                    )  # a server that sheds load wants a moment
            case UrlsRequired(requests=asked):
                await store(call_journal.urls_required, self.step_id, stored_requests(asked))
            case TaskStarted():
                await store(task_rows.started, self.step_id, outcome, operations.identity(call.server))
            case StateRefused(message=message):
                await store(call_journal.state_refused, self.step_id, message)
            case Failed(message=message, outcome_unknown=unknown):
                await store(call_journal.failed, self.step_id, message, unknown=unknown)
        await self._remember_negotiation(call, outcome)
        if self._kept:
            await db.write(session_rows.forget, *where)

    async def _remember_negotiation(self, call: ToolCall, outcome: ResumedOutcome) -> None:
        negotiated = getattr(outcome, "negotiated", None)
        if negotiated and call.server is not None and dict(negotiated) != call.server.negotiated:
            await db.write(leg_rows.store_negotiation, call.server.pk, dict(negotiated))

    # --- what the client tells us while a leg is under way ---------------------------------------------------

    async def _journal(self, event: str, jsonrpc_id: str, method: str, payload: Mapping[str, Any]) -> None:
        if event == "sent":
            await db.write(call_journal.sent, self.lease, self.step_id, jsonrpc_id)
        elif event == "result":
            await self.held.grip.store(call_journal.received, self.step_id, payload)

    async def _session(self, info: SessionInfo) -> None:
        """A session of an older server that another worker could go on with is stored before the call leaves."""
        if "initialize" in info.negotiated and (info.keeper or info.session_id):
            await db.write(session_rows.remember, self.lease, self.step_id, info)
            self._kept = True

    def _guarded(self, callback: Callable[P, Awaitable[T]]) -> Callable[P, Awaitable[T]]:
        """The callback; if it finds the run taken away, it settles the session before the leg stops."""

        async def guarded(*args: P.args, **kwargs: P.kwargs) -> T:
            try:
                return await callback(*args, **kwargs)
            except LeaseLost:
                await self.before_stop(taken=True)
                raise

        return guarded

    async def _progress(self, value: float, total: float | None, message: str | None) -> None:
        if time.monotonic() - self._progress_at < PROGRESS_EVERY:
            return
        self._progress_at = time.monotonic()
        note = {"value": value, "total": total, "message": message}
        with contextlib.suppress(*AWAY):  # a note that is lost stops no call
            await db.write(leg_rows.store_progress, self.lease, self.step_id, note)


def _recently_listed(server: Server) -> bool:
    oldest = timezone.now() - dt.timedelta(seconds=settings.M3.tool_list_seconds)
    return server.listed_at is not None and server.listed_at >= oldest


def _words(error: Exception) -> str:
    return getattr(error, "message", None) or str(error)
