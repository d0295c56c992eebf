"""Answers for diagnostics: the secrets in them are masked, and what is stored stays as it is (C45)."""

from __future__ import annotations

from typing import Any

from runs.managed_input import DjangoManagedInputStore, ElicitationResponse
from tests.services.managed_input.samples import form, opened, submitted

CONTENT: dict[str, Any] = {
    "street": "Main St 1",
    "apiKey": "k-1",
    "nested": [{"refresh_token": "t-1", "author": "Ann"}],
    "callback": "https://ann:pw@shop.example/back?city=Pune&access_token=t-2",
}
MASKED = {
    "street": "Main St 1",
    "apiKey": "[redacted]",
    "nested": [{"refresh_token": "[redacted]", "author": "Ann"}],
    "callback": "https://[redacted]@shop.example/back?city=Pune&access_token=[redacted]",
}


def test_there_is_nothing_to_show_before_an_answer(store: DjangoManagedInputStore, execution: str) -> None:
    opened(store, execution)

    assert store.redacted_responses(execution, "round-1") is None
    assert store.redacted_responses(execution, "nothing") is None


def test_secrets_are_masked_in_the_copy_alone(store: DjangoManagedInputStore, execution: str) -> None:
    requests = {"address": form(schema={}), "password": form("password", schema={})}
    responses = {
        "address": ElicitationResponse(action="accept", content=CONTENT, meta={"cookie": "c", "page": 2}),
        "password": ElicitationResponse(action="accept", content={"value": "hunter2"}),
    }
    opened(store, execution, requests=requests)
    stored = submitted(store, execution, responses=responses)

    assert store.redacted_responses(execution, "round-1") == {
        "address": {"action": "accept", "content": MASKED, "meta": {"cookie": "[redacted]", "page": 2}},
        "password": "[redacted]",
    }
    assert store.get_round(execution, "round-1") == stored
    assert stored.responses == responses
