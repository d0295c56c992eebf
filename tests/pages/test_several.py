"""The page on which several calls are allowed together (R11, R12, R21)."""

from __future__ import annotations

from typing import Any

import pytest
from django.http import HttpResponse
from django.test import Client
from django.utils.html import escape

from runs.models import Event, Round, Tool
from tests.pages.inbox_page import decide, fresh, text

STRICT = {"effect": "ask", "code": "strict", "reason": "Always alone.", "risk": "strict", "remember": []}


@pytest.fixture
def client(client_for: Any, alice: Any) -> Client:
    return client_for(alice)


def value(round_: Round) -> str:
    return f"{round_.pk}:{round_.shown_digest}"


def post(client: Client, *values: str, query: str = "", key: str = "key-1") -> HttpResponse:
    return client.post(f"/rounds/several{query}", {"call": values, "idempotency_key": key})


def ticked(page: str, round_: Round) -> bool:
    return f'value="{value(round_)}" checked' in page


def test_every_waiting_call_is_listed_in_full_and_none_is_chosen(client: Client, make_round: Any) -> None:
    long = "A long letter. " * 40 + "Its end."
    one = make_round(arguments={"to": "ann@example.com", "body": long})
    two, plan = make_round(), make_round("plan")
    page = text(client.get("/rounds/several"))
    for round_ in (one, two):
        assert f'value="{value(round_)}"' in page
        assert f'href="/runs/{round_.run_id}"' in page
    for shown in (
        "Customer success",
        "desk:send_email",
        "stdio entry desk",
        "Send e-mail",
        "Write",
        "No policy covers desk:send_email.",
        "ann@example.com",
        "Weekly update",
        long,
    ):
        assert shown in page
    assert " checked" not in page
    assert plan.pk not in page


def test_high_stakes_are_marked_and_strict_calls_are_left_to_their_cards(
    client: Client, make_round: Any
) -> None:
    Tool.objects.filter(name="refund").update(risk="money")
    refund, strict = make_round(tool="desk:refund"), make_round(verdict=STRICT)
    make_round()
    page = text(client.get("/rounds/several"))
    listed, alone = page.split('id="alone-title"')
    [marked] = [each for each in listed.split('<li class="card') if "High stakes." in each]
    assert value(refund) in marked
    assert "Money" in marked
    assert value(strict) not in page
    assert "Always alone." in alone
    assert f'href="/rounds/{strict.pk}/"' in alone


def test_the_filters_of_the_inbox_hold_and_lead_back(client: Client, make_run: Any, make_round: Any) -> None:
    mine, other = make_round(run=make_run(user_id="cust_1")), make_round()
    page = text(client.get("/rounds/several?user=cust_1"))
    assert value(mine) in page
    assert value(other) not in page
    assert 'href="/?user=cust_1"' in page
    assert 'action="/rounds/several?user=cust_1"' in page
    assert post(client, value(mine), query="?user=cust_1").headers["Location"] == "/?user=cust_1"


def test_allowing_leads_to_the_inbox_with_a_message_that_names_the_calls(
    client: Client, make_round: Any
) -> None:
    one, two = make_round(), make_round(arguments={"to": "bob@example.com"})
    response = post(client, value(one), value(two))
    assert response.headers["Location"] == "/"
    assert [fresh(one).outcome, fresh(two).outcome] == ["allowed", "allowed"]
    page = text(client.get("/"))
    assert (
        f"Allowed 2 calls: Send e-mail: 20 to ann@example.com (run {one.run_id}); "
        f"Send e-mail to bob@example.com (run {two.run_id})."
    ) in page


def test_the_same_post_again_has_the_same_result(client: Client, make_round: Any) -> None:
    one, two = make_round(), make_round()
    for _ in range(2):
        assert post(client, value(one), value(two)).headers["Location"] == "/"
    assert Event.objects.filter(type="permission_resolved").count() == 2


