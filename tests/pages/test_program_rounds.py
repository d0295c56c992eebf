"""A pause that a program opened through the store looks and works like any other, without a step behind it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.test import Client

from runs.managed_input import DjangoManagedInputStore
from runs.models import Round, Run, User
from tests.pages.inbox_page import decide, fresh, text
from tests.services.managed_input.samples import HOLDER, form, link, opened


@pytest.fixture
def client(client_for: Callable[[User], Client], alice: User) -> Client:
    return client_for(alice)


@pytest.fixture
def asked(make_run: Callable[..., Run]) -> Round:
    """A form and a page to open, asked for at once."""
    requests = {"address": form(), "pay": link()}
    opened(DjangoManagedInputStore(), str(make_run().turns.get().pk), requests=requests)
    return Round.objects.get()


def test_it_waits_in_the_list_with_the_server_that_asks(client: Client, asked: Round) -> None:
    page = text(client.get("/"))

    assert "shipping" in page
    assert f"/rounds/{asked.pk}/" in page


def test_its_card_says_who_asks_for_what_and_names_no_step(client: Client, asked: Round) -> None:
    page = text(client.get(f"/rounds/{asked.pk}/"))

    assert "shipping:book_shipment" in page
    assert "Where to?" in page
    assert "https://pay.example/42" in page
    assert f"run {asked.run_id}</a>" in page
    assert "None" not in page
    for secret in HOLDER.values():
        assert secret not in page


def test_it_is_answered_like_any_other(client: Client, asked: Round) -> None:
    card = client.get(f"/rounds/{asked.pk}/card", headers={"HX-Request": "true"})
    street = card.context["sections"][0][1].rows[0].name
    decide(client, asked, answer="0:accept", **{street: "Main St 1"})
    decide(client, asked, answer="1:accept")

    assert fresh(asked).responses == {
        "address": {"action": "accept", "content": {"street": "Main St 1"}},
        "pay": {"action": "accept"},
    }
    assert "Sending" in text(client.get(f"/rounds/{asked.pk}/"))


def test_the_page_of_its_run_and_the_api_show_it(client: Client, asked: Round) -> None:
    assert client.get(f"/runs/{asked.run_id}").status_code == 200
    shown = client.get(f"/api/v2/rounds/{asked.pk}").json()

    assert (shown["operation"], list(shown["requests"])) == ("shipping:book_shipment", ["address", "pay"])
    assert not set(HOLDER.values()) & set(map(str, shown.values()))
