"""What is stored of a live session, so that another worker can go on with it (C35).

The record stands in `ToolCall.wire` from before the call leaves until its session is over. A prompt's own place
stands on its round: `harness_session_id` is the JSON-RPC id of the call it interrupts, which no other session
shares, and `native_resume_token` is the id of the prompt with the place in the server's stream.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.db.models import QuerySet
from django.utils import timezone

from runs import hosts, lease, round_rows, rounds
from runs.keeper.place import has_same_folder, name_of
from runs.lease import Lease
from runs.live_sessions import SESSION
from runs.mcp_client import FormRequest, Keep, LiveSession, PromptOrigin, SessionInfo, SessionLost, UrlRequest
from runs.models import UNRESOLVED, Round, Server, Step, ToolCall
from runs.round_states import RoundKind, RoundOutcome, RoundStatus
from runs.worker import call_journal
from runs.worker.requests_in import request_of, stored_request

WAITING = [RoundStatus.PENDING.value, RoundStatus.RESPONSE_VALIDATED.value]
"""Statuses of a round whose answer has not left."""

OTHER_HOST = (
    "The server's session is kept on another machine ({host}), and no worker there went on with it. What it had done "
    "so far cannot be known from here: look at the server, then start the run again."
)
RESTARTED = (
    "The machine ({host}) was started anew while the server was asking, or another one has its files now; the process "
    "that kept the server's session cannot be reached. What it had done so far cannot be known from here: look at the "
    "server, then start the run again."
)


def keep_for(held: Lease) -> Keep:
    """The wish that sessions of this run outlive the worker; its lease token is the fence."""
    return Keep(
        folder=settings.M3.data_dir / "keepers",
        label=f"run-{held.run_id}",
        token=held.token,
        orphan_seconds=settings.M3.keeper_orphan_seconds,
    )


def remember(held: Lease, step_id: int, info: SessionInfo) -> None:
    """Store where the session is, before anything depends on it (A11)."""
    here = call_journal.at(held, step_id)
    record = {
        "host": hosts.here(),
        "negotiated": dict(info.negotiated),
        "operation_id": info.jsonrpc_id,
        "keeper": info.keeper,
        "session_id": info.session_id,
        "resumption_token": info.resumption_token,
    }
    here.call.wire = {**here.call.wire, SESSION: record}
    here.call.save(update_fields=["wire"])
    if info.keeper:
        hosts.pin(held.run_id)


def forget(held: Lease, step_id: int) -> None:
    """The session is over, or lost; what it asked and did not wait for is not asked any more.

    One that another host keeps is noted for that host, which ends it if it comes back.
    """
    here = call_journal.at(held, step_id)
    record = here.call.wire.get(SESSION)
    here.call.wire = {key: value for key, value in here.call.wire.items() if key != SESSION}
    here.call.save(update_fields=["wire"])
    if record is not None and record["keeper"]:
        if not _is_here(record):
            operation = record["operation_id"]
            hosts.leave(record["host"], record["keeper"], operation_id=operation, token=held.token)
        if not any(_is_here(call.wire[SESSION]) for call in _with_sessions(held)):
            hosts.unpin(held.run_id)
    if here.step.result is not None:
        withdraw(here)


def _with_sessions(held: Lease) -> QuerySet[ToolCall]:
    """The calls of the run with a record of a session."""
    return ToolCall.objects.filter(step__run=held.run_id, wire__has_key=SESSION)


def _is_here(record: Mapping[str, Any]) -> bool:
    """Whether a keeper of this host has the session."""
    return bool(record["keeper"]) and record["host"] == hosts.here()


def is_open(step_id: int) -> bool:
    """Whether the journal still waits for this call: if not, its session is to be ended by whoever has it."""
    return Step.objects.filter(pk=step_id, result__isnull=True).exists()


def someone_waits(step_id: int) -> bool:
    """Whether a prompt of this call's session has no answer, or one that has not left."""
    return Round.objects.filter(step=step_id, held=True, status__in=WAITING).exists()


def withdraw(here: call_journal.Place) -> None:
    """Close the prompts of this call's session that nobody waits for: their server went on without an answer."""
    abandoned = Round.objects.filter(step=here.step, held=True, status__in=WAITING)
    for round_ in abandoned.select_related("run", "turn", "step"):
        round_rows.fail(
            round_,
            RoundOutcome.SUPERSEDED,
            code="superseded",
            message="The server has withdrawn its question.",
            decider=round_rows.Decider(user=None, via="worker"),
        )
        # By the rows of the caller, who may put the turn back into waiting at once.
        rounds.settle_turn(here.run, here.turn)


# --- prompts ----------------------------------------------------------------------------------------------