def test_a_stale_call_is_named_and_the_rest_stays_chosen_and_waiting(
    client: Client, client_for: Any, bob: Any, make_round: Any
) -> None:
    one, gone, left = make_round(), make_round(arguments={"to": "gone@example.com"}), make_round()
    decide(client_for(bob), gone, decision="deny")
    response = post(client, value(one), value(gone))
    page = text(response)
    assert response.status_code == 409
    summary = page.split('id="error-summary"')[1].split("</ul>")[0]
    assert "gone@example.com" in summary
    assert "denied by bob" in summary
    assert one.pk not in summary
    assert ticked(page, one)
    assert not ticked(page, left)
    assert [fresh(one).status, fresh(left).status] == ["pending", "pending"]
    assert post(client, value(one)).status_code == 302


def test_a_call_whose_arguments_changed_is_shown_anew_and_not_chosen(client: Client, make_round: Any) -> None:
    one, changed = make_round(), make_round()
    response = post(client, value(one), f"{changed.pk}:sha256:else")
    page = text(response)
    assert response.status_code == 409
    assert "What you were shown is not what is pending now." in page
    assert ticked(page, one)
    assert value(changed) in page
    assert not ticked(page, changed)


def test_a_call_that_became_strict_moves_to_those_that_are_decided_alone(
    client: Client, make_round: Any
) -> None:
    one, refund = make_round(), make_round(tool="desk:refund")
    Tool.objects.filter(name="refund").update(risk="strict")
    response = post(client, value(one), value(refund))
    page = text(response)
    assert response.status_code == 409
    assert "desk:refund always needs the decision of a person." in page.split('id="alone-title"')[0]
    assert f'data-alone="{refund.pk}"' in page
    assert ticked(page, one)
    assert fresh(one).status == "pending"


def test_choosing_nothing_says_what_to_do(client: Client, make_round: Any) -> None:
    make_round()
    response = post(client)
    assert response.status_code == 422
    assert 'href="#call-1">Choose at least one call.' in text(response)


@pytest.mark.parametrize("nonsense", ["", "nothing", "nothing:sha256:x", "\x00", ":::"])
def test_an_unknown_call_is_not_found_and_nothing_is_decided(
    nonsense: str, client: Client, make_round: Any
) -> None:
    one = make_round()
    assert post(client, value(one), nonsense).status_code == 404
    assert fresh(one).status == "pending"


def test_calls_of_another_account_are_not_there(client_for: Any, otto: Any, make_round: Any) -> None:
    round_ = make_round()
    client = client_for(otto)
    assert round_.pk not in text(client.get("/rounds/several"))
    assert post(client, value(round_)).status_code == 404
    assert fresh(round_).status == "pending"


def test_a_viewer_sees_the_calls_and_no_controls(client_for: Any, vera: Any, make_round: Any) -> None:
    one, two = make_round(), make_round()
    client = client_for(vera)
    page = text(client.get("/rounds/several"))
    assert "ann@example.com" in page
    assert 'type="checkbox"' not in page
    assert "Deciding needs the role operator." in page
    assert post(client, value(one), value(two)).status_code == 403
    assert [fresh(one).status, fresh(two).status] == ["pending", "pending"]


def test_the_inbox_leads_there_once_two_calls_wait(
    client: Client, client_for: Any, vera: Any, make_round: Any
) -> None:
    make_round("plan")
    make_round()
    assert "Allow several…" not in text(client.get("/"))
    second = make_round()
    assert 'href="/rounds/several">Allow several…' in text(client.get("/"))
    assert 'href="/rounds/several?server=desk">Allow several…' in text(client.get("/?server=desk"))
    assert "Allow several…" in text(client.get(f"/rounds/{second.pk}/row"))
    assert "Allow several…" not in text(client.get("/?kind=plan"))
    assert "Allow several…" not in text(client_for(vera).get("/"))


def test_with_nothing_to_allow_the_page_says_so(client: Client) -> None:
    page = text(client.get("/rounds/several"))
    assert "No call waits that could be allowed here." in page
    assert "Allow the chosen calls" not in page


def test_what_a_server_says_is_never_markup(client: Client, make_round: Any) -> None:
    evil = "<script>alert(1)</script>"
    make_round(title=evil, arguments={evil: evil, "long": evil * 20}, server_address=evil)
    page = text(client.get("/rounds/several"))
    assert "<script>alert" not in page
    assert escape(evil) in page
