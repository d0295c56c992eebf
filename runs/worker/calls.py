"""Driving one operation: gate, send, hold a live session while a person thinks, store what came of it."""

from __future__ import annotations

import asyncio
import datetime as dt
import logging
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from django.conf import settings
from django.utils import timezone

from runs import clock, db, local_tools
from runs.binding import binding_of, identity_of
from runs.errors import M3Error, NotFound
from runs.gate import Gate
from runs.lease import Lease
from runs.local_tools import LOCAL, LocalTool
from runs.mcp_client import (
    Answer,
    Binding,
    Completed,
    Failed,
    FormRequest,
    InputRequired,
    InspectionFailed,
    Operation,
    Outcome,
    Refusal,
    StateRefused,
    TaskStarted,
    ToolDefinition,
    UrlRequest,
    UrlsRequired,
    answer_to_wire,
    inspect,
    perform,
)
from runs.mcp_client.results import outcome_from_result
from runs.models import Round, Server, Step, Tool, ToolCall
from runs.round_states import RoundStatus
from runs.worker import call_journal, gating, leg_rows, recovery, replay, task_facts, task_rows
from runs.worker.following import Follower
from runs.worker.moves import Move, next_move
from runs.worker.requests_in import answer_of, stored_requests

log = logging.getLogger(__name__)

LIST_TIMEOUT = 30.0
"""Seconds for a look at a server's tools."""

PROGRESS_EVERY = 1.0
"""Seconds between two stored progress notes of one call."""


@dataclass
class Held:
    """What the live sessions of one driven run share with its driver."""

    lease: Lease
    gate: Gate
    legs: asyncio.Semaphore
    """Slots for work on servers; a call that waits for a person gives its slot back."""
    waiting: dict[str, asyncio.Future[Mapping[str, Any]]] = field(default_factory=dict)
    """Round id -> the future that a live session waits on."""


class CallDriver:
    """Drives one step's operation until it is done or parked."""

    def __init__(self, held: Held, step_id: int) -> None:
        self.held, self.lease, self.step_id = held, held.lease, step_id
        self._one_prompt_at_a_time = asyncio.Lock()
        self._unanswerable = ""
        self._replayed = 0
        """Prompts of this attempt that were answered from an earlier one."""
        self._progress_at = 0.0

    async def drive(self) -> None:
        """Move after move, each committed, until the rows permit none."""
        move: Move | None = None
        while True:
            before = move
            step, rounds = await db.read(_load, self.step_id)
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

    async def _gate(self, call: ToolCall) -> None:
        if await self._look(call):
            await db.write(gating.gate, self.lease, self.step_id, self.held.gate)

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
            target = _target(call)
        except M3Error as error:
            await db.write(call_journal.failed, self.lease, self.step_id, error.message, unknown=False)
            return
        if not just_decided and not await self._still_permitted(call):
            return
        self._replayed = 0
        async with self.held.legs:
            if isinstance(target, LocalTool):
                outcome = await self._perform_here(call, target)
            else:
                outcome = await self._perform(call, target)
        await self._store(call, outcome)

    async def _perform(self, call: ToolCall, binding: Binding) -> Outcome:
        return await perform(
            binding,
            await db.read(_operation, call),
            saved=call.server.negotiated if call.server else None,
            elicit=self._elicit,
            journal=self._journal,
            progress=self._progress,
            timeout=settings.M3.call_timeout_seconds,
        )

    async def _perform_here(self, call: ToolCall, tool: LocalTool) -> Outcome:
        """A local tool, with the same journal around it as a server's."""
        await self._journal("sent", f"local-{uuid.uuid4().hex}", LOCAL, {})
        timeout = settings.M3.call_timeout_seconds
        outcome = await local_tools.perform(tool, call.arguments, elicit=self._elicit, timeout=timeout)
        if isinstance(outcome, Completed):
            await self._journal("result", "", LOCAL, outcome.raw)
        return outcome

    async def _recover(self, call: ToolCall) -> None:
        """The worker that sent this call is gone; its reply may have been journalled all the same."""
        if call.raw_result is None:
            await db.write(recovery.recover, self.lease, self.step_id)
            return
        operation = await db.read(_operation, call)
        negotiated = (call.server.negotiated if call.server else None) or {}
        outcome = await outcome_from_result(call.raw_result, operation, negotiated)
        await self._store(call, outcome)

    async def _follow(self, step: Step) -> bool:
        """Look at the task that the server works on; False if it is too early for that."""
        task, wanted_at = task_facts.followed(step.call), task_facts.wanted_at(step)
        if task is None or (wanted_at is not None and wanted_at > await db.read(clock.now)):
            return False
        follower = Follower(self.lease, self.held.gate, self.held.legs, self.step_id)
        await follower.look(step.call, task, await db.read(_operation, step.call))
        return True

    async def _store(self, call: ToolCall, outcome: Outcome) -> None:
        where = (self.lease, self.step_id)
        if self._unanswerable:
            await db.write(leg_rows.nobody, *where, self._unanswerable)
            return
        match outcome:
            case Completed(raw=raw, is_error=is_error, problem=problem):
                await db.write(call_journal.complete, *where, raw, is_error=is_error, problem=problem)
            case InputRequired(requests=asked, request_state=state):
                await db.write(call_journal.input_required, *where, stored_requests(asked), state)
                if not asked:
                    await asyncio.sleep(
                        min(0.2 * 2**call.leg, 5.0)
                    )  # a server that sheds load wants a moment
            case UrlsRequired(requests=asked):
                await db.write(call_journal.urls_required, *where, stored_requests(asked))
            case TaskStarted():
                await db.write(task_rows.started, *where, outcome, _identity(call.server))
            case StateRefused(message=message):
                await db.write(call_journal.state_refused, *where, message)
            case Failed(message=message, outcome_unknown=unknown):
                await db.write(call_journal.failed, *where, message, unknown=unknown)
        await self._remember_negotiation(call, outcome)

    async def _remember_negotiation(self, call: ToolCall, outcome: Outcome) -> None:
        negotiated = getattr(outcome, "negotiated", None)
        if negotiated and call.server is not None and dict(negotiated) != call.server.negotiated:
            await db.write(leg_rows.store_negotiation, call.server.pk, dict(negotiated))

    # --- what the client tells us while a leg is under way ---------------------------------------------------

    async def _journal(self, event: str, jsonrpc_id: str, method: str, payload: Mapping[str, Any]) -> None:
        if event == "sent":
            await db.write(call_journal.sent, self.lease, self.step_id, jsonrpc_id)
        elif event == "result":
            await db.write(call_journal.received, self.lease, self.step_id, payload)

    async def _progress(self, value: float, total: float | None, message: str | None) -> None:
        if time.monotonic() - self._progress_at < PROGRESS_EVERY:
            return
        self._progress_at = time.monotonic()
        note = {"value": value, "total": total, "message": message}
        await db.write(leg_rows.store_progress, self.lease, self.step_id, note)

    async def _elicit(self, request: FormRequest | UrlRequest) -> Answer | Refusal:
        """Asked on a session that stays open: store the round, keep the session, wait for the answer.

        Two prompts of one call are asked one after the other, since an operation has one open round. In a call that
        is made again after a crash, stored answers come first (A4).
        """
        async with self._one_prompt_at_a_time:
            stored = await db.write(replay.stored_answer, self.lease, self.step_id, request, self._replayed)
            if stored is not None:
                self._replayed += 1
                return answer_of(stored)
            opened = await db.write(leg_rows.open_held, self.lease, self.step_id, request)
            if isinstance(opened, str):
                self._unanswerable = opened
                return Refusal(opened)
            responses = opened.responses or await self._answered(opened.pk)
            await db.write(leg_rows.start_held_delivery, self.lease, opened.pk)
        return answer_of(next(iter(responses.values())))

    async def _answered(self, round_id: str) -> Mapping[str, Any]:
        """What a person says; meanwhile this call takes no slot of those that work."""
        answered: asyncio.Future[Mapping[str, Any]] = asyncio.get_running_loop().create_future()
        self.held.waiting[round_id] = answered
        self.held.legs.release()
        try:
            return await answered
        finally:
            self.held.waiting.pop(round_id, None)
            await self.held.legs.acquire()


