"""Rounds and answers that the tests of the store share."""

from __future__ import annotations

import datetime as dt
from typing import Any

from runs.managed_input import (
    ElicitationResponse,
    FormElicitationRequest,
    ManagedInputRecord,
    ManagedInputStore,
    PendingElicitationRound,
    UrlElicitationRequest,
)

START = dt.datetime(2026, 3, 1, 12, tzinfo=dt.UTC)
LEASE = 30.0
"""Seconds of the leases in these tests."""

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"street": {"type": "string", "minLength": 1}, "floor": {"type": "integer"}},
    "required": ["street"],
}
ACCEPTED = {"address": ElicitationResponse(action="accept", content={"street": "Main St 1"})}
DECLINED = {"address": ElicitationResponse(action="decline")}
HOLDER = {"owner_id": "worker-1", "lease_token": "token-1"}


class Clock:
    """A clock that stands still until it is told to move."""

    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> dt.datetime:
        return self.now

    def pass_(self, seconds: float) -> None:
        self.now += dt.timedelta(seconds=seconds)


def form(key: str = "address", schema: dict[str, Any] = SCHEMA, **fields: Any) -> FormElicitationRequest:
    return FormElicitationRequest(request_key=key, message="Where to?", requested_schema=schema, **fields)


def link(key: str = "pay") -> UrlElicitationRequest:
    return UrlElicitationRequest(request_key=key, message="Please pay", url="https://pay.example/42")


def pending(execution_id: str, round_id: str = "round-1", **fields: Any) -> PendingElicitationRound:
    given: dict[str, Any] = {
        "logical_operation_id": "book",
        "server": "shipping",
        "operation_kind": "tool",
        "operation_name": "book_shipment",
        "requests": {"address": form()},
        "created_at": START,
        **fields,
    }
    return PendingElicitationRound(round_id=round_id, execution_id=execution_id, **given)


def opened(
    store: ManagedInputStore, execution_id: str, round_id: str = "round-1", *, index: int = 0, **fields: Any
) -> ManagedInputRecord:
    """A new round, held by HOLDER; `fields` are those of the pending round."""
    return store.create_round(
        pending(execution_id, round_id, **fields),
        round_index=index,
        round_limit=10,
        lease_seconds=LEASE,
        **HOLDER,
    )


def submitted(
    store: ManagedInputStore, execution_id: str, round_id: str = "round-1", **changed: Any
) -> ManagedInputRecord:
    """An answer by HOLDER under the key "k", unless `changed` says otherwise."""
    given: dict[str, Any] = {"responses": ACCEPTED, "response_idempotency_key": "k", **HOLDER, **changed}
    return store.submit_responses(execution_id, round_id, given.pop("responses"), **given)


STEPS = ("start_delivery", "mark_delivered", "resolve")


def brought_to(store: ManagedInputStore, execution_id: str, status: str) -> ManagedInputRecord:
    """A round of HOLDER's in this status; "failed" is one that HOLDER failed."""
    record = opened(store, execution_id)
    if status == "failed":
        return store.fail(execution_id, "round-1", code="broken", message="It broke.", **HOLDER)
    if status != "pending":
        record = submitted(store, execution_id)
    for step in STEPS:
        if record.status in (status, "pending"):
            break
        record = getattr(store, step)(execution_id, "round-1", **HOLDER)
    assert record.status == status
    return record


def holder_of(record: ManagedInputRecord) -> dict[str, str]:
    return {"owner_id": record.lease.owner_id, "lease_token": record.lease.lease_token}
