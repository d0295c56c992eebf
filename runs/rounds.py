"""The rounds of a run: opening one, answering it, saving a draft, ending it without an answer.

Every function here is one state change with its event and hints and must run inside a transaction; only
`answer` opens its own. What a transition needs is written in `runs.round_states`, what an answer must look like
in `runs.round_checks`; who may call is `runs.access`'s business.
"""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from django.db import transaction

from runs import clock, events, lease, live_sessions, recommended, row_writes, turns
from runs.errors import (
    ElicitationRoundLimitError,
    ManagedInputConflict,
    ManagedInputValidationError,
    StateConflict,
)
from runs.idempotency import MAX_KEY
from runs.models import Round, Run, Step, Turn
from runs.models.exact import is_plain
from runs.prepared import Number, Param, Rows
from runs.readable import check_readable
from runs.redaction import redact
from runs.round_checks import check_response, check_responses, checked_shape, outcome_of
from runs.round_rows import Decider, ended_sentence, ending, facts, fail, lock, save
from runs.round_states import Replay, RoundKind, RoundOutcome, RoundStatus, replay
from runs.run_states import Outcome, TurnStatus
from runs.steps import MCP_KINDS, StepKind

ROUND_LIMIT = 10
"""Rounds of one logical operation (C42). Our own question whether a call may run is asked as often as people change
what counts for it: there is no server that could ask in a loop."""

_OF_TURN = Param("turn", Turn._meta.pk)
_ASKED: Rows[tuple[int]] = Rows(
    lambda: (
        Round.objects.filter(
            turn=_OF_TURN,
            logical_operation_id=Param.of(Round, "logical_operation_id", "operation"),
        )
        .order_by()
        .values_list(Number())
    )
)
_WAITING: Rows[tuple[str]] = Rows(
    lambda: Round.objects.filter(turn=_OF_TURN).pending().order_by().values_list("pk")[:1]
)


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
    place: Mapping[str, str] = field(default_factory=dict)
    """Where a live session was interrupted: `harness_session_id` and `native_resume_token`."""


def open_round(
    run: Run,
    turn: Turn,
    step: Step,
    opening: Opening,
    *,
    deadline: dt.datetime | None,
    continue_at: dt.datetime | None = None,
) -> Round:
    """Store a pause and put the turn into waiting_for_input, all in the caller's transaction.

    At `deadline` it fails; at `continue_at` a question takes its recommended answer, whichever comes first.
    A round that no live session waits on is born with an expired lease, so that any worker may claim it.
    Raises ElicitationRoundLimitError, storing nothing, when the operation has asked too often; an approval never has.
    """
    ((asked,),) = _ASKED(turn=turn.pk, operation=opening.operation_id)
    if asked >= ROUND_LIMIT and opening.kind is not RoundKind.APPROVAL:
        raise ElicitationRoundLimitError(
            f"The operation asked {asked} times; {ROUND_LIMIT} is the limit. Look for a loop in the server."
        )
    now = clock.now()
    call = step.call if StepKind(step.kind) in MCP_KINDS else None
    round_ = Round(
        account_id=run.account_id,
        run=run,
        turn=turn,
        step=step,
        kind=opening.kind.value,
        logical_operation_id=opening.operation_id,
        round_index=asked,
        round_limit=max(ROUND_LIMIT, asked + 1),
        server_name=call.server_name if call else "",
        operation_kind=call.operation if call else "",
        operation_name=call.name if call else "",
        operation_parameters=call.arguments if call else {},
        request_state=opening.request_state,
        requests={key: dict(request) for key, request in opening.requests.items()},
        context=dict(opening.context),
        shown_digest=opening.shown_digest,
        held=opening.held_by is not None,
        **opening.place,
        deadline=deadline,
        continue_at=continue_at,
        lease_owner=opening.held_by.owner if opening.held_by else "parked",
        lease_token=uuid.uuid4().hex,
        lease_expires_at=now + lease.ttl() if opening.held_by else now,
        created_at=now,
        updated_at=now,
    )
    return place(round_)


