"""Opening a round through the store: what it takes, what it keeps, and what is the same call again."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from typing import Any

import pytest

from runs import control
from runs.managed_input import (
    DjangoManagedInputStore,
    ManagedInputConflict,
    ManagedInputStateError,
    ManagedInputValidationError,
)
from runs.models import Event, Round, Run, Turn
from runs.round_rows import Decider
from tests.services.managed_input.samples import (
    HOLDER,
    LEASE,
    START,
    Clock,
    brought_to,
    form,
    link,
    opened,
    pending,
    submitted,
)

TurnNow = Callable[[], Turn]
METADATA = {
    "harness_session_id": "session-9",
    "native_resume_token": "resume",
    "delivery_idempotency_key": "delivery",
    "session_id": "s",
    "turn_id": "turn-9",
    "operation_parameters": {"weight": 1.0, "to": ["a", None]},
}


def create(store: DjangoManagedInputStore, execution: str, **changed: Any) -> Any:
    given: dict[str, Any] = {
        "pending": pending(execution),
        "round_index": 0,
        "round_limit": 10,
        "lease_seconds": LEASE,
        **HOLDER,
        **METADATA,
        **changed,
    }
    return store.create_round(given.pop("pending"), **given)


def test_a_round_is_kept_as_it_was_given(store: DjangoManagedInputStore, execution: str) -> None:
    asked = pending(
        execution,
        request_state="",
        requests={"address": form(meta={"a": None}, task={"id": 1}, server="x"), "pay": link()},
        created_at=START - dt.timedelta(minutes=1),
        deadline=START + dt.timedelta(hours=1),
    )
    record = create(store, execution, pending=asked)

    assert record == store.get_round(execution, "round-1")
    assert record.pending == asked
    assert list(record.pending.requests["address"].requested_schema["properties"]) == ["street", "floor"]
    assert (record.round_index, record.round_limit, record.status) == (0, 10, "pending")
    assert record.lease.expires_at == START + dt.timedelta(seconds=LEASE)
    assert (record.created_at, record.updated_at, record.delivery_attempts) == (START, START, 0)
    assert {name: getattr(record, name) for name in METADATA} == METADATA
    assert record.responses is None


def test_no_request_state_is_not_an_empty_one(store: DjangoManagedInputStore, execution: str) -> None:
    """The contract's value models: kept verbatim."""
    assert opened(store, execution).pending.request_state is None


def test_what_is_shown_of_a_pause_has_no_lease(store: DjangoManagedInputStore, execution: str) -> None:
    """C8."""
    record = opened(store, execution)
    history = str(
        [event.payload for event in Event.objects.all()] + [e.actor_name for e in Event.objects.all()]
    )

    for secret in HOLDER.values():
        assert secret not in record.pending.model_dump_json()
        assert secret not in history


def test_a_turn_that_asks_has_begun_its_work_and_waits(
    store: DjangoManagedInputStore, execution: str, run: Run, turn_now: TurnNow
) -> None:
    """C39."""
    opened(store, execution)

    assert turn_now().status == "waiting_for_input"
    assert turn_now().started_at is not None
    assert Run.objects.get(pk=run.pk).status == "waiting_for_input"
    assert Event.objects.filter(run=run).last().type == "elicitation.request"  # type: ignore[union-attr]


def test_without_a_token_one_is_made(store: DjangoManagedInputStore, execution: str) -> None:
    first = create(store, execution, lease_token=None)
    second = create(
        store,
        execution,
        pending=pending(execution, "round-2", logical_operation_id="other"),
        lease_token=None,
    )

    assert len(first.lease.lease_token) >= 32
    assert first.lease.lease_token != second.lease.lease_token


@pytest.mark.parametrize(
    ("index", "limit"),
    [(10, 10), (-1, 10), (True, 10), (0.0, 10), (0, 10.0), (0, True), (0, 0), ("0", 10), (0, 2**31)],
)
def test_an_index_is_an_integer_below_its_limit(
    store: DjangoManagedInputStore, execution: str, index: Any, limit: Any
) -> None:
    """C10: and a refused round leaves no row."""
    with pytest.raises(ManagedInputValidationError):
        create(store, execution, round_index=index, round_limit=limit)
    assert not Round.objects.exists()


def test_rounds_of_an_operation_may_leave_gaps_and_never_share_an_index(
    store: DjangoManagedInputStore, execution: str
) -> None:
    """C10."""
    brought_to(store, execution, "resolved")

    assert opened(store, execution, "round-5", index=5).round_index == 5
    with pytest.raises(ManagedInputConflict):
        opened(store, execution, "again", index=0)
    assert [record.round_index for record in store.list_rounds(execution)] == [0, 5]


def test_index_and_open_round_count_within_one_operation(
    store: DjangoManagedInputStore, execution: str
) -> None:
    """C10: within the operation, because a turn may have several calls that ask at once."""
    opened(store, execution)

    assert opened(store, execution, "round-2", logical_operation_id="other").round_index == 0
    with pytest.raises(ManagedInputConflict, match="waits"):
        opened(store, execution, "round-3", index=1)


