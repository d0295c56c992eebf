"""Every call, in every status, by the holder and by others, before and at the end of the lease."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count, product
from typing import Any

import pytest

from tests.differential.both import Both
from tests.differential.rounds import GOOD, HOLDER, LEASE, STATUSES, bring_to, response

CALLERS: dict[str, dict[str, str]] = {
    "the holder": HOLDER,
    "another owner": {**HOLDER, "owner_id": "worker-2"},
    "an owner with another token": {**HOLDER, "lease_token": "lease-2"},
    "nobody": {**HOLDER, "owner_id": ""},
    "an owner without a token": {**HOLDER, "lease_token": ""},
}
OTHER = {"address": response("decline")}


def calls() -> list[tuple[str, Callable[[dict[str, str]], dict[str, Any]]]]:
    """(method, arguments for a caller) of everything that may be tried on a round."""

    def by_holder(**arguments: Any) -> Callable[[dict[str, str]], dict[str, Any]]:
        return lambda caller: {**caller, **arguments}

    def by_token(**arguments: Any) -> Callable[[dict[str, str]], dict[str, Any]]:
        return lambda caller: {"expected_lease_token": caller["lease_token"], **arguments}

    submitted: list[tuple[Any, str]] = [
        (GOOD, "key-1"),
        (GOOD, "key-2"),
        (OTHER, "key-1"),
        ({}, "key-1"),
        ([], "key-1"),
    ]
    claimed = product(["not_started", "not_delivered", "delivered", None, "hearsay"], [True, False])
    return [
        *(
            ("submit_responses", by_holder(responses=given, response_idempotency_key=key))
            for given, key in submitted
        ),
        *((step, by_holder()) for step in ("start_delivery", "mark_delivered", "resolve")),
        ("renew", by_holder(lease_seconds=5)),
        ("fail", by_holder(code="stopped", message="Stopped.")),
        ("fail", by_holder(code="stopped", message="Stopped for good.")),
        ("fail", by_holder(code="recovery_unavailable", message="Lost.")),
        ("fail_recovery", by_token(message="Lost.")),
        ("fail_recovery", by_token(message="Gone.")),
        (
            "claim_round",
            by_token(
                owner_id="worker-3", lease_seconds=5, expected_lease_token=None, delivery_state="not_started"
            ),
        ),
        *(
            (
                "claim_round",
                by_token(
                    owner_id="worker-3", lease_seconds=5, delivery_state=state, idempotent_delivery=proof
                ),
            )
            for state, proof in claimed
        ),
    ]


@pytest.mark.parametrize("expired", [False, True], ids=["live", "expired"])
@pytest.mark.parametrize("status", STATUSES)
def test_every_call_in_every_status_gets_the_same_answer(
    both: Both, executions: Callable[[], str], status: str, expired: bool
) -> None:
    numbers = count(1)
    at: dict[str, str] = {}
    for (name, arguments), caller in product(calls(), CALLERS.values()):
        if not at:
            execution = executions()
            at = {"execution_id": execution, "round_id": f"round-{next(numbers)}-{execution}"}
            bring_to(both, status, **at)
            if expired:
                both.advance(LEASE)
        before = both.call("get_round", **at)
        both.call(name, **at, **arguments(caller))
        if both.call("get_round", **at) != before:
            at = {}


@pytest.mark.parametrize("name", ["get_round", "redacted_responses"])
def test_reading_what_is_not_there(both: Both, executions: Callable[[], str], name: str) -> None:
    assert both.call(name, execution_id=executions(), round_id="nothing") == {"ok": None}
    assert both.call("list_rounds", execution_id=executions()) == {"ok": []}


def test_every_call_on_a_round_that_is_not_there(both: Both, executions: Callable[[], str]) -> None:
    at = {"execution_id": executions(), "round_id": "nothing"}
    for name, arguments in calls():
        assert both.call(name, **at, **arguments(HOLDER))["error"] == "ManagedInputConflict"