def place(round_: Round) -> Round:
    """Store a new pending round, and with it that its turn waits; must run inside a transaction."""
    row_writes.insert(round_)
    turns.set_status(round_.run, round_.turn, TurnStatus.WAITING_FOR_INPUT)
    events.record(round_.run, f"{round_.kind}.request", facts(round_), turn=round_.turn)
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
    Raises ManagedInputValidationError (the round stays pending), ManagedInputConflict or StateConflict with
    who decided what and when, NotFound. An overdue round is failed as timed out and the answer refused (C40).
    """
    with transaction.atomic():
        settled = try_answer(
            round_id,
            responses,
            decider=decider,
            idempotency_key=idempotency_key,
            shown_digest=shown_digest,
            note=note,
        )
    return accepted(settled)


def try_answer(
    round_id: str,
    responses: Mapping[str, Mapping[str, Any]],
    *,
    decider: Decider,
    idempotency_key: str,
    shown_digest: str | None = None,
    note: str = "",
) -> Round | StateConflict:
    """`answer` for callers that change more in the same transaction, which must be open already.

    A refusal because of the deadline is returned, not raised: the expiry that it tells of has to be
    committed. Pass the result to `accepted` after the commit. All other refusals raise as in `answer`.
    """
    _check_key(idempotency_key)
    round_ = lock(round_id)
    check_readable(round_, round_id)
    return try_answer_locked(
        round_,
        responses,
        decider=decider,
        idempotency_key=idempotency_key,
        shown_digest=shown_digest,
        note=note,
    )


def try_answer_locked(
    round_: Round,
    responses: Mapping[str, Mapping[str, Any]],
    *,
    decider: Decider,
    idempotency_key: str,
    shown_digest: str | None = None,
    note: str = "",
) -> Round | StateConflict:
    """`try_answer` for a round that this transaction has locked (`round_rows.lock`) and found readable, and which is as
    its row is."""
    _check_key(idempotency_key)
    payload = checked_shape(responses)
    if round_.responses is not None:
        return _again(round_, idempotency_key, payload)
    late = _late(round_, payload, decider)
    if late is not None:
        return late
    if shown_digest is not None and shown_digest != round_.shown_digest:
        raise StateConflict(
            "What you were shown is not what is pending now. Reload the card.", details=ending(round_)
        )
    check_responses(round_, payload)
    unreachable = live_sessions.why_unreachable(round_)
    if unreachable is not None:
        raise StateConflict(unreachable, details=ending(round_))
    return settle(round_, payload, decider=decider, idempotency_key=idempotency_key, note=note)


def _check_key(key: str) -> None:
    if not 1 <= len(key) <= MAX_KEY or not is_plain(key):
        raise ManagedInputValidationError(
            f"An idempotency key of 1 to {MAX_KEY} characters is needed; make one for this answer and keep it."
        )


def accepted(settled: Round | StateConflict) -> Round:
    """What `try_answer` or `save_draft` settled, once its transaction is over; raises if it was a refusal."""
    if isinstance(settled, StateConflict):
        raise settled
    return settled


def _late(round_: Round, payload: Mapping[str, Any], decider: Decider) -> StateConflict | None:
    """Whether this comes after the end: raises if the round has ended, expires and refuses an overdue one."""
    if round_.status != RoundStatus.PENDING:
        raise StateConflict(ended_sentence(round_), details=ending(round_))
    if round_.deadline is None or clock.now() < round_.deadline:
        return None
    _record_late(round_, payload, decider)
    expire(round_)
    return StateConflict(ended_sentence(round_), details=ending(round_))


def _again(
    round_: Round, key: str, payload: Mapping[str, Any], *, stored: Mapping[str, Any] | None = None
) -> Round:
    """A second answer: the same with the same key gets the first receipt, another learns who won (R3).

    `stored` is what the payload is compared with, if not all responses.
    """
    compared = round_.responses if stored is None else stored
    verdict = replay(round_.response_idempotency_key, compared, key, payload)
    if verdict is Replay.SAME:
        return round_
    raise ManagedInputConflict(ended_sentence(round_), details=ending(round_))


def settle(
    round_: Round,
    payload: dict[str, Any],
    *,
    decider: Decider,
    idempotency_key: str,
    note: str = "",
    at: dt.datetime | None = None,
) -> Round:
    """Store checked responses of a pending, locked round, let its turn go on and wake the run (C19, C27).

    `at` is when, for callers with a clock of their own.
    """
    now = at or clock.now()
    round_.responses = payload
    round_.response_idempotency_key = idempotency_key
    round_.status = RoundStatus.RESPONSE_VALIDATED.value
    round_.outcome = outcome_of(round_, payload).value
    round_.decided_by, round_.decided_via, round_.note = decider.user, decider.via, note
    round_.response_validated_at = now
    round_.drafts = {}
    if not round_.held:
        round_.lease_expires_at = now
    save(round_, at=now)
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


def save_draft(
    round_id: str, key: str, response: Mapping[str, Any], *, decider: Decider
) -> Round | StateConflict:
    """Keep one answer of a many-key round until the last one is there (A21). Must run inside a transaction.

    The same answer again, after its round was answered by its drafts, returns the round. Raises
    ManagedInputValidationError (nothing is kept), ManagedInputConflict, StateConflict, NotFound; returns a
    refusal because of the deadline as `try_answer` does.
    """
    round_ = lock(round_id)
    check_readable(round_, round_id)
    payload = checked_shape({key: response})
    if key not in round_.requests:
        raise ManagedInputValidationError(f"This pause has no request {key!r}.")
    if round_.responses is not None:
        stored = {key: round_.responses.get(key)}
        return _again(round_, draft_key(round_id), payload, stored=stored)
    late = _late(round_, payload, decider)
    if late is not None:
        return late
    check_response(round_.requests[key], key, response)
    round_.drafts = {**round_.drafts, **payload}
    save(round_)
    events.announce_round(round_)
    return round_


def draft_key(round_id: str) -> str:
    """The idempotency key under which a round is answered with its drafts."""
    return f"drafts:{round_id}"


def go_on(round_: Round) -> None:
    """Nobody answered a question in time: take what its asker recommends (m8tes-http 4.5)."""
    if round_.status != RoundStatus.PENDING or round_.continue_at is None:
        return
    answer = recommended.responses(round_.context["questions"])
    if answer is None:
        raise ValueError(f"{round_} goes on by itself and recommends nothing")
    decider = Decider(user=None, via=recommended.VIA, name="the recommendation")
    settle(round_, answer, decider=decider, idempotency_key=f"{recommended.VIA}:{round_.pk}")


def expire(round_: Round) -> None:
    """The deadline passed: the round fails and its turn ends as timed out, never completed (A18, C40).

    A question that was to go on by itself before that goes on, however late somebody looks.
    """
    if round_.status != RoundStatus.PENDING:
        return
    if round_.continue_at and round_.deadline and round_.continue_at <= round_.deadline:
        go_on(round_)
        return
    message = "Nobody answered before the deadline."
    fail(
        round_,
        RoundOutcome.TIMED_OUT,
        code="timeout",
        message=message,
        decider=Decider(user=None, via="deadline"),
    )
    turns.finish(round_.run, round_.turn, Outcome.TIMED_OUT, error=message, error_code="timeout")
    lease.revoke(round_.run_id)
    lease.wake(round_.run_id)


def settle_turn(run: Run, turn: Turn) -> None:
    """Waiting as long as any round of the turn is pending, running otherwise."""
    waiting = bool(_WAITING(turn=turn.pk))
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
