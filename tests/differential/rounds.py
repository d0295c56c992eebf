"""Rounds, requests and answers to make calls with, and how to bring a round into a status."""

from __future__ import annotations

from typing import Any

from tests.differential.both import START, Both

OWNER, TOKEN, LEASE = "worker-1", "lease-1", 60
HOLDER = {"owner_id": OWNER, "lease_token": TOKEN}
STATUSES = ("pending", "response_validated", "delivery_started", "delivered", "resolved", "failed", "lost")
"""The statuses of the contract; "lost" is failed with recovery_unavailable."""
DELIVERY = ("start_delivery", "mark_delivered", "resolve")

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"parcels": {"type": "integer", "minimum": 1}},
    "required": ["parcels"],
}


def form(key: str = "address", schema: dict[str, Any] | None = None, **fields: Any) -> dict[str, Any]:
    request = {
        "request_key": key,
        "message": "How many?",
        "requested_schema": SCHEMA if schema is None else schema,
    }
    return {"FormElicitationRequest": {**request, **fields}}


def page(key: str = "consent", **fields: Any) -> dict[str, Any]:
    request = {"request_key": key, "message": "Agree here.", "url": "https://shop.example/agree"}
    return {"UrlElicitationRequest": {**request, **fields}}


def response(action: str = "accept", **fields: Any) -> dict[str, Any]:
    return {"ElicitationResponse": {"action": action, **fields}}


GOOD = {"address": response(content={"parcels": 2})}


def pending(execution_id: str, round_id: str, **fields: Any) -> dict[str, Any]:
    return {
        "round_id": round_id,
        "execution_id": execution_id,
        "logical_operation_id": "book",
        "server": "shipping",
        "operation_kind": "tool",
        "operation_name": "book_shipment",
        "requests": {"address": form()},
        "created_at": START.isoformat(),
        **fields,
    }


def creation(execution_id: str, round_id: str, **changes: Any) -> dict[str, Any]:
    """Arguments of create_round; what `pending` has no field for goes to the method."""
    method = {"round_index": 0, "round_limit": 10, "lease_seconds": LEASE, **HOLDER}
    method.update({name: changes.pop(name) for name in [*changes] if name in METHOD_ARGUMENTS})
    return {"pending": pending(execution_id, round_id, **changes), **method}


METHOD_ARGUMENTS = frozenset(
    {
        "round_index",
        "round_limit",
        "owner_id",
        "lease_seconds",
        "lease_token",
        "harness_session_id",
        "native_resume_token",
        "delivery_idempotency_key",
        "session_id",
        "turn_id",
        "operation_parameters",
    }
)


def bring_to(both: Both, status: str, execution_id: str, round_id: str) -> None:
    """Create a round and take it to `status`, held by HOLDER with a lease that has just begun."""
    at = {"execution_id": execution_id, "round_id": round_id}
    both.call("create_round", **creation(execution_id, round_id))
    if status == "pending":
        return
    if status == "failed":
        both.call("fail", **at, **HOLDER, code="stopped", message="Stopped.")
        return
    if status == "lost":
        both.advance(LEASE)
        both.call("fail_recovery", **at, expected_lease_token=TOKEN, message="Lost.")
        return
    both.call("submit_responses", **at, **HOLDER, responses=GOOD, response_idempotency_key="key-1")
    for step in DELIVERY[: STATUSES.index(status) - 1]:
        both.call(step, **at, **HOLDER)
