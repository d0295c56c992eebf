"""Answering what servers ask: forms, several requests at once, links (R15, R22, R39, R41-R43)."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from runs.models import Round
from tests.pages.inbox_page import HTMX, decide, fresh, text

NAME = {
    "type": "object",
    "properties": {"name": {"type": "string", "title": "Your name"}},
    "required": ["name"],
}


@pytest.fixture
def client(client_for: Any, alice: Any) -> Client:
    return client_for(alice)


def form(key: str, message: str = "Who?") -> dict[str, Any]:
    return {"request_key": key, "mode": "form", "message": message, "requested_schema": NAME}


def link(url: str) -> dict[str, Any]:
    return {"request_key": "u", "mode": "url", "message": "Please pay", "url": url}


def field_name(client: Client, round_: Round, section: int = 0) -> str:
    page = client.get(f"/rounds/{round_.pk}/card", headers=HTMX)
    return str(page.context["sections"][section][1].rows[0].name)


def test_a_form_is_accepted_with_its_content(client: Client, make_round: Any) -> None:
    round_ = make_round("elicitation")
    decide(client, round_, answer="0:accept", **{field_name(client, round_): "Main St 1"})
    assert fresh(round_).responses == {
        "shipping_address": {"action": "accept", "content": {"street": "Main St 1"}}
    }
    assert "Main St 1" in text(client.get(f"/rounds/{round_.pk}/"))


@pytest.mark.parametrize("action", ["decline", "cancel"])
def test_declining_and_putting_off_carry_no_content(action: str, client: Client, make_round: Any) -> None:
    round_ = make_round("elicitation")
    decide(client, round_, answer=f"0:{action}", **{field_name(client, round_): "typed"})
    assert fresh(round_).responses == {"shipping_address": {"action": action}}


def test_a_wrong_form_names_the_field_at_the_top_and_beside_it(client: Client, make_round: Any) -> None:
    round_ = make_round("elicitation", requests={"k": form("k")})
    response = decide(client, round_, answer="0:accept")
    page = text(response)
    assert response.status_code == 422
    anchor = response.context["problems"][0].anchor
    assert f'href="#{anchor}"' in page
    assert f'id="{anchor}"' in page
    assert page.count(response.context["problems"][0].message) == 2


def test_an_unknown_button_is_refused(client: Client, make_round: Any) -> None:
    round_ = make_round("elicitation")
    for answer in ("", "0:explode", "7:accept", "x:accept"):
        assert decide(client, round_, answer=answer).status_code == 422
    assert fresh(round_).status == "pending"


def test_keys_of_a_server_name_nothing_on_the_page(client: Client, make_round: Any) -> None:
    evil = 'x" onfocus="alert(1)'
    round_ = make_round("elicitation", requests={evil: form(evil)})
    page = text(client.get(f"/rounds/{round_.pk}/"))
    assert "onfocus" not in page


def test_parts_of_an_answer_are_saved_and_sent_with_the_last(client: Client, make_round: Any) -> None:
    round_ = make_round("elicitation", requests={"a": form("a"), "b": form("b", "And who else?")})
    first, second = field_name(client, round_, 0), field_name(client, round_, 1)
    page = text(decide(client, round_, htmx=True, answer="0:accept", **{first: "Ann", second: "half typ"}))
    assert "1 of 2 answered" in page
    assert "Accepted, not sent yet" in page
    assert "half typ" in page
    assert (fresh(round_).status, list(fresh(round_).drafts)) == ("pending", ["a"])
    assert "Ann" in text(client.get(f"/rounds/{round_.pk}/"))
    decide(client, round_, htmx=True, answer="1:decline")
    assert fresh(round_).responses == {
        "a": {"action": "accept", "content": {"name": "Ann"}},
        "b": {"action": "decline"},
    }


def test_a_mistake_in_one_request_keeps_what_stands_in_the_others(client: Client, make_round: Any) -> None:
    round_ = make_round("elicitation", requests={"a": form("a"), "b": form("b")})
    second = field_name(client, round_, 1)
    response = decide(client, round_, answer="0:accept", **{second: "kept text"})
    assert response.status_code == 422
    assert "kept text" in text(response)
    assert len(response.context["problems"]) == 1


def test_a_link_is_shown_in_full_and_opens_apart(client: Client, make_round: Any) -> None:
    round_ = make_round("elicitation", requests={"u": link("https://bank.example/pay?x=1&y=2")})
    page = text(client.get(f"/rounds/{round_.pk}/"))
    assert 'https://<strong class="url-host">bank.example</strong>/pay?x=1&amp;y=2' in page
    assert 'href="https://bank.example/pay?x=1&amp;y=2" rel="noopener noreferrer" target="_blank"' in page
    assert "it does not say that you are done there" in page


@pytest.mark.parametrize("url", ["javascript:alert(1)", "http://bank.example/", "ftp://x/", "https://a b/"])
def test_an_address_that_is_not_safe_gets_no_link(url: str, client: Client, make_round: Any) -> None:
    round_ = make_round("elicitation", requests={"u": link(url)})
    page = text(client.get(f"/rounds/{round_.pk}/"))
    assert "data-consent-link" not in page
    assert "There is no link" in page


def test_consent_is_sent_once_and_says_nothing_else(client: Client, make_round: Any) -> None:
    round_ = make_round("elicitation", requests={"u": link("https://bank.example/")})
    decide(client, round_, answer="0:accept")
    assert fresh(round_).responses == {"u": {"action": "accept"}}
    assert "data-consent-link" in text(client.get(f"/rounds/{round_.pk}/"))


def test_a_declined_link_is_a_link_no_more(client: Client, make_round: Any) -> None:
    round_ = make_round("elicitation", requests={"u": link("https://bank.example/")})
    decide(client, round_, answer="0:decline")
    assert "data-consent-link" not in text(client.get(f"/rounds/{round_.pk}/"))


def test_enter_in_a_field_presses_no_button(client: Client, make_round: Any) -> None:
    page = text(client.get(f"/rounds/{make_round('elicitation').pk}/"))
    assert page.index('<button type="submit" disabled hidden>') < page.index('name="answer"')
