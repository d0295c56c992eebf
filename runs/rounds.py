"""The rounds of a run: opening one, answering it, saving a draft, ending it without an answer.

Every function here is one state change with its event and hints and must run inside a transaction; `answer` opens
its own. What a transition needs is written in `runs.round_states`; who may call is `runs.access`'s business.
"""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.db import transaction
from django.utils import timezone

from runs import events, lease, turns
from runs.errors import (
    ElicitationRoundLimitError,
    ManagedInputConflict,
    ManagedInputValidationError,
    StateConflict,
)
from runs.models import Round, Run, Step, Turn
from runs.redaction import redact
from runs.requests import APPROVAL_KEY
from runs.round_rows import Decider, ended_sentence, ending, facts, fail, lock, save
from runs.round_states import Replay, RoundKind, RoundOutcome, RoundStatus, check_keys, replay
from runs.run_states import Outcome, TurnStatus
from runs.schema_check import SchemaProblem, validate

ROUND_LIMIT = 10
"""Rounds of one logical operation (contract C42)."""


@dataclass(frozen=True, kw_only=True)
class Opening:
    """What a new round is about; everything else follows from its step."""

    kind: RoundKind
    operation_id: str
    requests: Mapping[str, Mapping[str, Any]]
    context: Mapping[str, Any]
    shown_digest: str = ""
    request_state: str | None = None
    held_by: lease.Lease | None = None


def open_round(run: Run, turn: Turn, step: Step, opening: Opening, *, deadline: dt.datetime | None) -> Round:
    """Store a pause and put the turn into waiting_for_input, all in the caller's transaction.

    A round that no live session waits on is born with an expired lease, so that any worker may claim it.
    Raises ElicitationRoundLimitError, storing nothing, when the operation has asked too often.
    """
    asked = Round.objects.filter(turn=turn, logical_operation_id=opening.operation_id).count()
    if asked >= ROUND_LIMIT:
        raise ElicitationRoundLimitError(
            f"The operation asked {asked} times, and {ROUND_LIMIT} is the limit. Look for a loop in the server."
        )
    now = timezone.now()
    call = getattr(step, "call", None)
    round_ = Round.objects.create(
        account_id=run.account_id,
        run=run,
        turn=turn,
        step=step,
        kind=opening.kind.value,
        logical_operation_id=opening.operation_id,
        round_index=asked,
        round_limit=ROUND_LIMIT,
        server_name=call.server_name if call else "",
        operation_kind=call.operation if call else "",
        operation_name=call.name if call else "",
        operation_parameters=call.arguments if call else {},
        request_state=opening.request_state,
        requests={key: dict(request) for key, request in opening.requests.items()},
        context=dict(opening.context),
        shown_digest=opening.shown_digest,
        held=opening.held_by is not None,
        deadline=deadline,
        lease_owner=opening.held_by.owner if opening.held_by else "parked",
        lease_token=uuid.uuid4().hex,
        lease_expires_at=now + lease.ttl() if opening.held_by else now,
        created_at=now,
        updated_at=now,
    )
    turns.set_status(run, turn, TurnStatus.WAITING_FOR_INPUT)
    events.record(run, f"{opening.kind.value}.request", facts(round_), turn=turn)
    events.announce_round(round_)
    return round_


def answer(
    round_id: str,
    responses: Mapping[str, Mapping[str, Any]],
    *,
    decider: Decider,
    idempotency_key: str,
    shown_digest: str | None = None,
    note: str = "",
) -> Round:
    """Decide a round: the one compare-and-set from pending to response_validated (R2, C19).

    `responses` carries exactly the round's keys. `shown_digest` is the digest of what the person saw (R12).
    Raises ManagedInputValidationError (the round stays pending), ManagedInputConflict or StateConflict with who
    decided what and when, NotFound. An overdue round is failed as timed out and the answer refused (C40).
    """
    with transaction.atomic():
        refused = _answer(round_id, responses, decider, idempotency_key, shown_digest, note)
    if isinstance(refused, StateConflict):
        raise refused  # only now: the expiry that it tells of had to be committed
    return refused


def _answer(
    round_id: str,
    responses: Mapping[str, Mapping[str, Any]],
    decider: Decider,
    key: str,
    shown_digest: str | None,
    note: str,
) -> Round | StateConflict:
    if not key:
        raise ManagedInputValidationError("An idempotency key is needed; make one for this answer and keep it.")
    round_ = lock(round_id)
    payload = {name: dict(response) for name, response in responses.items()}
    if round_.responses is not None:
        return _again(round_, key, payload)
    if round_.status != RoundStatus.PENDING:
        raise StateConflict(ended_sentence(round_), details=ending(round_))
    if round_.deadline is not None and timezone.now() >= round_.deadline:
        _record_late(round_, payload, decider)
        expire(round_)
        return StateConflict(ended_sentence(round_), details=ending(round_))
    if shown_digest is not None and shown_digest != round_.shown_digest:
        raise StateConflict("What you were shown is not what is pending now. Reload the card.", details=ending(round_))
    check_responses(round_, payload)
    return _store(round_, payload, decider, key, note)


