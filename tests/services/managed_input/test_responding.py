"""Answering through the store: what is checked, in which order, and what the answer sets going."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.db.models import F

from runs import control, rounds
from runs.managed_input import (
    DjangoManagedInputStore,
    ElicitationResponse,
    ManagedInputConflict,
    ManagedInputStateError,
    ManagedInputValidationError,
)
from runs.models import Event, Round, Run, Turn, User
from runs.round_rows import Decider
from tests.services.managed_input.samples import (
    ACCEPTED,
    DECLINED,
    HOLDER,
    LEASE,
    Clock,
    brought_to,
    form,
    link,
    opened,
    submitted,
)

TurnNow = Callable[[], Turn]


def accept(**content: Any) -> dict[str, ElicitationResponse]:
    return {"address": ElicitationResponse(action="accept", content=content)}


def test_an_accepted_answer_is_stored_and_its_turn_goes_on(
    store: DjangoManagedInputStore, execution: str, clock: Clock, turn_now: TurnNow
) -> None:
    """C19, C39."""
    opened(store, execution)
    clock.pass_(5)
    record = submitted(store, execution)

    assert record == store.get_round(execution, "round-1")
    assert (record.status, record.responses, record.response_idempotency_key) == (
        "response_validated",
        ACCEPTED,
        "k",
    )
    assert (record.response_validated_at, record.updated_at) == (clock.now, clock.now)
    assert record.lease == opened(store, execution).lease
    assert turn_now().status == "running_turn"


def test_a_turn_waits_until_its_last_round_is_answered(
    store: DjangoManagedInputStore, execution: str, turn_now: TurnNow
) -> None:
    """C39."""
    opened(store, execution)
    opened(store, execution, "round-2", logical_operation_id="other")
    submitted(store, execution)
    assert turn_now().status == "waiting_for_input"

    submitted(store, execution, "round-2")
    assert turn_now().status == "running_turn"


def test_the_answer_makes_the_run_due(store: DjangoManagedInputStore, execution: str, run: Run) -> None:
    """C27: whatever process a worker lives in, the row tells it."""
    opened(store, execution)
    Run.objects.filter(pk=run.pk).update(seen_seq=F("wake_seq"))
    submitted(store, execution)

    after = Run.objects.get(pk=run.pk)
    assert after.wake_seq == after.seen_seq + 1


@pytest.mark.parametrize(
    "changed",
    [
        {"response_idempotency_key": ""},
        {"response_idempotency_key": None},
        {"response_idempotency_key": "k" * 201},
        {"owner_id": ""},
        {"lease_token": ""},
    ],
    ids=str,
)
def test_an_answer_needs_names_that_are_not_empty(
    store: DjangoManagedInputStore, execution: str, changed: dict[str, Any]
) -> None:
    """C12."""
    before = opened(store, execution)

    with pytest.raises(ManagedInputValidationError):
        submitted(store, execution, **changed)
    with pytest.raises(ManagedInputValidationError):
        submitted(store, execution, "")
    assert store.get_round(execution, "round-1") == before


@pytest.mark.parametrize(
    "responses",
    [
        {},
        {**ACCEPTED, "extra": ElicitationResponse(action="decline")},
        {"Address": ACCEPTED["address"]},
        {"address": {"action": "accept", "content": {"street": "x"}}},
        {"address": None},
        {1: ACCEPTED["address"]},
        [ACCEPTED["address"]],
        None,
        accept(),
        accept(street=""),
        accept(street=7),
        accept(street="x", floor=1.5),
        {"address": ElicitationResponse(action="accept")},
    ],
    ids=str,
)
def test_what_does_not_answer_the_round_is_refused_and_the_round_stays_pending(
    store: DjangoManagedInputStore, execution: str, responses: Any
) -> None:
    """C13, C14, C15, C19."""
    before = opened(store, execution)

    with pytest.raises(ManagedInputValidationError):
        submitted(store, execution, responses=responses)
    assert store.get_round(execution, "round-1") == before
    assert submitted(store, execution).status == "response_validated"


def test_an_empty_form_is_an_answer_where_the_schema_allows_it_and_no_form_is_none(
    store: DjangoManagedInputStore, execution: str
) -> None:
    """C15."""
    opened(store, execution, requests={"address": form(schema={})})

    with pytest.raises(ManagedInputValidationError):
        submitted(store, execution, responses={"address": ElicitationResponse(action="accept")})
    assert submitted(store, execution, responses=accept()).responses == accept()


@pytest.mark.parametrize("action", ["decline", "cancel"])
def test_declining_asks_no_schema(store: DjangoManagedInputStore, execution: str, action: Any) -> None:
    """C16: not even one that could not be used."""
    opened(store, execution, requests={"address": form(schema={"type": "nonsense"})})
    response = ElicitationResponse(action=action)

    assert submitted(store, execution, responses={"address": response}).responses == {"address": response}


def test_agreeing_to_a_page_carries_no_content(store: DjangoManagedInputStore, execution: str) -> None:
    """C17."""
    opened(store, execution, requests={"pay": link()})

    with pytest.raises(ManagedInputValidationError):
        submitted(store, execution, responses={"pay": ElicitationResponse(action="accept", content={})})
    agreed = {"pay": ElicitationResponse(action="accept")}
    assert submitted(store, execution, responses=agreed).responses == agreed


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "nonsense"},
        {"properties": {"street": {"pattern": "("}}},
        {"$ref": "https://schemas.example/address.json"},
        {"$ref": "#/$defs/missing"},
    ],
    ids=str,
)
def test_a_schema_that_cannot_be_used_refuses_every_content(
    store: DjangoManagedInputStore, execution: str, schema: dict[str, Any]
) -> None:
    """C18: and nothing is fetched, which tests/core/test_schema_check.py shows."""
    opened(store, execution, requests={"address": form(schema=schema)})

    with pytest.raises(ManagedInputValidationError):
        submitted(store, execution)


def test_references_inside_a_schema_and_whole_floats_work(
    store: DjangoManagedInputStore, execution: str
) -> None:
    """C18."""
    schema = {"$defs": {"n": {"type": "integer"}}, "properties": {"floor": {"$ref": "#/$defs/n"}}}
    opened(store, execution, requests={"address": form(schema=schema)})

    assert submitted(store, execution, responses=accept(floor=1.0, extra=[])).status == "response_validated"


def test_the_same_answer_again_is_the_same_record(
    store: DjangoManagedInputStore, execution: str, clock: Clock
) -> None:
    """C20: after expiry too, and after the round is resolved; the order of keys does not matter."""
    opened(store, execution)
    first = submitted(store, execution, responses=accept(street="x", floor=1))
    clock.pass_(1)
    assert submitted(store, execution, responses=accept(floor=1, street="x")) == first

    for step in ("start_delivery", "mark_delivered", "resolve"):
        getattr(store, step)(execution, "round-1", **HOLDER)
    clock.pass_(LEASE)
    again = submitted(store, execution, responses=accept(street="x", floor=1))
    assert (again.status, again.responses) == ("resolved", first.responses)


@pytest.mark.parametrize(
    "changed",
    [
        {"responses": accept(street="y", floor=1)},
        {"responses": accept(street="x", floor=1.0)},
        {"responses": DECLINED},
        {"response_idempotency_key": "other"},
        {
            "responses": {
                "address": ElicitationResponse(action="accept", content={"street": "x", "floor": 1}, meta={})
            }
        },
    ],
    ids=str,
)
@pytest.mark.parametrize("resolved", [False, True])
def test_another_answer_is_a_conflict(
    store: DjangoManagedInputStore, execution: str, changed: dict[str, Any], resolved: bool
) -> None:
    """C20 (1 is not 1.0), C21, C25."""
    opened(store, execution)
    given = {"responses": accept(street="x", floor=1)}
    stored = submitted(store, execution, **given)
    if resolved:
        for step in ("start_delivery", "mark_delivered", "resolve"):
            stored = getattr(store, step)(execution, "round-1", **HOLDER)

    with pytest.raises(ManagedInputConflict):
        submitted(store, execution, **{**given, **changed})
    assert store.get_round(execution, "round-1") == stored


WRONG_OWNER = {"owner_id": "worker-2"}
WRONG_KEYS = {"responses": {}}
OTHER = {"response_idempotency_key": "other"}


@pytest.mark.parametrize(
    ("status", "expired", "changed", "error"),
    [
        ("missing", False, {"response_idempotency_key": ""}, ManagedInputValidationError),
        ("missing", False, WRONG_KEYS, ManagedInputConflict),
        ("failed", True, {**WRONG_OWNER, **WRONG_KEYS}, ManagedInputStateError),
        ("failed", False, {}, ManagedInputStateError),
        ("pending", False, {**WRONG_OWNER, **WRONG_KEYS}, ManagedInputConflict),
        ("pending", True, WRONG_KEYS, ManagedInputConflict),
        ("pending", False, WRONG_KEYS, ManagedInputValidationError),
        ("response_validated", True, WRONG_KEYS, ManagedInputValidationError),
        ("response_validated", False, WRONG_OWNER, ManagedInputConflict),
        ("resolved", True, {**WRONG_KEYS, **OTHER}, ManagedInputValidationError),
        ("resolved", True, OTHER, ManagedInputConflict),
    ],
)
def test_refusals_come_in_one_order(
    store: DjangoManagedInputStore,
    execution: str,
    clock: Clock,
    status: str,
    expired: bool,
    changed: dict[str, Any],
    error: type[Exception],
) -> None:
    """C22: there, failed, owner and lease (expiry only while pending), keys and schema, idempotency; C24, C25."""
    if status != "missing":
        brought_to(store, execution, status)
    clock.pass_(LEASE if expired else 0)

    with pytest.raises(error) as refused:
        submitted(store, execution, **changed)
    assert type(refused.value) is error


def test_the_deadline_is_no_business_of_the_store(
    store: DjangoManagedInputStore, execution: str, clock: Clock
) -> None:
    """C40: page and API refuse what is late; whoever holds the lease decides for itself."""
    opened(store, execution, deadline=clock.now)
    clock.pass_(1)

    assert submitted(store, execution).status == "response_validated"


def test_a_person_may_answer_what_a_program_asked(
    store: DjangoManagedInputStore, execution: str, clock: Clock, alice: User
) -> None:
    """The page's answer is the store's answer; the program keeps its lease and delivers it."""
    record = opened(store, execution)
    given = {"address": {"action": "accept", "content": {"street": "Main St 1"}}}
    rounds.answer("round-1", given, decider=Decider(user=alice, via="page"), idempotency_key="k")

    answered = store.get_round(execution, "round-1")
    assert answered is not None
    assert (answered.status, answered.responses, answered.lease) == (
        "response_validated",
        ACCEPTED,
        record.lease,
    )
    assert submitted(store, execution).responses == ACCEPTED
    assert store.start_delivery(execution, "round-1", **HOLDER).status == "delivery_started"


def test_a_cancelled_run_takes_no_answer(store: DjangoManagedInputStore, execution: str, run: Run) -> None:
    """C25, C41."""
    opened(store, execution)
    control.cancel(run.pk, decider=Decider(user=None, via="page"))

    with pytest.raises(ManagedInputStateError):
        submitted(store, execution)
    record = store.get_round(execution, "round-1")
    assert record is not None
    assert (record.status, record.failure_code) == ("failed", "cancelled")


def test_asking_and_answering_are_told_in_this_order(
    store: DjangoManagedInputStore, execution: str, run: Run
) -> None:
    """The order of events in the contract; C44: secrets are masked in them."""
    secret = form(schema={"properties": {"password": {"type": "string"}}})
    opened(store, execution, requests={"address": secret})
    submitted(store, execution, responses=accept(password="hunter2"))

    told = list(Event.objects.filter(run=run).order_by("seq"))[-2:]
    assert [event.type for event in told] == ["elicitation.request", "elicitation.response"]
    assert told[1].payload["responses"]["address"]["content"] == {"password": "[redacted]"}
    assert Round.objects.get().responses["address"]["content"] == {"password": "hunter2"}
