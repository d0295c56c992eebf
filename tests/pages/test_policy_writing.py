"""An admin writes a rule: the exact rule and its rehearsal first, then what was shown is saved (R23, R26, R46)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from approvals.condition_shape import read_condition
from approvals.conditions import ArgumentTest, TestKind
from approvals.decisions import decide
from approvals.models import Policy, Source
from approvals.policies import grant
from runs.access import Actor
from runs.models import Account, EndUser, Round, Run, Server, User
from tests.pages.policy_pages import WRITTEN, hidden, look, save, text_of
from tests.services.policy_helpers import decided_at_once, grant_as_shown, matches, rule

ClientFor = Callable[[User], Client]
Acting = Callable[[User], Actor]

DENY = {"approval": {"action": "accept", "content": {"decision": "deny"}}}


@pytest.fixture
def ada_at(ada: User, desk: Server, client_for: ClientFor) -> Client:
    return client_for(ada)


def test_known_tools_are_suggested_and_the_list_leads_to_the_form(ada_at: Client) -> None:
    assert 'href="/policies/new"' in ada_at.get("/policies").content.decode()
    page = ada_at.get("/policies/new").content.decode()
    assert '<option value="desk:refund">' in page
    assert '<option value="desk">' in page


def test_a_look_shows_the_exact_rule_and_saves_nothing(ada_at: Client, make_run: Callable[..., Run]) -> None:
    run = make_run()
    decided_at_once(run, "desk:send_email", allowed=True)
    page = look(ada_at, days="3")
    assert "Allow desk:send_email in every run of this account that carries no user, until" in text_of(page)
    assert "Of the last 1 call that were decided here, it would have allowed 1." in text_of(page)
    assert f'href="/runs/{run.pk}"' in page.content.decode()
    assert 'name="confirm"' not in page.content.decode()
    assert not Policy.objects.exists()


def test_what_was_shown_is_saved_with_its_conditions_and_note(ada_at: Client, ada: User) -> None:
    fields = {
        "rows": "2",
        "path_1": "to",
        "kind_1": "glob",
        "value_1": "*@example.com",
        "path_2": "amount",
        "kind_2": "equals",
        "value_2": "50",
        "note": "Colleagues only.",
        "scope": "user",
        "user_id": "cust_new",
    }
    answer = save(ada_at, **fields)
    policy = Policy.objects.get()
    assert answer["Location"] == f"/policies/{policy.pk}"
    assert set(read_condition(policy.condition)) == {
        ArgumentTest(path=("to",), kind=TestKind.GLOB, value="*@example.com"),
        ArgumentTest(path=("amount",), value=50),
    }
    assert (policy.note, policy.source, policy.created_by) == ("Colleagues only.", "api", ada)
    assert policy.end_user is not None
    assert policy.end_user.user_id == "cust_new"


def test_covering_a_denied_call_needs_the_tick_and_shows_the_call(
    ada_at: Client, acting: Acting, alice: User, make_round: Callable[..., Round]
) -> None:
    denied = make_round()
    decide(acting(alice), denied.pk, DENY, idempotency_key="d")
    page = look(ada_at)
    assert "of which people denied 1" in text_of(page)
    assert f'href="/cards/{denied.pk}"' in page.content.decode() or denied.pk in page.content.decode()
    assert "denied by alice" in text_of(page)
    assert f'href="/rounds/{denied.pk}/"' in page.content.decode()

    refused = save(ada_at)
    assert refused.status_code == 409
    assert "Tick that you have seen what the rule covers" in text_of(refused)
    assert not Policy.objects.exists()

    assert save(ada_at, confirm=True).status_code == 302
    assert Policy.objects.count() == 1


def test_a_tool_of_high_stakes_is_named_with_its_risk(ada_at: Client, desk: Server) -> None:
    desk.tools.filter(name="refund").update(risk="money")
    page = look(ada_at, target="desk")
    assert "desk:refund is high-stakes (money)" in text_of(page)
    assert 'name="confirm"' in page.content.decode()


def test_a_rule_that_became_another_one_since_the_look_is_shown_again(ada_at: Client, desk: Server) -> None:
    shown = hidden(look(ada_at), "shown")
    desk.tools.filter(name="send_email").update(risk="access")
    sent = {**WRITTEN, "shown": shown, "confirm": "1", "step": "save"}
    page = ada_at.post("/policies/new", sent)
    assert page.status_code == 409
    assert "not the rule that you were shown" in text_of(page)
    assert "desk:send_email is high-stakes (access)" in text_of(page)
    assert not Policy.objects.exists()


def test_a_rule_that_is_there_already_is_named_and_renewed(ada_at: Client, account: Account) -> None:
    there = grant(None, rule(account), source=Source.API)
    assert f"policy {there.pk}" in text_of(look(ada_at))
    save(ada_at)
    assert Policy.objects.count() == 1


@pytest.mark.parametrize(
    ("fields", "place", "says"),
    [
        ({"target": "desk*"}, "id_target", "without wildcards"),
        ({"effect": ""}, "id_effect", "required"),
        ({"scope": "user"}, "id_user_id", "Say which end user"),
        ({"user_id": "cust_1"}, "id_user_id", "names no end user"),
        ({"days": "0"}, "id_days", "greater than or equal to 1"),
        ({"days": "x"}, "id_days", "whole number"),
        ({"path_1": "a..b", "value_1": "1"}, "id_path_1", "cannot be read"),
        ({"path_1": "a", "value_1": "{1"}, "id_value_1", "begins like JSON"),
        ({"path_1": "rows[0]", "value_1": "1"}, "id_path_1", "as the card shows them"),
        ({"value_1": "1"}, "id_value_1", "compared with an object"),
        ({"path_1": "to", "kind_1": "glob", "value_1": "x" * 201}, "id_value_1", "at most 200"),
    ],
)
def test_every_mistake_is_at_its_field_and_what_was_typed_stays(
    ada_at: Client, fields: dict[str, Any], place: str, says: str
) -> None:
    answer = look(ada_at, note="Kept as typed", **fields)
    page = answer.content.decode()
    assert answer.status_code == 422
    assert f'<a href="#{place}">' in page
    assert says in text_of(answer)
    assert 'value="Kept as typed"' in page
    assert not Policy.objects.exists()
    assert not EndUser.objects.exists()


def test_another_row_and_the_way_back_keep_what_was_typed(ada_at: Client) -> None:
    typed = {**WRITTEN, "path_1": "to", "value_1": "ann@example.com", "note": "typed"}
    for step, rows in (("more", 2), ("back", 1)):
        answer = ada_at.post("/policies/new", {**typed, "step": step})
        page = answer.content.decode()
        assert answer.status_code == 200
        assert page.count('aria-label="Condition ') == rows
        assert 'value="ann@example.com"' in page
        assert 'value="typed"' in page
        assert "error-summary" not in page


def test_there_are_never_more_rows_than_a_condition_may_have(ada_at: Client) -> None:
    for rows in ("10", "99", "-1", "x"):
        page = ada_at.post("/policies/new", {**WRITTEN, "rows": rows, "step": "more"}).content.decode()
        assert 1 <= page.count('aria-label="Condition ') <= 10


def test_one_like_another_starts_with_what_that_says(
    ada_at: Client, acting: Acting, ada: User, account: Account
) -> None:
    customer = EndUser.objects.create(account=account, user_id="cust_123")
    wanted = rule(account, end_user=customer, condition=(matches("to", "*@example.com"),))
    policy = grant_as_shown(acting(ada), wanted, note="Known people")
    page = ada_at.get(f"/policies/new?like={policy.pk}").content.decode()
    for value in ("desk:send_email", "cust_123", "*@example.com", "Known people"):
        assert f'value="{value}"' in page


@pytest.mark.parametrize("name", ["alice", "vera"])
def test_only_admins_write_rules(
    name: str, request: pytest.FixtureRequest, desk: Server, client_for: ClientFor
) -> None:
    client = client_for(request.getfixturevalue(name))
    assert client.get("/policies/new").status_code == 403
    assert client.post("/policies/new", {**WRITTEN, "step": "save"}).status_code == 403
    assert "/policies/new" not in client.get("/policies").content.decode()
    assert not Policy.objects.exists()
