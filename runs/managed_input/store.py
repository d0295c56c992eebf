"""`DjangoManagedInputStore`: the rounds of this installation's database, as the contract's store.

The rules are in `runs.round_states`, what an answer must look like in `runs.round_checks`, the changes of rows in
`runs.rounds` and `runs.round_rows`, which page, API and worker call too. What is the store's own is that every change
proves a lease, and that time comes from `clock`.
"""

from __future__ import annotations

import asyncio
import contextlib
import datetime as dt
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from django.db import transaction

from runs import clock as database_clock
from runs import round_rows, rounds
from runs.errors import ManagedInputConflict, ManagedInputStateError, ManagedInputValidationError
from runs.managed_input import changes, checks, rows
from runs.managed_input.values import (
    ElicitationResponse,
    ManagedInputLease,
    ManagedInputRecord,
    PendingElicitationRound,
)
from runs.models import Round
from runs.redaction import redact
from runs.round_checks import check_responses
from runs.round_states import Replay, RoundStatus, claim_target, replay


def refuse_on_loop() -> None:
    """Raise ManagedInputStateError in a thread whose event loop runs: the store waits for the database."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise ManagedInputStateError(
        "The managed input store would block the event loop of this thread. Use it in another one: "
        "await asyncio.to_thread(lambda: execution_store.managed_input_store.list_rounds(execution_id))."
    )


class DjangoManagedInputStore:
    """See `ManagedInputStore` for what each method does and raises.

    An execution is a Turn; rounds are opened on turns that exist and have not ended. `clock` gives the present time
    with a time zone; a clock without one raises ValueError at once, and ManagedInputValidationError later on (C47).
    Without one the time is that of the database (`runs.clock`), so that leases mean the same on every machine.
    """

    def __init__(self, *, clock: Callable[[], dt.datetime] | None = None) -> None:
        self._clock = clock or database_clock.now
        if clock is not None and clock().tzinfo is None:
            raise ValueError("The clock must give times with a time zone.")

    def create_round(
        self,
        pending: PendingElicitationRound,
        *,
        round_index: int,
        round_limit: int,
        owner_id: str,
        lease_seconds: float,
        lease_token: str | None = None,
        harness_session_id: str | None = None,
        native_resume_token: str | None = None,
        delivery_idempotency_key: str | None = None,
        session_id: str | None = None,
        turn_id: str | None = None,
        operation_parameters: Mapping[str, Any] | None = None,
    ) -> ManagedInputRecord:
        metadata = {
            "harness_session_id": harness_session_id,
            "native_resume_token": native_resume_token,
            "delivery_idempotency_key": delivery_idempotency_key,
            "session_id": session_id,
        }
        checks.check_pending(pending)
        checks.check_texts(owner_id=owner_id)
        checks.check_optional_texts(lease_token=lease_token, turn_id=turn_id, **metadata)
        checks.check_count(round_index, round_limit)
        span = checks.lease_span(lease_seconds)
        parameters = checks.parameters_of(operation_parameters)
        with self._changing():
            turn = rows.locked_turn(pending.execution_id)
            now = self._now()
            wanted = rows.new_round(
                turn,
                pending,
                index=round_index,
                limit=round_limit,
                lease=ManagedInputLease(
                    owner_id=owner_id,
                    lease_token=lease_token or rows.new_token(),
                    expires_at=checks.lease_end(now, span),
                ),
                metadata={**metadata, "harness_turn_id": turn_id},
                parameters=parameters,
                now=now,
            )
            return rows.record_of(changes.existing(wanted) or changes.place(wanted))

    def get_round(self, execution_id: str, round_id: str) -> ManagedInputRecord | None:
        checks.check_texts(execution_id=execution_id, round_id=round_id)
        with self._database(), rows.intact(round_id):
            round_ = rows.of_execution(execution_id).filter(pk=round_id).first()
            return None if round_ is None else rows.record_of(round_)

    def list_rounds(self, execution_id: str) -> tuple[ManagedInputRecord, ...]:
        checks.check_texts(execution_id=execution_id)
        with self._database(), rows.intact(f"of execution {execution_id}"):
            found = rows.of_execution(execution_id).order_by("round_index", "created_at", "pk")
            return tuple(rows.record_of(round_) for round_ in found)

    def claim_round(
        self,
        execution_id: str,
        round_id: str,
        *,
        owner_id: str,
        lease_seconds: float,
        expected_lease_token: str | None = None,
        delivery_state: str | None = None,
        idempotent_delivery: bool = False,
    ) -> ManagedInputRecord:
        checks.check_texts(execution_id=execution_id, round_id=round_id, owner_id=owner_id)
        checks.check_optional_texts(expected_lease_token=expected_lease_token)
        span = checks.lease_span(lease_seconds)
        with self._changing():
            round_, record = rows.locked_round(execution_id, round_id)
            now = self._now()
            target = claim_target(
                record.status,
                round_.failure_code,
                checks.evidence(delivery_state),
                idempotent_delivery=bool(idempotent_delivery),
            )
            checks.check_expired(round_, now)
            checks.check_token(round_, expected_lease_token)
            changes.claimed(round_, target, owner_id, checks.lease_end(now, span), now)
            return rows.record_of(round_)

    def renew(
        self, execution_id: str, round_id: str, *, owner_id: str, lease_token: str, lease_seconds: float
    ) -> ManagedInputRecord:
        checks.check_texts(owner_id=owner_id, lease_token=lease_token)
        span = checks.lease_span(lease_seconds)
        with self._changing():
            round_, now = self._held(execution_id, round_id, owner_id, lease_token)
            checks.check_renewable(round_)
            changes.renewed(round_, checks.lease_end(now, span), now)
            return rows.record_of(round_)

    def submit_responses(
        self,
        execution_id: str,
        round_id: str,
        responses: Mapping[str, ElicitationResponse],
        *,
        owner_id: str,
        lease_token: str,
        response_idempotency_key: str,
    ) -> ManagedInputRecord:
        checks.check_texts(
            execution_id=execution_id,
            round_id=round_id,
            response_idempotency_key=response_idempotency_key,
        )
        with self._changing():
            round_, record = rows.locked_round(execution_id, round_id)
            now = self._now()
            checks.check_not_failed(round_)
            checks.check_texts(owner_id=owner_id, lease_token=lease_token)
            checks.check_owner(round_, owner_id, lease_token)
            if record.status is RoundStatus.PENDING:
                checks.check_live(round_, now)
            payload = checks.payload_of(responses)
            check_responses(round_, payload)
            verdict = replay(
                round_.response_idempotency_key, round_.responses, response_idempotency_key, payload
            )
            if verdict is Replay.SAME:
                return record
            if verdict is Replay.CONFLICT:
                raise ManagedInputConflict(
                    "The round has an answer already, and this is not it.", details=round_rows.ending(round_)
                )
            round_.response_idempotency_key = response_idempotency_key
            rows.check_lengths(round_)
            rounds.settle(
                round_, payload, decider=changes.PROGRAM, idempotency_key=response_idempotency_key, at=now
            )
            return rows.record_of(round_)

    def start_delivery(
        self, execution_id: str, round_id: str, *, owner_id: str, lease_token: str
    ) -> ManagedInputRecord:
        return self._deliver(RoundStatus.DELIVERY_STARTED, execution_id, round_id, owner_id, lease_token)

    def mark_delivered(
        self, execution_id: str, round_id: str, *, owner_id: str, lease_token: str
    ) -> ManagedInputRecord:
        return self._deliver(RoundStatus.DELIVERED, execution_id, round_id, owner_id, lease_token)

    def resolve(
        self, execution_id: str, round_id: str, *, owner_id: str, lease_token: str
    ) -> ManagedInputRecord:
        return self._deliver(RoundStatus.RESOLVED, execution_id, round_id, owner_id, lease_token)

    def fail(
        self, execution_id: str, round_id: str, *, owner_id: str, lease_token: str, code: str, message: str
    ) -> ManagedInputRecord:
        checks.check_texts(code=code, message=message)
        with self._changing():
            round_, now = self._held(execution_id, round_id, owner_id, lease_token)
            if checks.may_fail(round_, code, message):
                changes.failed(round_, code, message, now)
            return rows.record_of(round_)

    def fail_recovery(
        self, execution_id: str, round_id: str, *, expected_lease_token: str, message: str
    ) -> ManagedInputRecord:
        checks.check_texts(
            execution_id=execution_id,
            round_id=round_id,
            expected_lease_token=expected_lease_token,
            message=message,
        )
        with self._changing():
            round_, record = rows.locked_round(execution_id, round_id)
            now = self._now()
            checks.check_token(round_, expected_lease_token)
            if record.failure_code == round_rows.LOST_CODE:
                return record
            checks.check_losable(round_, now)
            changes.lost(round_, message, now)
            return rows.record_of(round_)

    def redacted_responses(self, execution_id: str, round_id: str) -> Mapping[str, Any] | None:
        record = self.get_round(execution_id, round_id)
        if record is None or record.responses is None:
            return None
        redacted: Any = redact({key: response.model_dump() for key, response in record.responses.items()})
        return dict(redacted)

    def _deliver(
        self, target: RoundStatus, execution_id: str, round_id: str, owner_id: str, lease_token: str
    ) -> ManagedInputRecord:
        with self._changing():
            round_, now = self._held(execution_id, round_id, owner_id, lease_token)
            changes.delivered(round_, target, now)
            return rows.record_of(round_)

    def _held(
        self, execution_id: str, round_id: str, owner_id: str, lease_token: str
    ) -> tuple[Round, dt.datetime]:
        """The locked row of a round that the caller holds by a live lease, and the time; else raises."""
        checks.check_texts(execution_id=execution_id, round_id=round_id)
        round_, _ = rows.locked_round(execution_id, round_id)
        checks.check_texts(owner_id=owner_id, lease_token=lease_token)
        now = self._now()
        checks.check_owner(round_, owner_id, lease_token)
        checks.check_live(round_, now)
        return round_, now

    @contextlib.contextmanager
    def _changing(self) -> Iterator[None]:
        """One change is one transaction; the time is asked inside, once nobody else can change the row."""
        with self._database(), transaction.atomic():
            yield

    def _now(self) -> dt.datetime:
        now = self._clock()
        if now.tzinfo is None:
            raise ManagedInputValidationError("The clock must give times with a time zone.")
        return now

    def _database(self) -> AbstractContextManager[None]:
        """Where the rounds are: this thread's own connection."""
        refuse_on_loop()
        return nullcontext()
