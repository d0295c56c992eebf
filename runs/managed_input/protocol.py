"""`ManagedInputStore`: what a store of rounds can do, whatever keeps them (contract, store methods)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from runs.managed_input.values import ElicitationResponse, ManagedInputRecord, PendingElicitationRound


class ManagedInputStore(Protocol):
    """Rounds with their answers, leases and delivery.

    Every argument is checked before any row is looked at: ids, owners, tokens, keys, codes and messages are texts
    that are not empty, `lease_seconds` is a number above zero; ManagedInputValidationError otherwise. A round that
    is not there is a ManagedInputConflict for whoever wants to change it. Every change compares owner and token
    (ManagedInputConflict for a stale one), is one transaction, and returns the record as it then is; a repeated
    one changes nothing. A row that cannot be read back raises ManagedInputValidationError (C46).
    """

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
        """Store a pause, leased to `owner_id` for `lease_seconds`; without `lease_token` a token is made.

        The identical call again returns the row (C11); anything else under its id or index raises
        ManagedInputConflict.
        """

    def get_round(self, execution_id: str, round_id: str) -> ManagedInputRecord | None:
        """One round, or None. Reading starts nothing (C37)."""

    def list_rounds(self, execution_id: str) -> tuple[ManagedInputRecord, ...]:
        """The rounds of an execution by their index."""

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
        """Take over a round whose lease has expired, under a new token.

        `delivery_state` (not_started, not_delivered, delivered) is what the claimer can prove of the delivery and
        has to fit the status; `expected_lease_token` is the token that the round has now (`record.lease`): every round
        has one, so without it, or with another, the claim is refused. `idempotent_delivery` proves that delivering
        again does no harm (C32). Raises, in this order (C31): ManagedInputConflict (no such round),
        ManagedInputRecoveryError (its session was lost), ManagedInputStateError (it has ended),
        ManagedInputRecoveryError (the evidence), ManagedInputConflict (the lease still holds, or the token is another
        one).
        """

    def renew(
        self, execution_id: str, round_id: str, *, owner_id: str, lease_token: str, lease_seconds: float
    ) -> ManagedInputRecord:
        """Let the lease end `lease_seconds` from now; not once the answer was delivered (C29)."""

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
        """Validate and store the answer, pending -> response_validated, and wake the run (C19, C27).

        Raises, in this order (C22): ManagedInputConflict (no such round), ManagedInputStateError (it failed),
        ManagedInputConflict (another lease; an expired one only while pending), ManagedInputValidationError (keys,
        schema), ManagedInputConflict (another answer is stored, or this one under another key). Deadlines are
        not looked at (C40).
        """

    def start_delivery(
        self, execution_id: str, round_id: str, *, owner_id: str, lease_token: str
    ) -> ManagedInputRecord:
        """response_validated -> delivery_started, one attempt more (C30)."""

    def mark_delivered(
        self, execution_id: str, round_id: str, *, owner_id: str, lease_token: str
    ) -> ManagedInputRecord:
        """delivery_started -> delivered (C30)."""

    def resolve(
        self, execution_id: str, round_id: str, *, owner_id: str, lease_token: str
    ) -> ManagedInputRecord:
        """delivered -> resolved: the operation went on (C30)."""

    def fail(
        self, execution_id: str, round_id: str, *, owner_id: str, lease_token: str, code: str, message: str
    ) -> ManagedInputRecord:
        """End an unresolved round without a delivered answer; `code` says why (C33)."""

    def fail_recovery(
        self, execution_id: str, round_id: str, *, expected_lease_token: str, message: str
    ) -> ManagedInputRecord:
        """The worker of a held round is gone for good: recovery_unavailable, only once its lease has expired (C34).

        The last held round of an execution takes the execution with it: finished as failed, with code
        managed_input_recovery_unavailable, in the same transaction (C35).
        """

    def redacted_responses(self, execution_id: str, round_id: str) -> Mapping[str, Any] | None:
        """The stored answer for diagnostics, secrets masked; None if there is none (C45)."""
