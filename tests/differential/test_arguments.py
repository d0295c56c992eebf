"""What is no argument at all is refused alike, whatever else would be wrong with the call."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any

import pytest

from tests.differential.both import Both
from tests.differential.choices import CHANGES, EVERYTHING
from tests.differential.rounds import GOOD, HOLDER, bring_to, creation

INVALID = {"error": "ManagedInputValidationError", "code": "managed_input_invalid"}
NAMES = ["", None, 5]
LENGTHS = [0, -1, -0.5, True, None, "5"]
TEXTS = ("harness_session_id", "native_resume_token", "delivery_idempotency_key", "session_id", "turn_id")
BAD_CREATIONS: list[dict[str, Any]] = [
    *({"round_index": index} for index in (-1, 10, 11, True, 0.0, "0", None)),
    *({"round_limit": limit} for limit in (0, -1, True, 10.0, "10", None)),
    *({"owner_id": owner} for owner in NAMES),
    *({"lease_token": token} for token in ("", 5)),
    *({"lease_seconds": length} for length in LENGTHS),
    *({name: ""} for name in TEXTS),
    *({name: 5} for name in TEXTS),
    {"pending": None},
    {"operation_parameters": {"parcels": float("nan")}},
]
HELD = {"owner_id": NAMES, "lease_token": NAMES}
ADDRESSED = {"execution_id": NAMES, "round_id": NAMES}
BAD: dict[str, tuple[dict[str, Any], dict[str, list[Any]]]] = {
    "get_round": ({}, ADDRESSED),
    "redacted_responses": ({}, ADDRESSED),
    "claim_round": (
        {
            "owner_id": "worker-1",
            "lease_seconds": 5,
            "expected_lease_token": "lease-1",
            "delivery_state": "not_started",
        },
        {**ADDRESSED, "owner_id": NAMES, "lease_seconds": LENGTHS, "expected_lease_token": ["", 5]},
    ),
    "renew": ({**HOLDER, "lease_seconds": 5}, {**ADDRESSED, **HELD, "lease_seconds": LENGTHS}),
    "submit_responses": (
        {**HOLDER, "responses": GOOD, "response_idempotency_key": "key-1"},
        {**ADDRESSED, **HELD, "response_idempotency_key": NAMES},
    ),
    "start_delivery": (HOLDER, {**ADDRESSED, **HELD}),
    "mark_delivered": (HOLDER, {**ADDRESSED, **HELD}),
    "resolve": (HOLDER, {**ADDRESSED, **HELD}),
    "fail": (
        {**HOLDER, "code": "stopped", "message": "Stopped."},
        {**ADDRESSED, **HELD, "code": NAMES, "message": NAMES},
    ),
    "fail_recovery": (
        {"expected_lease_token": "lease-1", "message": "Lost."},
        {**ADDRESSED, "expected_lease_token": NAMES, "message": NAMES},
    ),
}


def test_a_round_is_not_created_from_bad_arguments(both: Both, executions: Callable[[], str]) -> None:
    execution = executions()
    for bad in BAD_CREATIONS:
        assert both.call("create_round", **{**creation(execution, f"round-{execution}"), **bad}) == INVALID, (
            bad
        )
    assert both.call("list_rounds", execution_id=execution) == {"ok": []}


@pytest.mark.parametrize("name", BAD)
def test_bad_arguments_are_refused_before_the_round_is_looked_at(
    both: Both, executions: Callable[[], str], name: str
) -> None:
    """Except some owners and tokens: of a round that is not there this is said first."""
    execution = executions()
    at = {"execution_id": execution, "round_id": f"round-{execution}"}
    bring_to(both, "pending", **at)
    good, bad = BAD[name]
    for where in (at, {"execution_id": execution, "round_id": "nothing"}):
        for argument, values in bad.items():
            for value in values:
                answer = both.call(name, **{**where, **good, argument: value})
                assert answer == INVALID or (where is not at and argument in HELD), (argument, value)


@pytest.mark.parametrize("execution", NAMES)
def test_rounds_are_listed_of_a_named_execution(both: Both, execution: Any) -> None:
    assert both.call("list_rounds", execution_id=execution) == INVALID


def test_every_optional_text_and_number_is_kept(both: Both, executions: Callable[[], str]) -> None:
    numbers = count(1)
    execution = executions()
    for changes in ({}, EVERYTHING, *({name: value} for name, value in EVERYTHING.items())):
        number = next(numbers)
        arguments = creation(
            execution,
            f"round-{number}-{execution}",
            logical_operation_id=f"book-{number}",
            round_index=number,
            round_limit=number + 1,
            **changes,
        )
        created = both.call("create_round", **arguments)["ok"]
        assert both.call("create_round", **arguments)["ok"] == created


def test_a_creation_is_told_from_another(both: Both, executions: Callable[[], str]) -> None:
    execution = executions()
    first = creation(execution, f"round-{execution}", **EVERYTHING)
    created = both.call("create_round", **first)["ok"]
    for change in [{}, *CHANGES, *({name: None} for name in TEXTS)]:
        again = {**first, **change, "pending": {**first["pending"], **change.get("pending", {})}}
        answer = both.call("create_round", **again)
        assert answer.get("ok") == created or answer["error"] == "ManagedInputConflict"
        assert ("ok" in answer) == (change in ({}, {"lease_seconds": 7})), change