def place(call: ToolCall, request: FormRequest | UrlRequest) -> dict[str, str]:
    """The fields of a round that tell where its prompt came from; none if its session cannot be found again."""
    record = call.wire.get(SESSION)
    if record is None or request.origin is None:
        return {}
    token = {"prompt": request.origin.jsonrpc_id, "token": request.origin.resumption_token}
    return {"harness_session_id": record["operation_id"], "native_resume_token": json.dumps(token)}


def asked_before(
    here: call_journal.Place, request: FormRequest | UrlRequest, delivered: set[str]
) -> Round | None:
    """The unresolved round of this very prompt, which is put once more because another worker has attached.

    `delivered` are the rounds whose answers this worker itself has handed over: a server that uses an id again asks
    something new.
    """
    origin = request.origin
    if origin is None:
        return None
    for round_ in _of_session(here.call).filter(held=True, status__in=UNRESOLVED).exclude(pk__in=delivered):
        if _prompt_id(round_) == origin.jsonrpc_id and round_.requests == {
            request.key: stored_request(request)
        }:
            return round_
    return None


def _of_session(call: ToolCall) -> QuerySet[Round]:
    record = call.wire.get(SESSION) or {}
    asked = Round.objects.filter(
        step=call.step_id,
        kind=RoundKind.ELICITATION.value,
        harness_session_id=record.get("operation_id", ""),
        native_resume_token__isnull=False,
    )
    return asked.select_related("run", "turn", "step").order_by("round_index")


def _prompt_id(round_: Round) -> str | int:
    identifier: str | int = json.loads(round_.native_resume_token or "{}")["prompt"]
    return identifier


# --- going on ---------------------------------------------------------------------------------------------


def take(held: Lease, step_id: int) -> LiveSession | SessionLost | None:
    """Take a dead worker's session over: its unresolved rounds are this worker's from here on.

    None if there is no record of one, SessionLost if it cannot be reached from this host.
    """
    here = call_journal.at(held, step_id)
    record = here.call.wire.get(SESSION)
    if record is None:
        return None
    if record["keeper"] and not _is_here(record):
        return _elsewhere(record["host"])
    if record["keeper"]:
        hosts.pin(held.run_id)
    if here.call.wire.get("replay"):
        # Which of the stored answers this session has had is not known; a person is asked rather than guessed for.
        call_journal.supersede_answers(here)
        here.call.wire = {**here.call.wire, "replay": False}
        here.call.save(update_fields=["wire"])
    for round_ in _of_session(here.call).filter(held=True, status__in=UNRESOLVED):
        Round.objects.filter(pk=round_.pk).update(
            lease_owner=held.owner,
            lease_token=uuid.uuid4().hex,
            lease_expires_at=timezone.now() + lease.ttl(),
        )
    call_journal.note(here, "tool_call.resumed", {"jsonrpc_id": record["operation_id"]})
    return _live(here.call, record)


def _live(call: ToolCall, record: Mapping[str, Any]) -> LiveSession:
    asked = list(_of_session(call))
    unresolved = [round_ for round_ in asked if round_.held and round_.status in UNRESOLVED]
    token = json.loads(asked[-1].native_resume_token or "{}")["token"] if asked else None
    return LiveSession(
        negotiated=record["negotiated"],
        operation_id=record["operation_id"],
        keeper=record["keeper"],
        session_id=record["session_id"],
        resumption_token=token or record["resumption_token"],
        open_prompts=tuple(_prompt(round_) for round_ in unresolved),
        answered=frozenset(_prompt_id(round_) for round_ in asked if round_ not in unresolved),
    )


def _prompt(round_: Round) -> FormRequest | UrlRequest:
    ((key, stored),) = round_.requests.items()
    return request_of(key, stored, PromptOrigin(jsonrpc_id=_prompt_id(round_)))


def _elsewhere(host: str) -> SessionLost:
    message = RESTARTED if has_same_folder(host, hosts.here()) else OTHER_HOST
    return SessionLost(lost="keeper", message=message.format(host=name_of(host)))


@dataclass(frozen=True, kw_only=True)
class Leftover:
    """A session whose call is over while nobody ended it: its run was cancelled, or its time was over."""

    step_id: int
    server: Server | None
    live: LiveSession
    within_reach: bool
    """False for one that another host keeps."""


def leftovers(held: Lease) -> list[Leftover]:
    """The sessions of the run that are to be ended."""
    return [
        Leftover(
            step_id=call.step_id,
            server=call.server,
            live=_live(call, call.wire[SESSION]),
            within_reach=not call.wire[SESSION]["keeper"] or _is_here(call.wire[SESSION]),
        )
        for call in _with_sessions(held).filter(step__result__isnull=False).select_related("server")
    ]
