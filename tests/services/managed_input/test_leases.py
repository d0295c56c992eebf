"""Whoever changes a round holds its lease: owner and token, until the moment at which it is over."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from typing import Any

import pytest

from runs.managed_input import (
    DjangoManagedInputStore,
    ManagedInputConflict,
    ManagedInputRecord,
    ManagedInputStateError,
    ManagedInputValidationError,
)
from tests.services.managed_input.samples import (
    HOLDER,
    LEASE,
    START,
    Clock,
    brought_to,
    opened,
    submitted,
)

Change = Callable[..., ManagedInputRecord]


def change(name: str, store: DjangoManagedInputStore, execution: str, **lease: Any) -> ManagedInputRecord:
    """One of the store's changes, with everything that it needs besides the lease."""
    if name == "submit_responses":
        return submitted(store, execution, **lease)
    more: dict[str, Any] = {
        "renew": {"lease_seconds": LEASE},
        "fail": {"code": "broken", "message": "It broke."},
    }.get(name, {})
    changed: ManagedInputRecord = getattr(store, name)(execution, "round-1", **lease, **more)
    return changed


BEFORE = {
    "submit_responses": "pending",
    "renew": "pending",
    "fail": "pending",
    "start_delivery": "response_validated",
    "mark_delivered": "delivery_started",
    "resolve": "delivered",
}
"""Every change by lease, with the status in which it may be made."""


@pytest.mark.parametrize("stale", [{"owner_id": "worker-2"}, {"lease_token": "token-2"}], ids=str)
@pytest.mark.parametrize("name", BEFORE)
def test_every_change_compares_owner_and_token(
    store: DjangoManagedInputStore, execution: str, name: str, stale: dict[str, str]
) -> None:
    """C28."""
    before = brought_to(store, execution, BEFORE[name])

    with pytest.raises(ManagedInputConflict):
        change(name, store, execution, **{**HOLDER, **stale})
    assert store.get_round(execution, "round-1") == before


@pytest.mark.parametrize("name", BEFORE)
def test_a_lease_is_over_at_exactly_its_end(
    store: DjangoManagedInputStore, execution: str, clock: Clock, name: str
) -> None:
    """C23."""
    before = brought_to(store, execution, BEFORE[name])
    clock.now = before.lease.expires_at
    with pytest.raises(ManagedInputConflict):
        change(name, store, execution, **HOLDER)
    assert store.get_round(execution, "round-1") == before

    clock.now = before.lease.expires_at - dt.timedelta(microseconds=1)
    assert change(name, store, execution, **HOLDER).updated_at == clock.now


@pytest.mark.parametrize("name", ["start_delivery", "mark_delivered", "resolve", "fail"])
def test_repeating_a_change_needs_a_live_lease_too(
    store: DjangoManagedInputStore, execution: str, clock: Clock, name: str
) -> None:
    """C30, C33."""
    brought_to(store, execution, BEFORE[name])
    first = change(name, store, execution, **HOLDER)
    clock.pass_(1)
    assert change(name, store, execution, **HOLDER) == first

    clock.pass_(LEASE)
    with pytest.raises(ManagedInputConflict):
        change(name, store, execution, **HOLDER)


@pytest.mark.parametrize("name", BEFORE)
def test_nobody_changes_a_round_that_is_not_there(
    store: DjangoManagedInputStore, execution: str, name: str
) -> None:
    """C24."""
    with pytest.raises(ManagedInputConflict):
        change(name, store, execution, **HOLDER)


@pytest.mark.parametrize("status", ["pending", "response_validated", "delivery_started"])
def test_renewing_keeps_the_token_and_counts_from_now(
    store: DjangoManagedInputStore, execution: str, clock: Clock, status: str
) -> None:
    """C29."""
    before = brought_to(store, execution, status)
    clock.pass_(1)
    renewed = store.renew(execution, "round-1", lease_seconds=0.5, **HOLDER)

    assert renewed.lease == before.lease.model_copy(update={"expires_at": START + dt.timedelta(seconds=1.5)})
    assert (renewed.status, renewed.updated_at) == (status, clock.now)
    assert renewed == store.get_round(execution, "round-1")


@pytest.mark.parametrize("status", ["delivered", "resolved", "failed"])
def test_what_has_been_delivered_or_has_ended_is_not_renewed(
    store: DjangoManagedInputStore, execution: str, status: str
) -> None:
    """C29; a stale owner is told first that it is stale (C28)."""
    before = brought_to(store, execution, status)

    with pytest.raises(ManagedInputStateError):
        store.renew(execution, "round-1", lease_seconds=LEASE, **HOLDER)
    with pytest.raises(ManagedInputConflict):
        store.renew(execution, "round-1", lease_seconds=LEASE, owner_id="worker-2", lease_token="token-1")
    assert store.get_round(execution, "round-1") == before


@pytest.mark.parametrize("lease_seconds", [0, -1, None, True, "1", float("nan"), 1e15])
def test_a_lease_lasts_for_a_number_of_seconds(
    store: DjangoManagedInputStore, execution: str, lease_seconds: Any
) -> None:
    opened(store, execution)

    with pytest.raises(ManagedInputValidationError):
        store.renew(execution, "round-1", lease_seconds=lease_seconds, **HOLDER)


def test_the_clock_has_a_time_zone(store: DjangoManagedInputStore, execution: str, clock: Clock) -> None:
    """C47."""
    with pytest.raises(ValueError, match="time zone"):
        DjangoManagedInputStore(clock=lambda: dt.datetime(2026, 1, 1))

    before = opened(store, execution)
    clock.now = clock.now.replace(tzinfo=None)
    with pytest.raises(ManagedInputValidationError, match="time zone"):
        submitted(store, execution)
    assert store.get_round(execution, "round-1") == before


def test_without_a_clock_it_is_now_in_utc(db: None, execution: str) -> None:
    """C47."""
    before = dt.datetime.now(dt.UTC)
    record = opened(DjangoManagedInputStore(), execution)

    assert before <= record.created_at <= dt.datetime.now(dt.UTC)
