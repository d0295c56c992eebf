"""What generated calls are made of. Whatever both sides judge alike; see `deviations` for the rest."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from hypothesis import strategies as st

from tests.differential.both import START
from tests.differential.rounds import GOOD, form, response

LIMIT = 6

owners = st.sampled_from(["worker-1", "worker-2"])
seconds = st.sampled_from([60, 60, 5, 0.5])
mostly = st.sampled_from([True] * 5 + [False])
payloads = st.sampled_from(
    [
        GOOD,
        {"address": response(content={"parcels": 2.0})},
        {"address": response(content={"parcels": 3, "note": "fragile"})},
        {"address": response("decline")},
        {"address": response("cancel", meta={"why": "closed"})},
    ]
)
two_payloads = st.fixed_dictionaries(
    {
        "address": payloads.map(lambda answers: answers["address"]),
        "consent": st.sampled_from([response(), response("decline"), response("cancel")]),
    }
)
refused_payloads = st.sampled_from(
    [
        {},
        [],
        None,
        {"elsewhere": response("decline")},
        {**GOOD, "elsewhere": response("decline")},
        {"address": {"action": "accept", "content": {"parcels": 2}}},
        {"address": response(content={"parcels": "two"})},
        {"address": response(content={})},
        {"address": response()},
        {"address": response(content={"parcels": 2}), "consent": response(content={})},
    ]
)
evidence = st.sampled_from(["not_started", "not_delivered", "delivered", None, "hearsay"])
FITTING = {
    "pending": {"delivery_state": "not_started"},
    "response_validated": {"delivery_state": "not_delivered", "idempotent_delivery": True},
    "delivery_started": {"delivery_state": "not_delivered", "idempotent_delivery": True},
    "delivered": {"delivery_state": "delivered"},
}
EVERYTHING: dict[str, Any] = {
    "request_state": "",
    "deadline": (START + timedelta(seconds=30)).isoformat(),
    "harness_session_id": "session-1",
    "native_resume_token": "resume-1",
    "delivery_idempotency_key": "delivery-1",
    "session_id": "thread-1",
    "turn_id": "turn-1",
    "operation_parameters": {"parcels": {"count": 2.5, "fragile": True, "to": None}},
}
CHANGES: list[dict[str, Any]] = [
    {"lease_seconds": 7},
    {"operation_parameters": {}},
    {"operation_parameters": {"parcels": 1}},
    {"owner_id": "worker-3"},
    {"lease_token": "lease-3"},
    {"lease_token": None},
    {"round_limit": LIMIT + 1},
    {"session_id": "thread-2"},
    {"turn_id": "turn-2"},
    {"harness_session_id": "session-2"},
    {"native_resume_token": "resume-2"},
    {"delivery_idempotency_key": "delivery-2"},
    {"pending": {"request_state": "opaque"}},
    {"pending": {"deadline": (START + timedelta(seconds=31)).isoformat()}},
    {"pending": {"created_at": (START + timedelta(seconds=1)).isoformat()}},
    {"pending": {"server": "returns"}},
    {"pending": {"operation_name": "cancel_shipment"}},
    {"pending": {"operation_kind": "prompt"}},
    {"pending": {"requests": {"address": form(message="How many parcels?")}}},
]


def operation(index: int) -> str:
    """The operation that rounds of this index belong to; each has several."""
    return f"book-{index % 3}"
