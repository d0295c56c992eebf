"""Taking over from a worker that is gone: by proof, or not at all."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest
from django.db.models import F

from runs.managed_input import (
    DjangoManagedInputStore,
    ManagedInputConflict,
    ManagedInputRecord,
    ManagedInputRecoveryError,
    ManagedInputStateError,
    ManagedInputValidationError,
)
from runs.models import Event, Round, Run, Turn
from tests.services.managed_input.samples import (
    HOLDER,
    LEASE,
    Clock,
    brought_to,
    holder_of,
    opened,
    submitted,
)

STATUSES = ["pending", "response_validated", "delivery_started", "delivered"]
PROOFS = [(None, True), ("not_started", False), ("not_delivered", False), ("not_delivered", True)]
PROOFS += [("delivered", False), ("nonsense", True)]
TAKEN = {
    ("pending", "not_started", False): "pending",
    ("response_validated", "not_delivered", True): "response_validated",
    ("delivery_started", "not_delivered", True): "response_validated",
    ("delivery_started", "delivered", False): "delivered",
    ("delivered", "delivered", False): "delivered",
}
"""What can be proven of a round in which status, and how it goes on."""


def claim(store: DjangoManagedInputStore, execution: str, **changed: Any) -> ManagedInputRecord:
    given: dict[str, Any] = {
        "owner_id": "worker-2",
        "lease_seconds": LEASE,
        "expected_lease_token": HOLDER["lease_token"],
        "delivery_state": "not_started",
        **changed,
    }
    return store.claim_round(execution, "round-1", **given)


@pytest.mark.parametrize(("status", "proof"), list(itertools.product(STATUSES, PROOFS)))
def test_a_round_is_taken_over_with_proof_alone(
    store: DjangoManagedInputStore, execution: str, clock: Clock, status: str, proof: tuple[str | None, bool]
) -> None:
    """C31, C32: without it the row stays as it is."""
    before = brought_to(store, execution, status)
    clock.pass_(LEASE)
    evidence = {"delivery_state": proof[0], "idempotent_delivery": proof[1]}
    after = TAKEN.get((status, *proof))  # type: ignore[arg-type]
    if after is None:
        with pytest.raises(ManagedInputRecoveryError):
            claim(store, execution, **evidence)
        assert store.get_round(execution, "round-1") == before
        return
    record = claim(store, execution, **evidence)

    assert (record.status, record.updated_at) == (after, clock.now)
    assert record.lease.owner_id == "worker-2"
    assert record.lease.lease_token != before.lease.lease_token
    assert (record.lease.expires_at - clock.now).total_seconds() == LEASE
    assert record == store.get_round(execution, "round-1")


def test_the_old_worker_can_change_nothing_any_more(
    store: DjangoManagedInputStore, execution: str, clock: Clock
) -> None:
    """C28."""
    opened(store, execution)
    clock.pass_(LEASE)
    record = claim(store, execution)

    with pytest.raises(ManagedInputConflict):
        submitted(store, execution)
    assert submitted(store, execution, **holder_of(record)).status == "response_validated"


def test_a_second_delivery_counts_and_keeps_when_the_first_began_until_it_begins(
    store: DjangoManagedInputStore, execution: str, clock: Clock
) -> None:
    """C32."""
    first = brought_to(store, execution, "delivery_started")
    clock.pass_(LEASE)
    taken = claim(store, execution, delivery_state="not_delivered", idempotent_delivery=True)
    assert (taken.delivery_attempts, taken.delivery_started_at) == (1, first.delivery_started_at)

    again = store.start_delivery(execution, "round-1", **holder_of(taken))
    assert (again.delivery_attempts, again.delivery_started_at) == (2, clock.now)


def test_a_delivery_that_is_proven_has_the_time_of_the_proof(
    store: DjangoManagedInputStore, execution: str, clock: Clock
) -> None:
    brought_to(store, execution, "delivery_started")
    clock.pass_(LEASE)
    first = claim(store, execution, delivery_state="delivered")
    assert first.delivered_at == clock.now

    clock.pass_(LEASE)
    second = claim(store, execution, delivery_state="delivered", expected_lease_token=first.lease.lease_token)
    assert second.delivered_at == first.delivered_at


@pytest.mark.parametrize(
    ("status", "expired", "changed", "error"),
    [
        ("missing", True, {"owner_id": ""}, ManagedInputValidationError),
        ("missing", True, {"delivery_state": None}, ManagedInputConflict),
        ("lost", True, {"delivery_state": None}, ManagedInputRecoveryError),
        ("failed", False, {"delivery_state": None}, ManagedInputStateError),
        ("resolved", False, {"delivery_state": None}, ManagedInputStateError),
        ("pending", False, {"delivery_state": None}, ManagedInputRecoveryError),
        ("pending", False, {}, ManagedInputConflict),
        ("pending", True, {"expected_lease_token": "token-2"}, ManagedInputConflict),
        ("pending", True, {"expected_lease_token": None}, ManagedInputConflict),
        ("pending", True, {"expected_lease_token": ""}, ManagedInputValidationError),
        ("pending", True, {"lease_seconds": 0}, ManagedInputValidationError),
        ("pending", True, {"owner_id": "x" * 81}, ManagedInputValidationError),
    ],
)
def test_claims_are_refused_in_one_order(
    store: DjangoManagedInputStore,
    execution: str,
    clock: Clock,
    status: str,
    expired: bool,
    changed: dict[str, Any],
    error: type[Exception],
) -> None:
    """C31, C36."""
    if status == "lost":
        opened(store, execution)
        clock.pass_(LEASE)
        lose(store, execution)
    elif status != "missing":
        brought_to(store, execution, status)
    clock.pass_(LEASE if expired else 0)

    with pytest.raises(error) as refused:
        claim(store, execution, **changed)
    assert type(refused.value) is error


def test_a_parked_round_of_the_worker_can_be_claimed_at_once(
    execution: str, run: Run, make_round: Callable[..., Round]
) -> None:
    """Design section 5: parking lets the lease of a round that nobody holds expire."""
    store = DjangoManagedInputStore()
    parked = make_round("elicitation", run=run)
    record = store.get_round(execution, parked.pk)
    assert record is not None

    taken = store.claim_round(
        execution,
        parked.pk,
        owner_id="worker-2",
        lease_seconds=LEASE,
        expected_lease_token=record.lease.lease_token,
        delivery_state="not_started",
    )
    assert taken.lease.owner_id == "worker-2"


def lose(store: DjangoManagedInputStore, execution: str, **changed: Any) -> ManagedInputRecord:
    given = {"expected_lease_token": HOLDER["lease_token"], "message": "The worker is gone.", **changed}
    return store.fail_recovery(execution, "round-1", **given)


@pytest.mark.parametrize("status", STATUSES)
def test_a_lost_session_fails_its_round_and_its_execution(
    store: DjangoManagedInputStore,
    execution: str,
    clock: Clock,
    status: str,
    run: Run,
    turn_now: Callable[[], Turn],
) -> None:
    """C34, C35."""
    brought_to(store, execution, status)
    clock.pass_(LEASE)
    record = lose(store, execution)

    assert (record.status, record.failure_code) == ("failed", "recovery_unavailable")
    assert (record.failure_message, record.failed_at) == ("The worker is gone.", clock.now)
    turn, after = turn_now(), Run.objects.get(pk=run.pk)
    assert (turn.status, turn.outcome) == ("finished", "failed")
    assert (turn.error_code, turn.error) == (
        "managed_input_recovery_unavailable",
        "The worker is gone.",
    )
    assert (after.status, after.outcome, after.error_code) == ("finished", "failed", turn.error_code)
    assert Round.objects.get().outcome == "recovery_unavailable"
    assert Event.objects.filter(run=run, type="run.failed").count() == 1


def test_an_execution_ends_with_the_last_round_that_was_held(
    store: DjangoManagedInputStore, execution: str, clock: Clock, turn_now: Callable[[], Turn]
) -> None:
    """C35."""
    opened(store, execution)
    clock.pass_(LEASE / 2)
    opened(store, execution, "round-2", logical_operation_id="other")
    clock.pass_(LEASE / 2)
    lose(store, execution)
    assert turn_now().status == "waiting_for_input"

    clock.pass_(LEASE)
    store.fail_recovery(
        execution, "round-2", expected_lease_token=HOLDER["lease_token"], message="Gone as well."
    )
    assert (turn_now().outcome, turn_now().error) == ("failed", "Gone as well.")


def test_losing_it_again_changes_nothing_whatever_is_said(
    store: DjangoManagedInputStore, execution: str, clock: Clock, turn_now: Callable[[], Turn]
) -> None:
    """C34, C36: the finished result stays."""
    opened(store, execution)
    clock.pass_(LEASE)
    first = lose(store, execution)
    finished_at = turn_now().finished_at
    clock.pass_(1)

    assert lose(store, execution, message="Something else.") == first
    assert turn_now().finished_at == finished_at
    with pytest.raises(ManagedInputConflict):
        lose(store, execution, expected_lease_token="token-2")
    with pytest.raises(ManagedInputStateError):
        submitted(store, execution)
    assert store.get_round(execution, "round-1") == first


@pytest.mark.parametrize(
    ("status", "expired", "changed", "error"),
    [
        ("missing", True, {"message": ""}, ManagedInputValidationError),
        ("missing", True, {}, ManagedInputConflict),
        ("pending", False, {}, ManagedInputConflict),
        ("pending", True, {"expected_lease_token": "token-2"}, ManagedInputConflict),
        ("resolved", True, {"expected_lease_token": "token-2"}, ManagedInputConflict),
        ("resolved", False, {}, ManagedInputStateError),
        ("failed", True, {}, ManagedInputStateError),
        ("pending", True, {"message": ""}, ManagedInputValidationError),
        ("pending", True, {"expected_lease_token": None}, ManagedInputValidationError),
    ],
)
def test_nothing_is_given_up_before_its_lease_is_over(
    store: DjangoManagedInputStore,
    execution: str,
    clock: Clock,
    status: str,
    expired: bool,
    changed: dict[str, Any],
    error: type[Exception],
) -> None:
    """C34."""
    before = brought_to(store, execution, status) if status != "missing" else None
    clock.pass_(LEASE if expired else 0)

    with pytest.raises(error) as refused:
        lose(store, execution, **changed)
    assert type(refused.value) is error
    assert store.get_round(execution, "round-1") == before


def test_a_round_that_nobody_holds_cannot_be_lost(
    execution: str, run: Run, make_round: Callable[..., Round]
) -> None:
    """C35, design section 5: it is parked, and any worker may go on with it."""
    store = DjangoManagedInputStore()
    parked = make_round("elicitation", run=run)

    with pytest.raises(ManagedInputStateError):
        store.fail_recovery(execution, parked.pk, expected_lease_token=parked.lease_token, message="Gone.")
    assert Round.objects.get().status == "pending"


def test_reading_starts_nothing(store: DjangoManagedInputStore, execution: str, run: Run) -> None:
    """C37."""
    opened(store, execution)
    submitted(store, execution)
    Run.objects.filter(pk=run.pk).update(seen_seq=F("wake_seq"))
    before = (Run.objects.values().get(pk=run.pk), Round.objects.values().get(), Event.objects.count())

    store.get_round(execution, "round-1")
    store.list_rounds(execution)
    store.redacted_responses(execution, "round-1")

    assert before == (
        Run.objects.values().get(pk=run.pk),
        Round.objects.values().get(),
        Event.objects.count(),
    )


def test_with_a_finished_run_its_rounds_go(store: DjangoManagedInputStore, execution: str, run: Run) -> None:
    """C38: what deletes a run takes its rounds along."""
    opened(store, execution)
    Run.objects.get(pk=run.pk).delete()

    assert store.list_rounds(execution) == ()
    assert not Round.objects.exists()
