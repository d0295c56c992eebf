"""Remembering from a card: every rule in its words, what it covers, and nothing saved that was not seen (R16, R23)."""

from __future__ import annotations

from html import escape
from typing import Any

import pytest
from django.test import Client

from approvals.condition_shape import parse_condition
from approvals.conditions import exactly
from approvals.decisions import decide as decide_round
from approvals.models import Policy
from runs.access import actor_for
from runs.models import Round, User
from tests.pages.inbox_page import HTMX, decide, fresh, text

DENY = {"approval": {"action": "accept", "content": {"decision": "deny"}}}
ARGUMENTS = escape('{"amount":20,"subject":"Weekly update","to":"ann@example.com"}')


@pytest.fixture
def client(client_for: Any, alice: Any) -> Client:
    return client_for(alice)


@pytest.fixture
def denied(make_round: Any, bob: User) -> Round:
    """A call that bob denied some time ago."""
    return decide_round(actor_for(bob), make_round().pk, DENY, idempotency_key="d")


def refund(make_round: Any) -> Round:
    """A pause of the tool that may delete what cannot be brought back."""
    return make_round(tool="desk:refund", arguments={"amount": 20})


def test_every_way_to_remember_stands_with_the_rule_that_it_saves(client: Client, make_round: Any) -> None:
    round_ = make_round()
    page = text(client.get(f"/rounds/{round_.pk}/"))
    for rule in (
        f"Allow desk:send_email for the rest of run {round_.run_id}.",
        "Allow desk:send_email in every run of this account that carries no user, until it is revoked.",
        f"Allow desk:send_email with exactly the arguments {ARGUMENTS} for the rest of run {round_.run_id}.",
        f"Allow desk:send_email with exactly the arguments {ARGUMENTS} in every run of this account that carries no "
        "user, until it is revoked.",
    ):
        assert f'<span class="rule">{rule}</span>' in page
    assert 'name="confirm-rule"' not in page


@pytest.mark.parametrize("htmx", [False, True], ids=["plain", "htmx"])
def test_a_rule_for_exactly_these_arguments_is_saved_as_shown(
    client: Client, make_round: Any, htmx: bool
) -> None:
    round_ = make_round()
    decide(client, round_, htmx=htmx, decision="allow", remember="account:exactly")
    policy = Policy.objects.get()
    assert parse_condition(policy.condition) == exactly(round_.context["arguments"])
    assert "with exactly the arguments" in text(client.get(f"/rounds/{round_.pk}/"))


@pytest.mark.parametrize("shown", ["", "sha256:other"])
def test_a_rule_that_was_not_shown_is_not_saved(client: Client, make_round: Any, shown: str) -> None:
    round_ = make_round()
    response = decide(client, round_, decision="allow", remember="run", **{"shown:run": shown})
    assert response.status_code == 422
    assert 'href="#remember-rules">This is not the rule that you were shown.' in text(response)
    assert fresh(round_).status == "pending"
    assert not Policy.objects.exists()


def test_a_denied_call_that_a_rule_covers_is_shown_with_a_link_and_needs_a_tick(
    client: Client, make_round: Any, denied: Round
) -> None:
    round_ = make_round()
    page = text(client.get(f"/rounds/{round_.pk}/"))
    assert "it would have allowed 1, of which people denied 1." in page
    assert f'<a href="/rounds/{denied.pk}/">by bob in run {denied.run_id}</a>' in page
    assert 'name="confirm-rule"' in page

    refused = decide(client, round_, htmx=True, decision="allow", remember="account", feedback="my words")
    assert refused.status_code == 422
    assert "This rule has to be confirmed." in text(refused)
    assert "my words" in text(refused)
    assert 'value="account" checked' in text(refused)
    assert 'name="confirm-rule" value="1" id="remember-confirm">' in text(refused)
    assert not Policy.objects.exists()

    decide(client, round_, decision="allow", remember="account", **{"confirm-rule": "1"})
    assert fresh(round_).outcome == "allowed"
    assert Policy.objects.get().scope == "account"