def test_the_identical_call_again_finds_the_round_in_any_state(
    store: DjangoManagedInputStore, execution: str, clock: Clock, run: Run
) -> None:
    """C11."""
    first = create(store, execution)
    clock.pass_(1)
    assert create(store, execution, lease_seconds=999) == first

    submitted(store, execution)
    clock.pass_(LEASE)
    assert create(store, execution).status == "response_validated"
    control.cancel(run.pk, decider=Decider(user=None, via="page"))
    assert create(store, execution).status == "failed"


@pytest.mark.parametrize(
    "changed",
    [
        {"owner_id": "worker-2"},
        {"lease_token": "token-2"},
        {"lease_token": None},
        {"round_index": 1},
        {"round_limit": 9},
        {"operation_parameters": {"weight": 1, "to": ["a", None]}},
        *({name: "different"} for name in METADATA if name != "operation_parameters"),
        {"turn_id": None},
    ],
    ids=str,
)
def test_the_same_round_opened_differently_is_a_conflict(
    store: DjangoManagedInputStore, execution: str, changed: dict[str, Any]
) -> None:
    """C11: token and all metadata count; 1 and 1.0 are different."""
    first = create(store, execution)

    with pytest.raises(ManagedInputConflict):
        create(store, execution, **changed)
    assert store.list_rounds(execution) == (first,)


@pytest.mark.parametrize(
    "changed",
    [
        {"requests": {"address": form(schema={"type": "object"})}},
        {"created_at": START + dt.timedelta(seconds=1)},
        {"deadline": START},
        {"request_state": ""},
        {"operation_kind": "prompt"},
        {"server": "elsewhere"},
    ],
    ids=str,
)
def test_another_question_under_the_same_id_is_a_conflict(
    store: DjangoManagedInputStore, execution: str, changed: dict[str, Any]
) -> None:
    """C11."""
    opened(store, execution)

    with pytest.raises(ManagedInputConflict):
        opened(store, execution, **changed)


def test_a_round_id_names_one_round_of_all_executions(
    store: DjangoManagedInputStore, execution: str, make_run: Callable[..., Run]
) -> None:
    """C11, and more than it: ids are global here, so that an address of a page needs nothing else."""
    opened(store, execution)
    other = str(make_run("Another").turns.get().pk)

    with pytest.raises(ManagedInputConflict):
        opened(store, other)
    assert store.get_round(other, "round-1") is None


@pytest.mark.parametrize("execution_id", ["nothing", "00000000-0000-0000-0000-000000000000"])
def test_rounds_belong_to_an_execution_that_exists(store: DjangoManagedInputStore, execution_id: str) -> None:
    """C24."""
    with pytest.raises(ManagedInputConflict):
        opened(store, execution_id)
    assert store.get_round(execution_id, "round-1") is None
    assert store.list_rounds(execution_id) == ()


def test_the_id_of_an_execution_has_one_spelling(store: DjangoManagedInputStore, execution: str) -> None:
    opened(store, execution)

    assert store.get_round(execution.upper(), "round-1") is None
    assert store.list_rounds(f"{{{execution}}}") == ()


def test_an_execution_that_has_ended_asks_nothing(
    store: DjangoManagedInputStore, execution: str, run: Run
) -> None:
    """C36: its result stays."""
    control.cancel(run.pk, decider=Decider(user=None, via="page"))

    with pytest.raises(ManagedInputStateError):
        opened(store, execution)
    assert not Round.objects.exists()


@pytest.mark.parametrize(
    "changed",
    [
        {"owner_id": ""},
        {"owner_id": 7},
        {"owner_id": "x" * 81},
        {"owner_id": "a\0b"},
        {"lease_token": ""},
        {"harness_session_id": ""},
        {"turn_id": 5},
        {"lease_seconds": 0},
        {"lease_seconds": True},
        {"lease_seconds": "30"},
        {"lease_seconds": float("nan")},
        {"lease_seconds": float("inf")},
        {"lease_seconds": 1e-9},
        {"lease_seconds": 1e12},
        {"operation_parameters": {"a": float("nan")}},
        {"operation_parameters": []},
        {"pending": {"round_id": "round-1"}},
    ],
    ids=str,
)
def test_what_cannot_be_stored_is_refused(
    store: DjangoManagedInputStore, execution: str, changed: dict[str, Any]
) -> None:
    """C12."""
    with pytest.raises(ManagedInputValidationError):
        create(store, execution, **changed)
    assert not Round.objects.exists()


@pytest.mark.parametrize("round_id", ["a/b", "..", "a:b", "a b", "-a", "a\n", "\u00e4", "x" * 65])
def test_the_id_of_a_round_can_stand_in_an_address(
    store: DjangoManagedInputStore, execution: str, round_id: str
) -> None:
    """Pages and API have it as a part of a path, and before a colon (`round_id:key`)."""
    with pytest.raises(ManagedInputValidationError):
        opened(store, execution, round_id)
    assert opened(store, execution, "Ab9._-").status == "pending"


def test_the_store_sees_elicitations_alone(
    store: DjangoManagedInputStore, run: Run, make_round: Callable[..., Round], execution: str
) -> None:
    """Nobody answers an approval past its own rules by way of a lease (design section 1)."""
    approval = make_round("approval", run=run)
    asked = make_round("elicitation", run=run)

    assert store.get_round(execution, approval.pk) is None
    assert [record.pending.round_id for record in store.list_rounds(execution)] == [asked.pk]
    with pytest.raises(ManagedInputConflict):
        opened(store, execution, approval.pk)
