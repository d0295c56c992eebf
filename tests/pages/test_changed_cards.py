"""A card that asks because of a change shows it in full, with or without JavaScript, and an admin renews with one click
(R28)."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from approvals.models import Policy
from runs.models import Account, Round, Run, Server, User
from runs.tool_rows import store_tools
from tests.services.test_renewals import allow, asked, mail

ClientFor = Callable[[User], Client]


@pytest.fixture
def grown(desk: Server, account: Account) -> Policy:
    store_tools(desk, [mail(100)])
    policy = allow(account, "desk:send_email")
    store_tools(desk, [mail(10_000)])
    return policy


@pytest.fixture
def waiting(grown: Policy, make_round: Callable[..., Round], make_run: Callable[..., Run]) -> Round:
    return asked(make_round, make_run)


def text(response: Any) -> str:
    return str(response.content.decode())


def token_in(page: str) -> str:
    found = re.search(r'name="token" value="([^"]+)"', page)
    assert found is not None, "the page offers no renewal"
    return found[1]


def test_the_change_stands_before_allow(waiting: Round, alice: User, client_for: ClientFor) -> None:
    page = text(client_for(alice).get(f"/rounds/{waiting.pk}/"))
    change, allow_button = page.index("Argument amount: maximum 100 → 10000."), page.index('value="allow"')
    assert change < allow_button
    assert "Ask an admin if it should go on." in page
    assert "Renew this rule" not in page


def test_one_click_of_an_admin_renews_the_rule_and_lets_the_call_go(
    waiting: Round, grown: Policy, ada: User, client_for: ClientFor
) -> None:
    client = client_for(ada)
    page = text(client.get(f"/rounds/{waiting.pk}/"))
    response = client.post(
        f"/policies/{grown.pk}/changes", {"token": token_in(page), "round": waiting.pk}, follow=True
    )
    assert response.redirect_chain[-1][0] == f"/rounds/{waiting.pk}/"
    assert "Renewed: Allow desk:send_email" in text(response)
    waiting.refresh_from_db()
    assert (waiting.outcome, waiting.decided_via) == ("allowed", "rule")


def test_a_click_on_something_that_changed_again_shows_what_it_is_now(
    waiting: Round, grown: Policy, desk: Server, ada: User, client_for: ClientFor
) -> None:
    client = client_for(ada)
    token = token_in(text(client.get(f"/rounds/{waiting.pk}/")))
    store_tools(desk, [mail(1_000_000)])
    page = text(
        client.post(f"/policies/{grown.pk}/changes", {"token": token, "round": waiting.pk}, follow=True)
    )
    assert "changed again since you looked" in page
    assert "Argument amount: maximum 100 → 1000000." in page
    waiting.refresh_from_db()
    assert waiting.status == "pending"


def test_an_operator_cannot_renew(waiting: Round, grown: Policy, alice: User, client_for: ClientFor) -> None:
    client = client_for(alice)
    page = text(client.get(f"/policies/{grown.pk}/changes"))
    assert "Argument amount: maximum 100 → 10000." in page
    assert "Renew this rule" not in page
    assert client.post(f"/policies/{grown.pk}/changes", {"token": "x"}).status_code == 403


def test_the_list_of_policies_marks_what_a_change_has_suspended(
    grown: Policy, account: Account, ada: User, client_for: ClientFor
) -> None:
    allow(account, "desk:refund")
    page = text(client_for(ada).get("/policies"))
    assert page.count(f'href="/policies/{grown.pk}/changes"') == 1
    assert page.count("What has changed<") == 1
    assert "the tool or its server has changed since" in page


def test_a_policy_that_still_holds_says_so(
    account: Account, desk: Server, ada: User, client_for: ClientFor
) -> None:
    policy = allow(account, "desk:send_email")
    page = text(client_for(ada).get(f"/policies/{policy.pk}/changes"))
    assert "Nothing has changed: the policy holds." in page
    assert "Renew this rule" not in page


def test_a_card_whose_tool_is_another_by_now_says_so(
    waiting: Round, desk: Server, alice: User, client_for: ClientFor
) -> None:
    client = client_for(alice)
    assert "has changed since it was asked" not in text(client.get(f"/rounds/{waiting.pk}/"))
    desk.tools.filter(name="send_email").update(risk="money")
    assert "has changed since it was asked" in text(client.get(f"/rounds/{waiting.pk}/"))


def test_what_a_server_writes_is_no_markup(
    waiting: Round, desk: Server, ada: User, grown: Policy, client_for: ClientFor
) -> None:
    evil = mail(5, "send_email")
    schema = {"type": "object", "properties": {"<b>x</b>\u202e": {"const": "<script>" * 20}}}
    store_tools(
        desk, [type(evil)(**{**vars(evil), "input_schema": schema, "description": "<i>d</i>", "digest": "d"})]
    )
    page = text(client_for(ada).get(f"/policies/{grown.pk}/changes"))
    for markup in ("<b>x", "<script><script>", "<i>d"):
        assert markup not in page
    assert "⟨U+202E⟩" in page