def _again(round_: Round, key: str, payload: Mapping[str, Any]) -> Round:
    """A second answer: the same one with the same key gets the first receipt, anything else learns who won (R3)."""
    verdict = replay(round_.response_idempotency_key, round_.responses, key, payload)
    if verdict is Replay.SAME:
        return round_
    raise ManagedInputConflict(ended_sentence(round_), details=ending(round_))


def _store(round_: Round, payload: dict[str, Any], decider: Decider, key: str, note: str) -> Round:
    now = timezone.now()
    round_.responses = payload
    round_.response_idempotency_key = key
    round_.status = RoundStatus.RESPONSE_VALIDATED.value
    round_.outcome = outcome_of(round_, payload).value
    round_.decided_by, round_.decided_via, round_.note = decider.user, decider.via, note
    round_.response_validated_at = now
    round_.drafts = {}
    if not round_.held:
        round_.lease_expires_at = now
    save(round_)
    run = round_.run
    settle_turn(run, round_.turn)
    events.record(
        run,
        f"{round_.kind}.response",
        {**facts(round_), "outcome": round_.outcome, "responses": redact(payload), "via": decider.via},
        turn=round_.turn,
        actor=decider.user,
        actor_name=decider.name or decider.via,
    )
    lease.wake(run.pk)
    events.announce_round(round_)
    return round_


def outcome_of(round_: Round, payload: Mapping[str, Mapping[str, Any]]) -> RoundOutcome:
    """How the answered round is called in database, API and page (R31)."""
    if round_.kind == RoundKind.APPROVAL:
        content = payload[APPROVAL_KEY].get("content") or {}
        return RoundOutcome.ALLOWED if content.get("decision") == "allow" else RoundOutcome.DENIED
    return RoundOutcome.ANSWERED


def check_responses(round_: Round, responses: Mapping[str, Mapping[str, Any]]) -> None:
    """Exact keys, known actions, valid content (C13-C17); raises ManagedInputValidationError with field errors."""
    check_keys(round_.requests.keys(), responses.keys())
    for key, response in responses.items():
        check_response(round_.requests[key], key, response)


def check_response(request: Mapping[str, Any], key: str, response: Mapping[str, Any]) -> None:
    """One answer against its request."""
    action, content = response.get("action"), response.get("content")
    if action not in ("accept", "decline", "cancel"):
        raise ManagedInputValidationError(f"The action for {key!r} must be accept, decline or cancel.")
    if action != "accept" or request["mode"] == "url":
        if content is not None:
            raise ManagedInputValidationError(f"The answer for {key!r} may carry no content with {action}.")
        return
    if not isinstance(content, Mapping):
        raise ManagedInputValidationError(f"An accepted form needs content for {key!r}.")
    try:
        problems = validate(request["requested_schema"], content)
    except SchemaProblem as problem:
        raise ManagedInputValidationError(f"The form for {key!r} cannot be checked: {problem}") from problem
    if problems:
        fields = [{"key": key, "path": list(error.path), "message": error.message} for error in problems]
        raise ManagedInputValidationError(
            f"The answer for {key!r} does not fit its form. Correct the fields named.", details={"fields": fields}
        )


def save_draft(round_id: str, key: str, response: Mapping[str, Any]) -> Round:
    """Keep one answer of a many-key round until the last one is there (A21). Must run inside a transaction."""
    round_ = lock(round_id)
    if round_.status != RoundStatus.PENDING:
        raise StateConflict(ended_sentence(round_), details=ending(round_))
    if key not in round_.requests:
        raise ManagedInputValidationError(f"This pause has no request {key!r}.")
    check_response(round_.requests[key], key, response)
    round_.drafts = {**round_.drafts, key: dict(response)}
    save(round_)
    events.announce_round(round_)
    return round_


def expire(round_: Round) -> None:
    """The deadline passed: the round fails and its turn ends as timed out, never completed (A18, C40)."""
    if round_.status != RoundStatus.PENDING:
        return
    message = "Nobody answered before the deadline."
    fail(round_, RoundOutcome.TIMED_OUT, code="timeout", message=message, decider=Decider(user=None, via="deadline"))
    turns.finish(round_.run, round_.turn, Outcome.TIMED_OUT, error=message, error_code="timeout")
    lease.revoke(round_.run_id)
    lease.wake(round_.run_id)


def settle_turn(run: Run, turn: Turn) -> None:
    """Waiting as long as any round of the turn is pending, running otherwise."""
    waiting = Round.objects.filter(turn=turn).pending().exists()
    turns.set_status(run, turn, TurnStatus.WAITING_FOR_INPUT if waiting else TurnStatus.RUNNING_TURN)


def _record_late(round_: Round, payload: Mapping[str, Any], decider: Decider) -> None:
    """R31: a late Deny is recorded and the call stays unexecuted."""
    events.record(
        round_.run,
        "round.late_answer",
        {**facts(round_), "responses": redact(payload)},
        turn=round_.turn,
        actor=decider.user,
        actor_name=decider.via,
    )
