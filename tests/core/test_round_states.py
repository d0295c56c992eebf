"""The state machine of a round (C30-C32)."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime, timedelta

import pytest

from runs.errors import ManagedInputRecoveryError, ManagedInputStateError
from runs.round_states import (
    FAILURE_CODES,
    ROUND_TRANSITIONS,
    TERMINAL,
    UNRESOLVED,
    DeliveryState,
    RoundKind,
    RoundOutcome,
    RoundStatus,
    claim_target,
    lease_live,
    must_move,
)

DELIVERY = ["response_validated", "delivery_started", "delivered", "resolved"]


def test_delivery_goes_step_by_step() -> None:
    for old, new in itertools.pairwise(DELIVERY):
        assert must_move(RoundStatus(old), RoundStatus(new)) is True


@pytest.mark.parametrize("target", DELIVERY[1:])
def test_a_repeated_delivery_step_changes_nothing(target: str) -> None:
    assert must_move(RoundStatus(target), RoundStatus(target)) is False


@pytest.mark.parametrize("target", DELIVERY[1:])
def test_a_delivery_step_that_skips_or_undoes_another_is_refused(target: str) -> None:
    before = RoundStatus(DELIVERY[DELIVERY.index(target) - 1])
    for current in set(RoundStatus) - {before, RoundStatus(target)}:
        with pytest.raises(ManagedInputStateError) as refused:
            must_move(current, RoundStatus(target))
        assert refused.value.details["status"] == current.value


def test_every_unresolved_round_can_fail_and_a_terminal_one_never_moves() -> None:
    assert {RoundStatus.RESOLVED, RoundStatus.FAILED} == TERMINAL
    for status in UNRESOLVED:
        assert RoundStatus.FAILED in ROUND_TRANSITIONS[status]
    for status in TERMINAL:
        assert ROUND_TRANSITIONS[status] == frozenset()


def test_no_round_becomes_pending_again() -> None:
    assert all(RoundStatus.PENDING not in after for after in ROUND_TRANSITIONS.values())


CLAIMS = {
    ("pending", "not_started"): "pending",
    ("response_validated", "not_delivered"): "response_validated",
    ("delivery_started", "not_delivered"): "response_validated",
    ("delivery_started", "delivered"): "delivered",
    ("delivered", "delivered"): "delivered",
}


@pytest.mark.parametrize("status", sorted(UNRESOLVED))
@pytest.mark.parametrize("evidence", [None, *DeliveryState])
def test_a_claim_needs_the_evidence_that_fits_the_status(
    status: RoundStatus, evidence: DeliveryState | None
) -> None:
    expected = CLAIMS.get((status.value, evidence.value if evidence else ""))
    if expected is None:
        with pytest.raises(ManagedInputRecoveryError):
            claim_target(status, None, evidence, idempotent_delivery=True)
    else:
        assert claim_target(status, None, evidence, idempotent_delivery=True) == expected


@pytest.mark.parametrize("status", ["response_validated", "delivery_started"])
def test_delivering_again_needs_proof_that_a_repeat_does_no_harm(status: str) -> None:
    with pytest.raises(ManagedInputRecoveryError, match="proof"):
        claim_target(RoundStatus(status), None, DeliveryState.NOT_DELIVERED, idempotent_delivery=False)


def test_a_round_whose_session_was_lost_and_one_that_ended_otherwise_refuse_a_claim_differently() -> None:
    with pytest.raises(ManagedInputRecoveryError):
        claim_target(
            RoundStatus.FAILED, "recovery_unavailable", DeliveryState.DELIVERED, idempotent_delivery=True
        )
    for status, code in [(RoundStatus.FAILED, "timeout"), (RoundStatus.RESOLVED, None)]:
        with pytest.raises(ManagedInputStateError):
            claim_target(status, code, DeliveryState.DELIVERED, idempotent_delivery=True)


def test_each_failure_code_belongs_to_one_outcome() -> None:
    assert {code: outcome.value for code, outcome in FAILURE_CODES.items()} == {
        "recovery_unavailable": "recovery_unavailable",
        "timeout": "timed_out",
        "cancelled": "cancelled",
        "superseded": "superseded",
    }


def test_a_lease_is_dead_at_exactly_its_expiry() -> None:
    expires_at = datetime(2026, 1, 1, 12, tzinfo=UTC)
    tick = timedelta(microseconds=1)
    assert lease_live(expires_at - tick, expires_at) is True
    assert lease_live(expires_at, expires_at) is False
    assert lease_live(expires_at + tick, expires_at) is False


@pytest.mark.parametrize("member", [*RoundStatus, *RoundKind, *RoundOutcome])
def test_every_word_about_a_round_carries_a_sentence(member: RoundStatus) -> None:
    assert member.describe.endswith(".")
