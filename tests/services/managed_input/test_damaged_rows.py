"""Rows that somebody damaged are reported as such, by whatever reads them (C46)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection

from runs.managed_input import DjangoManagedInputStore, ManagedInputValidationError
from tests.services.managed_input.samples import ACCEPTED, HOLDER, LEASE, opened, submitted

DAMAGE = {
    "requests": ["{not json", "[]", "{}", '{"address": {"mode": "form"}}', '{"address": null}'],
    "responses": ["{not json", "7", '{"address": {"action": "approve"}}', '{"address": []}'],
    "operation_parameters": ["[", "[1]"],
    "status": ["open"],
    "created_at": ["yesterday"],
    "lease_expires_at": ["yesterday"],
    "server_name": [""],
    "round_index": [10],
}
"""What was put into which column."""

CALLS: dict[str, Callable[[DjangoManagedInputStore, str], Any]] = {
    "get": lambda store, execution: store.get_round(execution, "round-1"),
    "list": lambda store, execution: store.list_rounds(execution),
    "redact": lambda store, execution: store.redacted_responses(execution, "round-1"),
    "submit": lambda store, execution: submitted(store, execution, responses=ACCEPTED),
    "start": lambda store, execution: store.start_delivery(execution, "round-1", **HOLDER),
    "renew": lambda store, execution: store.renew(execution, "round-1", lease_seconds=LEASE, **HOLDER),
    "fail": lambda store, execution: store.fail(execution, "round-1", code="c", message="m", **HOLDER),
    "claim": lambda store, execution: store.claim_round(
        execution, "round-1", owner_id="w", lease_seconds=LEASE
    ),
    "recover": lambda store, execution: store.fail_recovery(
        execution, "round-1", expected_lease_token="t", message="m"
    ),
}


@pytest.mark.skipif(connection.vendor != "sqlite", reason="PostgreSQL keeps such values out of its columns")
@pytest.mark.parametrize(
    ("column", "value"), [(column, value) for column, values in DAMAGE.items() for value in values]
)
def test_a_damaged_row_is_refused_by_every_call(
    store: DjangoManagedInputStore, execution: str, column: str, value: Any
) -> None:
    opened(store, execution)
    submitted(store, execution)
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA ignore_check_constraints = ON")
        cursor.execute(f"UPDATE runs_round SET {column} = %s", [value])
        cursor.execute("PRAGMA ignore_check_constraints = OFF")

    for call in CALLS.values():
        with pytest.raises(ManagedInputValidationError, match="damaged"):
            call(store, execution)
