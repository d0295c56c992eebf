"""What a card's form may say, and what it may not: only what the card showed and offered."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from approvals.models import Policy
from runs import control
from runs.canonical import digest
from runs.models import Round, User
from runs.run_states import Outcome
from runs.turns import finish


@pytest.mark.parametrize("value", ["user:99999", "user:abc", "user:-5", "user:1", "run:5", "everybody"])
def test_a_way_to_remember_that_was_not_offered_saves_and_decides_nothing(
    client_for: Callable[[User], Client], alice: User, make_round: Callable[..., Round], value: str
) -> None:
    round_ = make_round()
    posted = {"decision": "allow", "remember": value, "digest": round_.shown_digest, "idempotency_key": "k"}
    response = client_for(alice).post(f"/rounds/{round_.pk}/decide", posted)
    assert response.status_code == 422
    round_.refresh_from_db()
    assert round_.status == "pending"
    assert not Policy.objects.exists()


def test_a_part_of_an_answer_needs_the_digest_of_what_was_shown(
    client_for: Callable[[User], Client], alice: User, make_round: Callable[..., Round]
) -> None:
    schema = {"type": "object", "properties": {"name": {"type": "string"}}}
    requests = {
        key: {"request_key": key, "mode": "form", "message": "Who?", "requested_schema": schema}
        for key in "ab"
    }
    round_ = make_round("elicitation", requests=requests)
    round_.shown_digest = digest(requests)
    round_.save()
    posted: dict[str, Any] = {"answer": "0:decline", "idempotency_key": "k", "digest": "sha256:other"}
    client = client_for(alice)
    assert client.post(f"/rounds/{round_.pk}/decide", posted).status_code == 409
    client.post(f"/rounds/{round_.pk}/decide", {**posted, "digest": round_.shown_digest})
    round_.refresh_from_db()
    assert round_.drafts == {"a": {"action": "decline"}}


@pytest.mark.parametrize(
    "request_",
    [
        {"mode": "url", "url": "javascript:alert(1)"},
        {
            "mode": "form",
            "requested_schema": {"type": "object", "properties": {"a": {"$ref": "https://x.example/s"}}},
        },
    ],
    ids=["a page that cannot be opened", "a form that cannot be shown"],
)
def test_what_cannot_be_shown_cannot_be_accepted(
    client_for: Callable[[User], Client],
    alice: User,
    make_round: Callable[..., Round],
    request_: dict[str, Any],
) -> None:
    round_ = make_round("elicitation", requests={"a": {"request_key": "a", "message": "Please", **request_}})
    page = client_for(alice).get(f"/rounds/{round_.pk}/").content.decode()
    assert 'value="0:accept"' not in page
    assert 'value="0:decline"' in page


def test_a_run_that_goes_on_after_its_end_carries_no_old_error(
    make_round: Callable[..., Round], alice: User
) -> None:
    run = make_round().run
    finish(run, run.turns.get(), Outcome.CANCELLED, error="The run was cancelled.", error_code="cancelled")
    assert run.error_code == "cancelled"
    control.reply(run.pk, "go on", user=alice)
    run.refresh_from_db()
    assert (run.status, run.error, run.error_code) == ("queued", None, None)


def test_a_form_with_too_many_fields_gets_a_page_of_ours(
    client_for: Callable[[User], Client], alice: User
) -> None:
    client = client_for(alice)
    response = client.post("/runs/start", {f"f{number}": "x" for number in range(2_500)})
    assert response.status_code == 400
    assert "Nothing was stored." in response.content.decode()
