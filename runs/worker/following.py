"""Following the task that a server answered a call with: one short look at a time, by whichever worker is there."""

from __future__ import annotations

import asyncio
import datetime as dt
import logging
from collections.abc import Collection, Mapping
from typing import Any

from django.conf import settings

from runs import clock, db
from runs.binding import binding_of
from runs.errors import M3Error
from runs.gate import Gate
from runs.lease import Lease
from runs.mcp_client import (
    Binding,
    Completed,
    Failed,
    FailureCode,
    InputRequired,
    Operation,
    TaskOutcome,
    Unanswered,
    Working,
    answer_to_wire,
    cancel_task,
    identity,
    poll,
)
from runs.mcp_client.results import completed
from runs.models import Server, ToolCall
from runs.worker import call_journal, task_facts, task_rows
from runs.worker.requests_in import answer_of, stored_requests
from runs.worker.task_facts import TaskFacts

log = logging.getLogger(__name__)

LOOK_TIMEOUT = 30.0
"""Seconds for one look at a task; it may bring a whole result."""

CANCEL_TIMEOUT = 10.0
"""Seconds in which a server may take note that nobody waits for its task any more."""

_SETTLED = frozenset({FailureCode.TASK_FAILED, FailureCode.TASK_CANCELLED, FailureCode.TASK_GONE})
"""Ends of a task that leave nothing to cancel."""


class Follower:
    """One step's task, as seen by the driver of its call."""

    def __init__(self, lease: Lease, gate: Gate, legs: asyncio.Semaphore, step_id: int) -> None:
        self.lease, self.gate, self.legs, self.step_id = lease, gate, legs, step_id

    async def look(self, call: ToolCall, task: TaskFacts, operation: Operation) -> None:
        """Look once and store what came of it."""
        outcome: TaskOutcome
        if call.raw_result is not None:  # the worker before us has the result, and came no further
            outcome = await completed(call.raw_result, operation, _negotiated(call.server) or {})
            await db.write(task_rows.completed, *self._where, outcome)
            return
        responses = await db.read(task_rows.answers, self.step_id)
        refused = await db.write(task_rows.may_answer, *self._where, self.gate) if responses else None
        if refused is not None:
            outcome = Failed(code=FailureCode.UNSUPPORTED_REQUEST, message=refused, sent=True, answered=True)
        else:
            outcome = await self._ask(call, task, operation, responses)
        await self._store(call, task, outcome)

    async def _ask(
        self,
        call: ToolCall,
        task: TaskFacts,
        operation: Operation,
        responses: Mapping[str, Mapping[str, Any]],
    ) -> TaskOutcome:
        try:
            binding = _same_server(call.server, task)
        except M3Error as error:
            return Unanswered(message=error.message)
        if isinstance(binding, Failed):
            return binding
        async with self.legs:
            return await poll(
                binding,
                task.id,
                operation,
                saved=_negotiated(call.server),
                responses={key: answer_to_wire(answer_of(given)) for key, given in responses.items()},
                answered=task.answered,
                journal=self,
                timeout=LOOK_TIMEOUT,
            )

    async def _store(self, call: ToolCall, task: TaskFacts, outcome: TaskOutcome) -> None:
        outcome = _given_up(task, outcome, await db.read(clock.now))
        match outcome:
            case Completed():
                await db.write(task_rows.completed, *self._where, outcome)
            case InputRequired(requests=requests):
                await db.write(task_rows.asked, *self._where, stored_requests(requests))
            case Working():
                await db.write(task_rows.working, *self._where, outcome)
            case Unanswered(message=message):
                await db.write(task_rows.unheard, *self._where, message)
            case Failed():
                await self._end(call, task, outcome)

    async def _end(self, call: ToolCall, task: TaskFacts, failed: Failed) -> None:
        """The call waits no longer; a server that may still be at work is told so first."""
        if failed.code not in _SETTLED:
            await self._cancel(call.server, task)
        await db.write(task_rows.ended, *self._where, failed)

    async def forsake(self) -> None:
        """The call has ended before its task: tell the server, though nobody holds a session with it."""
        call = await db.read(ToolCall.objects.select_related("server").get, step=self.step_id)
        task = task_facts.of(call)
        try:
            heard = task is None or await self._cancel(call.server, task)
        except Exception:  # a defect here would end, again and again, a turn that is over
            log.exception("the task of step %s could not be cancelled", self.step_id)
            heard = False
        await db.write(task_rows.cancelled, *self._where, heard=heard)

    async def _cancel(self, server: Server | None, task: TaskFacts) -> bool:
        """Whether there is nobody left to tell."""
        try:
            binding = _same_server(server, task)
        except M3Error:
            return False
        if isinstance(binding, Failed):
            return True
        async with self.legs:
            return await cancel_task(binding, task.id, saved=_negotiated(server), timeout=CANCEL_TIMEOUT)

    @property
    def _where(self) -> tuple[Lease, int]:
        return self.lease, self.step_id

    # --- TaskJournal ----------------------------------------------------------------------------------------

    async def updating(self, keys: Collection[str]) -> None:
        await db.write(task_rows.updating, *self._where, keys)

    async def updated(self, keys: Collection[str]) -> None:
        await db.write(task_rows.updated, *self._where, keys)

    async def finished(self, raw: Mapping[str, Any]) -> None:
        await db.write(call_journal.received, *self._where, raw)


def _same_server(server: Server | None, task: TaskFacts) -> Binding | Failed:
    """Where the task is. Failed if whoever stands there now is not who began it; raises M3Error as `binding_of`."""
    if server is None:
        message = "The server was removed while it worked on this, so nobody can ask it how that ended."
    else:
        binding = binding_of(server)
        if identity(binding) == task.server:
            return binding
        message = (
            "Another server stands in the place of the one that worked on this; it is not asked about it."
        )
    return Failed(code=FailureCode.TASK_GONE, message=message, sent=True)


def _negotiated(server: Server | None) -> Mapping[str, Any] | None:
    return server.negotiated if server is not None else None


def _given_up(task: TaskFacts, outcome: TaskOutcome, now: dt.datetime) -> TaskOutcome:
    """The outcome, or that there is no sense in waiting longer; a person's time does not count."""
    if not isinstance(outcome, Working | Unanswered):
        return outcome
    limit = settings.M3.task_timeout_seconds
    if task.working_seconds(now) >= limit:
        message = (
            f"The server has worked on this for {limit:g} seconds and has not finished. It was told to stop; whether "
            "it took effect is unknown."
        )
        return Failed(code=FailureCode.TIMEOUT, message=message, sent=True)
    if isinstance(outcome, Unanswered) and not task.kept(now):
        message = "The server does not answer, and the time for which it keeps its task is over. "
        return Failed(code=FailureCode.TIMEOUT, message=message + outcome.message, sent=True)
    return outcome