def _load(step_id: int) -> tuple[Step, list[Round]]:
    step = Step.objects.select_related("call__server", "turn", "run").get(pk=step_id)
    over = [RoundStatus.RESOLVED.value, RoundStatus.FAILED.value]
    return step, list(step.rounds.exclude(status__in=over).order_by("created_at"))


def _target(call: ToolCall) -> Binding | LocalTool:
    """What the call goes to. Raises M3Error with a sentence if it is not there any more."""
    if call.server_name == LOCAL:
        tool = local_tools.find(call.name)
        if tool is None:
            raise NotFound(f"{call.full_name} is not registered in the process that works on this run.")
        return tool
    if call.server is None:
        raise NotFound(f"The server {call.server_name} is gone. Add it again, or correct the playbook.")
    return binding_of(call.server)


def _operation(call: ToolCall) -> Operation:
    responses = call.wire.get("responses")
    wired = (
        {key: answer_to_wire(answer_of(response)) for key, response in responses.items()}
        if responses
        else None
    )
    operation: Any = call.operation
    return Operation(
        kind=operation,
        name=call.name,
        arguments=call.arguments,
        input_responses=wired,
        request_state=call.wire.get("request_state"),
        definition=_definition(call),
    )


def _definition(call: ToolCall) -> ToolDefinition | None:
    """The tool as it was last listed: spares a listing, and lets the result be checked against its schema."""
    tool = Tool.objects.filter(server=call.server_id, name=call.name, present=True).first()
    if call.operation != "tool" or tool is None:
        return None
    return ToolDefinition(
        name=tool.name,
        title=tool.title or None,
        description=tool.description,
        input_schema=tool.input_schema,
        output_schema=tool.output_schema,
        annotations=tool.annotations,
        digest=tool.digest,
    )


def _identity(server: Server | None) -> str:
    """What the server is; as it was registered if its entry is gone by now."""
    try:
        return identity_of(server) if server is not None else ""
    except M3Error:
        return server.identity if server is not None else ""


def _recently_listed(server: Server) -> bool:
    oldest = timezone.now() - dt.timedelta(seconds=settings.M3.tool_list_seconds)
    return server.listed_at is not None and server.listed_at >= oldest


def _words(error: Exception) -> str:
    return getattr(error, "message", None) or str(error)
