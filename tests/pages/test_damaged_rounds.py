"""A pause whose row was damaged is shown as such and takes nothing else down (C46)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from runs import rounds
from runs.errors import ManagedInputValidationError
from runs.models import Round, Run, User
from runs.round_rows import Decider
from tests.pages.inbox_page import decide, fresh, text

MakeRound = Callable[..., Round]

DAMAGE: dict[str, Any] = {
    "a list": [],
    "nothing": {},
    "no request": {"address": None},
    "no schema": {"address": {"mode": "form"}},
    "no address": {"address": {"mode": "url", "message": "Pay"}},
    "no mode": {"address": {"message": "Where to?", "requested_schema": {}}},
    "a mode of another type": {"address": {"mode": []}},
}


@pytest.fixture
def client(client_for: Callable[[User], Client], alice: User) -> Client:
    return client_for(alice)


@pytest.fixture(params=DAMAGE)
def damaged(request: pytest.FixtureRequest, make_round: MakeRound) -> Round:
    round_ = make_round("elicitation")
    Round.objects.filter(pk=round_.pk).update(requests=DAMAGE[request.param])
    return fresh(round_)


def test_the_list_and_its_neighbours_stay_and_the_row_says_what_it_is(
    client: Client, damaged: Round, make_round: MakeRound
) -> None:
    other = make_round("question")
    page = client.get("/")
    assert page.status_code == 200
    assert "This request cannot be read" in text(page)
    assert f"/rounds/{other.pk}/" in text(page)
    for path in (f"/rounds/{damaged.pk}/row", f"/rounds/{damaged.pk}/card", f"/runs/{damaged.run_id}"):
        assert client.get(path).status_code == 200, path


def test_its_card_offers_nothing_but_the_way_to_its_run(client: Client, damaged: Round) -> None:
    page = client.get(f"/rounds/{damaged.pk}/card")
    assert "was damaged" in text(page)
    assert f"/runs/{damaged.run_id}" in text(page)
    assert "/decide" not in text(page)
    assert page.context["card"].controls is False

    refused = decide(client, damaged, answer="0:accept")
    assert refused.status_code == 409
    assert "cannot be read" in text(refused)
    assert fresh(damaged).status == "pending"


def test_cancelling_its_run_ends_it(client: Client, damaged: Round) -> None:
    client.post(f"/runs/{damaged.run_id}/cancel")
    assert fresh(damaged).outcome == "cancelled"
    assert Run.objects.get(pk=damaged.run_id).status == "finished"
    assert client.get(f"/rounds/{damaged.pk}/").status_code == 200


def test_the_api_says_so_with_the_error_of_damaged_rounds(client: Client, damaged: Round) -> None:
    answer = {"responses": {"address": {"action": "decline"}}, "idempotency_key": "k"}
    draft = {"key": "address", "response": {"action": "decline"}}
    path = f"/api/v2/rounds/{damaged.pk}"
    refused = [
        client.get(path),
        client.post(f"{path}/respond", answer, content_type="application/json"),
        client.post(f"{path}/draft", draft, content_type="application/json"),
    ]
    for response in refused:
        assert response.status_code == 422, response.content
        assert response.json()["error"]["error_code"] == "managed_input_invalid"
        assert "damaged" in response.json()["error"]["message"]
    for path in (
        "/api/v2/rounds/",
        f"/api/v2/runs/{damaged.run_id}",
        f"/api/v2/runs/{damaged.run_id}/permissions",
    ):
        assert client.get(path).status_code == 200, path


def test_no_way_of_answering_takes_it(damaged: Round) -> None:
    with pytest.raises(ManagedInputValidationError, match="damaged"):
        rounds.answer(
            damaged.pk,
            {"address": {"action": "decline"}},
            decider=Decider(user=None, via="python"),
            idempotency_key="k",
        )