def test_allowing_just_the_call_needs_no_tick(client: Client, make_round: Any, denied: Round) -> None:
    round_ = make_round()
    decide(client, round_, decision="allow", remember="")
    assert fresh(round_).outcome == "allowed"
    assert not Policy.objects.exists()


def test_a_rule_that_does_not_cover_the_denied_call_needs_no_tick(
    client: Client, make_round: Any, denied: Round
) -> None:
    round_ = make_round(arguments={"to": "eve@example.com"})
    decide(client, round_, decision="allow", remember="account:exactly")
    assert Policy.objects.get().match_key


def test_remembering_a_high_stakes_tool_names_the_risk_and_needs_the_tick(
    client: Client, make_round: Any
) -> None:
    round_ = refund(make_round)
    page = text(client.get(f"/rounds/{round_.pk}/"))
    assert (
        "desk:refund is high-stakes (destroy): May delete or overwrite what cannot be brought back." in page
    )
    assert decide(client, round_, decision="allow", remember="run").status_code == 422
    assert fresh(round_).status == "pending"
    decide(client, round_, decision="allow", remember="run", **{"confirm-rule": "1"})
    assert Policy.objects.get().target == "desk:refund"


def test_a_denial_since_the_card_was_drawn_asks_again_although_the_tick_was_set(
    client: Client, make_round: Any, bob: User
) -> None:
    round_ = refund(make_round)
    shown = {
        f"shown:{choice.value}": choice.shown
        for choice in client.get(f"/rounds/{round_.pk}/card").context["card"].remember
    }
    decide_round(actor_for(bob), refund(make_round).pk, DENY, idempotency_key="d")
    posted = {"decision": "allow", "remember": "account", "confirm-rule": "1", **shown}
    assert decide(client, round_, **posted).status_code == 422
    assert not Policy.objects.exists()


def test_the_rule_for_edited_arguments_is_shown_before_it_is_saved(client: Client, make_round: Any) -> None:
    round_ = make_round()
    page = client.get(f"/rounds/{round_.pk}/card?edit=1", headers=HTMX)
    assert "with exactly the arguments" not in text(page)
    rows = page.context["editing"].rows
    typed = {row.name: row.text for row in rows}
    typed[next(row.name for row in rows if row.field.label == "amount")] = "15"
    posted = {"decision": "allow", "edit": "1", "remember": "account:exactly", **typed}

    first = decide(client, round_, htmx=True, **{**posted, "shown:account:exactly": ""})
    assert first.status_code == 422
    assert ARGUMENTS.replace("20", "15") in text(first)
    assert 'value="15"' in text(first)
    assert not Policy.objects.exists()

    shown = next(
        choice.shown for choice in first.context["card"].remember if choice.value == "account:exactly"
    )
    decide(client, round_, **{**posted, "shown:account:exactly": shown})
    assert parse_condition(Policy.objects.get().condition) == exactly(
        {"to": "ann@example.com", "subject": "Weekly update", "amount": 15}
    )


def test_arguments_too_long_to_be_read_in_a_rule_are_not_offered_for_one(
    client: Client, make_round: Any
) -> None:
    round_ = make_round(arguments={"to": "x" * 5000})
    page = text(client.get(f"/rounds/{round_.pk}/"))
    assert 'name="remember" value="run"' in page
    assert "exactly" not in page
    assert decide(client, round_, decision="allow", remember="run:exactly").status_code == 422
    assert fresh(round_).status == "pending"


def test_what_another_person_is_called_cannot_disguise_the_warning(
    client: Client, make_round: Any, account: Any
) -> None:
    from runs.models import Role
    from tests.people import person

    mallory = person("mal\u202elory", account, Role.OPERATOR)
    decide_round(actor_for(mallory), make_round().pk, DENY, idempotency_key="d")
    page = text(client.get(f"/rounds/{make_round().pk}/"))
    assert "by mal⟨U+202E⟩lory" in page
