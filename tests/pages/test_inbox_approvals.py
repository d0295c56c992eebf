"""Deciding about a call on its card (R2, R7, R11-R20)."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from approvals.models import Policy
from runs.models import Round
from tests.pages.inbox_page import HTMX, decide, fresh, text


@pytest.fixture
def client(client_for: Any, alice: Any) -> Client:
    return client_for(alice)


def answer(round_: Round) -> dict[str, Any]:
    return (fresh(round_).responses or {})["approval"]["content"]


def test_a_card_shows_who_wants_what_where_and_why(client: Client, make_round: Any, make_run: Any) -> None:
    round_ = make_round(run=make_run(user_id="cust_7"))
    page = text(client.get(f"/rounds/{round_.pk}/"))
    for shown in (
        "Customer success",
        "desk:send_email",
        "stdio entry desk",
        "cust_7",
        f"run {round_.run_id}",
        "mode approval",
        "No policy covers desk:send_email.",
        "Write",
        "ann@example.com",
        "Weekly update",
    ):
        assert shown in page
    assert f'name="digest" value="{round_.shown_digest}"' in page


def test_allowing_redirects_to_the_next_card_with_a_message(client: Client, make_round: Any) -> None:
    round_, following = make_round(), make_round("plan")
    response = decide(client, round_, decision="allow")
    assert response.headers["Location"] == f"/rounds/{following.pk}/"
    assert fresh(round_).outcome == "allowed"
    assert answer(round_) == {"decision": "allow"}
    assert "Allowed: Send e-mail: 20 to ann@example.com" in text(client.get(f"/rounds/{following.pk}/"))


def test_the_last_decision_leads_back_to_the_inbox_and_keeps_the_filters(
    client: Client, make_round: Any
) -> None:
    response = decide(client, make_round(), query="?kind=approval", decision="allow")
    assert response.headers["Location"] == "/?kind=approval"


def test_with_htmx_the_next_card_comes_back_with_a_receipt(client: Client, make_round: Any) -> None:
    round_, following = make_round(), make_round("plan")
    page = text(decide(client, round_, htmx=True, decision="deny"))
    assert f'data-receipt="{round_.pk}"' in page
    assert "Sending" in page
    assert f'data-round="{following.pk}"' in page
    assert "<html" not in page


def test_deny_feedback_is_what_the_agent_reads(client: Client, make_round: Any) -> None:
    round_ = make_round()
    decide(client, round_, decision="deny", feedback="Ask the customer first")
    assert answer(round_) == {"decision": "deny", "feedback": "Ask the customer first"}
    assert "Ask the customer first" in text(client.get(f"/rounds/{round_.pk}/"))


def test_a_blank_deny_has_words_of_its_own(client: Client, make_round: Any) -> None:
    round_ = make_round()
    decide(client, round_, decision="deny", feedback="  ")
    assert "denied this call" in answer(round_)["feedback"]


def test_without_a_decision_the_card_says_what_to_do(client: Client, make_round: Any) -> None:
    round_ = make_round()
    response = decide(client, round_, feedback="typed text")
    assert response.status_code == 422
    assert 'href="#card-actions">Choose Allow or Deny.' in text(response)
    assert "typed text" in text(response)
    assert fresh(round_).status == "pending"


@pytest.mark.parametrize("digest", ["", "sha256:other"])
def test_a_decision_about_something_else_than_shown_is_refused(
    digest: str, client: Client, make_round: Any
) -> None:
    round_ = make_round()
    response = decide(client, round_, decision="allow", digest=digest)
    assert response.status_code == 409
    assert "Look again." in text(response)
    assert fresh(round_).status == "pending"


def test_the_loser_of_a_race_sees_who_decided_what_and_a_next_step(
    client: Client, client_for: Any, bob: Any, make_round: Any
) -> None:
    round_ = make_round()
    decide(client_for(bob), round_, decision="deny", idempotency_key="bobs-key")
    response = decide(client, round_, htmx=True, decision="allow")
    page = text(response)
    assert response.status_code == 409
    assert "denied by bob" in page
    assert "Go on with what still waits" in page
    assert 'name="decision"' not in page


def test_the_same_post_twice_is_one_decision(client: Client, make_round: Any) -> None:
    round_ = make_round()
    first = decide(client, round_, decision="allow")
    again = decide(client, round_, decision="allow")
    assert (first.status_code, again.status_code) == (302, 302)
    assert fresh(round_).version == 2


def test_after_the_deadline_a_decision_is_refused_and_says_so(client: Client, make_round: Any) -> None:
    round_ = make_round()
    Round.objects.filter(pk=round_.pk).update(deadline=timezone.now() - dt.timedelta(seconds=1))
    response = decide(client, round_, decision="allow")
    assert response.status_code == 409
    assert "deadline of this request has passed" in text(response)
    assert "Expired" in text(response)


def test_more_time_can_be_given(client: Client, make_round: Any) -> None:
    round_ = make_round()
    deadline = timezone.now() + dt.timedelta(minutes=1)
    Round.objects.filter(pk=round_.pk).update(deadline=deadline)
    assert client.post(f"/rounds/{round_.pk}/extend").status_code == 302
    assert fresh(round_).deadline == deadline + dt.timedelta(minutes=15)


def test_a_pause_without_deadline_cannot_be_extended(client: Client, make_round: Any) -> None:
    assert client.post(f"/rounds/{make_round().pk}/extend").status_code == 409


def test_arguments_are_edited_on_a_form_and_keep_their_types(client: Client, make_round: Any) -> None:
    round_ = make_round()
    page = client.get(f"/rounds/{round_.pk}/?edit=1")
    posted = {row.name: row.text for row in page.context["editing"].rows}
    name = next(row.name for row in page.context["editing"].rows if row.field.label == "amount")
    decide(client, round_, decision="allow", edit="1", **{**posted, name: "15"})
    assert answer(round_)["arguments"] == {"to": "ann@example.com", "subject": "Weekly update", "amount": 15}
    ended = text(client.get(f"/rounds/{round_.pk}/"))
    assert "Edited before it was allowed" in ended
    assert "asked for: 20" in ended


def test_a_wrong_edit_keeps_what_was_typed(client: Client, make_round: Any) -> None:
    round_ = make_round()
    rows = client.get(f"/rounds/{round_.pk}/card?edit=1", headers=HTMX).context["editing"].rows
    posted = {row.name: row.text for row in rows} | {rows[-1].name: "twenty"}
    response = decide(client, round_, htmx=True, decision="allow", edit="1", feedback="my note", **posted)
    assert response.status_code == 422
    assert "twenty" in text(response)
    assert "my note" in text(response)
    assert 'class="error-summary"' in text(response)
    assert fresh(round_).status == "pending"


def test_denying_needs_no_valid_edit(client: Client, make_round: Any) -> None:
    round_ = make_round()
    assert decide(client, round_, decision="deny", edit="1").status_code == 302
    assert fresh(round_).outcome == "denied"


def test_remembering_shows_the_exact_rule_and_saves_it(client: Client, make_round: Any) -> None:
    round_ = make_round()
    page = text(client.get(f"/rounds/{round_.pk}/"))
    rule = f"Allow desk:send_email for the rest of run {round_.run_id}."
    assert rule in page
    decide(client, round_, decision="allow", remember="run")
    policy = Policy.objects.get()
    assert (policy.scope, policy.run_id, policy.target) == ("run", round_.run_id, "desk:send_email")
    assert f'Remembered: <span class="rule">{rule}</span>' in text(client.get(f"/rounds/{round_.pk}/"))


def test_remembering_with_an_expiry(client: Client, make_round: Any) -> None:
    round_ = make_round()
    decide(client, round_, decision="allow", remember="account:30")
    expires = Policy.objects.get().expires_at
    assert expires is not None
    assert dt.timedelta(days=29) < expires - timezone.now() <= dt.timedelta(days=31)


def test_a_strict_tool_shows_no_remember_control_and_refuses_one(client: Client, make_round: Any) -> None:
    verdict = {"effect": "ask", "code": "strict", "reason": "Always.", "risk": "strict", "remember": []}
    round_ = make_round(verdict=verdict)
    assert 'name="remember"' not in text(client.get(f"/rounds/{round_.pk}/"))
    assert decide(client, round_, decision="allow", remember="run").status_code == 422
    assert fresh(round_).status == "pending"


def test_a_viewer_sees_everything_and_decides_nothing(client_for: Any, vera: Any, make_round: Any) -> None:
    round_ = make_round()
    client = client_for(vera)
    page = text(client.get(f"/rounds/{round_.pk}/"))
    assert "ann@example.com" in page
    assert '<button class="b' not in page.split('id="round-card"')[1]
    assert decide(client, round_, decision="allow").status_code == 403
    assert client.post(f"/rounds/{round_.pk}/extend").status_code == 403
    assert fresh(round_).status == "pending"


def test_what_changed_since_the_last_allowed_call_is_marked(client: Client, make_round: Any) -> None:
    earlier = {"to": "ann@example.com", "subject": "Weekly update", "amount": 5}
    round_ = make_round(last_allowed=earlier)
    page = text(client.get(f"/rounds/{round_.pk}/"))
    assert '<mark class="value">20</mark>' in page
    assert "last allowed: 5" in page


def test_hidden_characters_are_shown_with_a_warning(client: Client, make_round: Any) -> None:
    round_ = make_round(arguments={"to": "ann\u202e@example.com"})
    page = text(client.get(f"/rounds/{round_.pk}/"))
    assert "Hidden characters</b> in to" in page
    assert "ann⟨U+202E⟩@example.com" in page
    assert "\u202e" not in page


def test_the_history_tells_who_did_what(client: Client, make_round: Any) -> None:
    round_ = make_round()
    decide(client, round_, decision="allow")
    page = text(client.get(f"/rounds/{round_.pk}/"))
    assert "<span>Asked</span>" in page
    assert '<span>Allowed</span> <span class="muted">by alice</span>' in page


def test_a_scope_that_the_run_cannot_have_is_not_offered(
    client: Client, make_round: Any, make_run: Any
) -> None:
    round_ = make_round(run=make_run(user_id="cust_7"))  # its verdict speaks of the account all the same
    page = text(client.get(f"/rounds/{round_.pk}/"))
    assert 'name="remember" value="run"' in page
    assert 'name="remember" value="account' not in page
