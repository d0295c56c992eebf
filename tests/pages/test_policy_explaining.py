"""The page that explains a call: the decision, its reason, the rule, and what could be remembered."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from approvals.facts import Effect
from approvals.models import Policy, Source
from approvals.policies import grant
from runs.models import Account, Server, User
from tests.pages.policy_pages import text_of
from tests.services.policy_helpers import rule

ASKED = {"target": "desk:send_email", "arguments": "", "user_id": "", "mode": "approval"}


@pytest.fixture
def vera_at(vera: User, desk: Server, client_for: Callable[[User], Client]) -> Client:
    return client_for(vera)


def explained(client: Client, **asked: Any) -> str:
    answer = client.post("/policies/explain", {**ASKED, **asked})
    assert answer.status_code == 200
    return text_of(answer)


def test_a_call_that_no_rule_covers_asks_and_says_what_could_be_remembered(vera_at: Client) -> None:
    text = explained(vera_at, arguments='{"to": "ann@example.com"}', user_id="cust_1")
    assert "A person is asked" in text
    assert "No rule covers it. no_rule" in text
    assert "Allow desk:send_email in every run for the user cust_1, until it is revoked." in text
    assert 'with exactly the arguments {"to":"ann@example.com"}' in text
    assert "No rule decided it" in text


def test_the_rule_that_decides_is_named_and_counts_no_use(vera_at: Client, account: Account) -> None:
    policy = grant(None, rule(account, effect=Effect.DENY), source=Source.API)
    answer = vera_at.post("/policies/explain", ASKED)
    assert f'href="/policies/{policy.pk}"' in answer.content.decode()
    assert "Denied" in text_of(answer)
    assert Policy.objects.get().hits == 0


def test_mode_and_an_approved_plan_count(vera_at: Client) -> None:
    assert "Allowed, without asking" in explained(vera_at, mode="autonomous")
    assert "A plan has to be approved first" in explained(vera_at, mode="plan")
    assert "A person is asked" in explained(vera_at, mode="plan", plan_approved="on")


def test_a_tool_that_does_not_exist_is_explained_with_a_remark(vera_at: Client) -> None:
    assert "There is no server mail yet" in explained(vera_at, target="mail:send")


@pytest.mark.parametrize(
    ("asked", "place", "says"),
    [
        ({"target": "desk"}, "id_target", "Write its tool as server:tool"),
        ({"target": "a b:c"}, "id_target", "without wildcards"),
        ({"arguments": '{"a": 1'}, "id_arguments", "Line 1, column 8"),
        ({"arguments": "[1]"}, "id_arguments", "JSON object"),
        ({"arguments": '{"a": 1, "a": 2}'}, "id_arguments", "stands twice"),
        ({"mode": "loose"}, "id_mode", "not one of the available"),
    ],
)
def test_a_mistake_is_at_its_field_and_what_was_typed_stays(
    vera_at: Client, asked: dict[str, Any], place: str, says: str
) -> None:
    answer = vera_at.post("/policies/explain", {**ASKED, "user_id": "kept", **asked})
    assert answer.status_code == 422
    assert f'<a href="#{place}">' in answer.content.decode()
    assert says in text_of(answer)
    assert 'value="kept"' in answer.content.decode()


def test_what_was_typed_is_never_markup(vera_at: Client) -> None:
    page = vera_at.post(
        "/policies/explain", {**ASKED, "target": "desk:<b>x</b>", "user_id": "<i>u</i>"}
    ).content.decode()
    assert "<b>x" not in page
    assert "<i>u" not in page


def test_a_link_may_fill_in_the_tool(vera_at: Client) -> None:
    assert 'value="desk:refund"' in vera_at.get("/policies/explain?target=desk:refund").content.decode()
