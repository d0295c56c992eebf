"""The values of managed input: what they take, what they refuse, and that nobody changes them afterwards."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest

from runs.managed_input import (
    ElicitationResponse,
    FormElicitationRequest,
    ManagedInputLease,
    ManagedInputRecord,
    ManagedInputStatus,
    PendingElicitationRound,
    UrlElicitationRequest,
)

NOW = dt.datetime(2026, 3, 1, tzinfo=dt.UTC)
FORM = {"request_key": "address", "message": "Where to?", "requested_schema": {"type": "object"}}
LINK = {"request_key": "pay", "message": "Pay", "url": "https://pay.example"}
ROUND = {
    "round_id": "r",
    "execution_id": "e",
    "logical_operation_id": "o",
    "server": "shipping",
    "operation_kind": "tool",
    "operation_name": "book",
    "requests": {"address": {"mode": "form", **FORM}, "pay": {"mode": "url", **LINK}},
    "created_at": NOW,
}
LEASE = {"owner_id": "w", "lease_token": "t", "expires_at": NOW}
RECORD = {
    "pending": ROUND,
    "round_index": 0,
    "round_limit": 1,
    "status": "pending",
    "lease": LEASE,
    "created_at": NOW,
    "updated_at": NOW,
}
VALUES: list[tuple[type[Any], dict[str, Any]]] = [
    (FormElicitationRequest, FORM),
    (UrlElicitationRequest, LINK),
    (ElicitationResponse, {"action": "accept", "content": {"a": [1]}}),
    (PendingElicitationRound, ROUND),
    (ManagedInputLease, LEASE),
    (ManagedInputRecord, RECORD),
]


@pytest.mark.parametrize(("kind", "fields"), VALUES)
def test_values_are_frozen_and_refuse_what_they_do_not_know(kind: type[Any], fields: dict[str, Any]) -> None:
    value = kind(**fields)

    with pytest.raises(ValueError, match="frozen"):
        setattr(value, next(iter(fields)), "other")
    with pytest.raises(ValueError, match="Extra inputs"):
        kind(**fields, unknown=1)
    assert kind(**fields) == value


def test_requests_know_their_mode() -> None:
    asked = PendingElicitationRound(**ROUND)

    assert asked.requests == {"address": FormElicitationRequest(**FORM), "pay": UrlElicitationRequest(**LINK)}
    assert [request.mode for request in asked.requests.values()] == ["form", "url"]


def test_what_a_caller_changes_later_changes_no_value() -> None:
    content: dict[str, Any] = {"tags": ["a"]}
    response = ElicitationResponse(action="accept", content=content)
    content["tags"].append("b")

    assert response.content == {"tags": ["a"]}


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        (FormElicitationRequest, {**FORM, "request_key": ""}),
        (FormElicitationRequest, {**FORM, "requested_schema": None}),
        (FormElicitationRequest, {**FORM, "requested_schema": {"default": float("nan")}}),
        (FormElicitationRequest, {**FORM, "mode": "url"}),
        (FormElicitationRequest, {**FORM, "operation_kind": "completion"}),
        (FormElicitationRequest, {**FORM, "meta": {1: "a key that is no text"}}),
        (UrlElicitationRequest, {**LINK, "url": None}),
        (PendingElicitationRound, {**ROUND, "requests": {}}),
        (PendingElicitationRound, {**ROUND, "requests": {"address": {"mode": "url", **LINK}}}),
        (PendingElicitationRound, {**ROUND, "round_id": ""}),
        (PendingElicitationRound, {**ROUND, "round_id": "a\0b"}),
        (PendingElicitationRound, {**ROUND, "server": ""}),
        (PendingElicitationRound, {**ROUND, "operation_kind": "completion"}),
        (PendingElicitationRound, {**ROUND, "request_state": 7}),
        (PendingElicitationRound, {**ROUND, "created_at": NOW.replace(tzinfo=None)}),
        (PendingElicitationRound, {**ROUND, "deadline": NOW.replace(tzinfo=None)}),
        (ManagedInputLease, {**LEASE, "owner_id": ""}),
        (ManagedInputRecord, {**RECORD, "round_index": 1}),
        (ManagedInputRecord, {**RECORD, "round_index": -1}),
        (ManagedInputRecord, {**RECORD, "status": "open"}),
        (ManagedInputRecord, {**RECORD, "delivery_attempts": -1}),
    ],
    ids=str,
)
def test_what_breaks_a_rule_is_no_value(kind: type[Any], fields: dict[str, Any]) -> None:
    """C9, C10, C47."""
    with pytest.raises(ValueError, match="validation error"):
        kind(**fields)


@pytest.mark.parametrize(
    "fields",
    [
        {"action": "approve"},
        {"content": {}},
        {"action": "decline", "content": {}},
        {"action": "cancel", "content": {"a": 1}},
        {"action": "accept", "content": []},
        {"action": "accept", "content": {"a": float("inf")}},
        {"action": "accept", "content": {"a": len}},
        {"action": "accept", "content": {"a": "half a character \ud800"}},
        {"action": "accept", "meta": "text"},
    ],
    ids=ascii,
)
def test_what_is_no_answer_is_refused(fields: dict[str, Any]) -> None:
    """C14, C16."""
    with pytest.raises(ValueError, match="validation error"):
        ElicitationResponse(**fields)


def test_declining_may_say_that_it_has_no_content() -> None:
    """C16."""
    assert ElicitationResponse(action="decline", content=None) == ElicitationResponse(action="decline")


def test_the_six_words_of_a_status_compare_as_text() -> None:
    words = ["pending", "response_validated", "delivery_started", "delivered", "resolved", "failed"]

    assert list(ManagedInputStatus) == words
    assert ManagedInputRecord(**RECORD).status == "pending"
