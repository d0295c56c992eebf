"""Between rows and values: which rounds the store sees, and how a Round becomes a record.

The store's rounds are the elicitations of a turn. Approvals, questions and plans are pauses of ours (design
section 1); nobody answers them past their own rules by way of a lease.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import uuid
from collections.abc import Iterator, Mapping
from typing import Any

from runs import round_rows
from runs.canonical import canonical_json, digest
from runs.errors import ManagedInputConflict, ManagedInputValidationError, NotFound
from runs.managed_input.values import (
    ElicitationResponse,
    FormElicitationRequest,
    ManagedInputLease,
    ManagedInputRecord,
    PendingElicitationRound,
    UrlElicitationRequest,
)
from runs.models import Round, Run, Turn
from runs.models.round import RoundQuerySet
from runs.readable import unreadable
from runs.round_states import RoundKind

_SAME_NAME = (
    "round_index",
    "round_limit",
    "status",
    "response_idempotency_key",
    "harness_session_id",
    "native_resume_token",
    "delivery_idempotency_key",
    "session_id",
    "operation_parameters",
    "delivery_attempts",
    "created_at",
    "updated_at",
    "response_validated_at",
    "delivery_started_at",
    "delivered_at",
    "resolved_at",
    "failed_at",
    "failure_code",
    "failure_message",
)
_OPTIONAL_IN_REQUEST = ("elicitation_id", "meta", "task", "server", "operation_kind", "operation_name")


def turn_key(execution_id: str) -> uuid.UUID | None:
    """The key of the turn that this execution is; None for a text that no turn has for an id."""
    try:
        key = uuid.UUID(execution_id)
    except ValueError:
        return None
    return key if str(key) == execution_id else None


def of_execution(execution_id: str) -> RoundQuerySet:
    """The rounds of an execution that the store sees."""
    key = turn_key(execution_id)
    rounds = Round.objects.filter(kind=RoundKind.ELICITATION.value)
    return rounds.filter(turn=key) if key else rounds.none()


def locked_turn(execution_id: str) -> Turn:
    """The turn with its run, whose row stays locked until the transaction ends. Raises ManagedInputConflict."""
    key = turn_key(execution_id)
    missing = ManagedInputConflict("There is no such execution. Rounds belong to a turn of a run.")
    if key is None:
        raise missing
    run = Run.objects.select_for_update().filter(turns=key).first()
    if run is None:
        raise missing
    return run.turns.get(pk=key)  # read after the lock, so that it is as the last change left it


def locked_round(execution_id: str, round_id: str) -> tuple[Round, ManagedInputRecord]:
    """The locked row and what it says. Raises ManagedInputConflict if it is not there (C24)."""
    with intact(round_id):
        try:
            round_ = round_rows.lock(round_id)
        except NotFound:
            round_ = None
        if round_ is None or str(round_.turn_id) != execution_id or round_.kind != RoundKind.ELICITATION:
            raise ManagedInputConflict("There is no such round in this execution.")
        return round_, _record(round_)


@contextlib.contextmanager
def intact(round_id: str) -> Iterator[None]:
    """What cannot be read back from the database is refused as such and never guessed at (C46)."""
    try:
        yield
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise unreadable(round_id) from error


def record_of(round_: Round) -> ManagedInputRecord:
    """The row as a value. Raises ManagedInputValidationError if it is damaged (C46)."""
    with intact(round_.pk):
        return _record(round_)


def _record(round_: Round) -> ManagedInputRecord:
    return ManagedInputRecord(
        pending=PendingElicitationRound(
            round_id=round_.pk,
            execution_id=str(round_.turn_id),
            logical_operation_id=round_.logical_operation_id,
            server=round_.server_name,
            operation_kind=round_.operation_kind,  # type: ignore[arg-type]  # refused if it is another word
            operation_name=round_.operation_name,
            request_state=round_.request_state,
            requests=round_.requests,
            created_at=round_.asked_at or round_.created_at,
            deadline=round_.deadline,
        ),
        lease=ManagedInputLease(
            owner_id=round_.lease_owner,
            lease_token=round_.lease_token,
            expires_at=round_.lease_expires_at,
        ),
        responses=_responses(round_.responses),
        turn_id=round_.harness_turn_id,
        **{name: getattr(round_, name) for name in _SAME_NAME},
    )


def _responses(stored: Mapping[str, Any] | None) -> dict[str, ElicitationResponse] | None:
    if stored is None:
        return None
    return {key: ElicitationResponse(**response) for key, response in stored.items()}


def new_round(
    turn: Turn,
    pending: PendingElicitationRound,
    *,
    index: int,
    limit: int,
    lease: ManagedInputLease,
    metadata: Mapping[str, str | None],
    parameters: Mapping[str, Any],
    now: dt.datetime,
) -> Round:
    """The row of a round that a program opens. It is held: whoever has the lease waits for the answer."""
    run = turn.run
    requests = stored_requests(pending)
    round_ = Round(
        id=pending.round_id,
        account_id=run.account_id,
        run=run,
        turn=turn,
        kind=RoundKind.ELICITATION.value,
        logical_operation_id=pending.logical_operation_id,
        round_index=index,
        round_limit=limit,
        server_name=pending.server,
        operation_kind=pending.operation_kind,
        operation_name=pending.operation_name,
        operation_parameters=dict(parameters),
        request_state=pending.request_state,
        requests=requests,
        shown_digest=digest(requests),
        context={
            "tool": f"{pending.server}:{pending.operation_name}",
            "server_address": "",
            "mode": run.mode,
        },
        held=True,
        deadline=pending.deadline,
        asked_at=pending.created_at,
        lease_owner=lease.owner_id,
        lease_token=lease.lease_token,
        lease_expires_at=lease.expires_at,
        created_at=now,
        updated_at=now,
        **metadata,
    )
    check_lengths(round_)
    return round_


def new_token() -> str:
    return uuid.uuid4().hex


def same_round(a: Round, b: Round) -> bool:
    """Whether two rows were opened by the same call (C11): everything that it said, and who holds them now."""
    names = (
        *("pk", "turn_id", "kind", "logical_operation_id", "round_index", "round_limit"),
        *("server_name", "operation_kind", "operation_name", "request_state", "asked_at", "deadline"),
        *("harness_session_id", "native_resume_token", "delivery_idempotency_key", "session_id"),
        *("harness_turn_id", "lease_owner", "lease_token"),
    )
    if any(getattr(a, name) != getattr(b, name) for name in names):
        return False
    return all(
        canonical_json(getattr(a, name)) == canonical_json(getattr(b, name))
        for name in ("requests", "operation_parameters")
    )


def stored_requests(pending: PendingElicitationRound) -> dict[str, dict[str, Any]]:
    """The requests in the shape of `Round.requests`: what a request does not have is absent."""
    return {key: _stored_request(request) for key, request in pending.requests.items()}


def _stored_request(request: FormElicitationRequest | UrlElicitationRequest) -> dict[str, Any]:
    stored: dict[str, Any] = {
        "request_key": request.request_key,
        "mode": request.mode,
        "message": request.message,
    }
    if isinstance(request, FormElicitationRequest):
        stored["requested_schema"] = request.requested_schema
    else:
        stored["url"] = request.url
    optional = {name: getattr(request, name, None) for name in _OPTIONAL_IN_REQUEST}
    return stored | {name: value for name, value in optional.items() if value is not None}


def check_lengths(round_: Round) -> None:
    """Raise ManagedInputValidationError for a text that is longer than its column, whether or not it is enforced."""
    for field in Round._meta.concrete_fields:
        value, limit = getattr(round_, field.attname), field.max_length
        if limit is not None and isinstance(value, str) and len(value) > limit:
            raise ManagedInputValidationError(f"{field.name} may have {limit} characters at most.")
