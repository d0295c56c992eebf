"""One rule on its page: facts, history, end and note, suspending and renewing; what is left when it is gone (R27)."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable

import pytest
from django.test import Client
from django.utils import timezone

from approvals import policies
from approvals.facts import Effect
from approvals.models import Policy, Source
from approvals.policies import grant
from runs.access import Actor
from runs.models import Account, Run, Server, User
from tests.pages.policy_pages import hidden, text_of
from tests.services.policy_helpers import grant_as_shown, rule

ClientFor = Callable[[User], Client]
Acting = Callable[[User], Actor]


@pytest.fixture
def ada_at(ada: User, desk: Server, client_for: ClientFor) -> Client:
    return client_for(ada)


@pytest.fixture
def policy(acting: Acting, ada: User, account: Account, desk: Server) -> Policy:
    return grant_as_shown(acting(ada), rule(account), note="Colleagues only.")


def test_it_says_what_it_does_who_wrote_it_and_how_it_was_used(policy: Policy, ada_at: Client) -> None:
    text = text_of(ada_at.get(f"/policies/{policy.pk}"))
    assert "Allow desk:send_email in every run of this account that carries no user" in text
    assert "Written by ada" in text
    assert "It has decided no call yet" in text
    assert "Colleagues only." in text
    assert "Made by ada" in text


def test_operators_and_viewers_read_it_and_change_nothing(
    policy: Policy, alice: User, vera: User, client_for: ClientFor
) -> None:
    for user in (alice, vera):
        client = client_for(user)
        page = client.get(f"/policies/{policy.pk}").content.decode()
        assert "<form" not in page.split("<main")[1]
        assert "/revoke" not in page
        assert client.post(f"/policies/{policy.pk}/edit", {"end": "never"}).status_code == 403
        assert client.post(f"/policies/{policy.pk}/suspend", {"reason": "x"}).status_code == 403


def test_another_account_finds_nothing(policy: Policy, otto: User, client_for: ClientFor) -> None:
    client = client_for(otto)
    assert client.get(f"/policies/{policy.pk}").status_code == 404
    policy.delete()
    assert "Made by" not in text_of(client.get(f"/policies/{policy.pk}"))
    assert "Nothing was done to a rule yet" in text_of(client.get("/policies/history"))


def test_its_end_and_note_are_changed_and_the_history_says_from_what(policy: Policy, ada_at: Client) -> None:
    sent = {"end": "days", "days": "3", "note": "Until Friday."}
    text = text_of(ada_at.post(f"/policies/{policy.pk}/edit", sent, follow=True))
    policy.refresh_from_db()
    assert policy.expires_at is not None
    assert policy.expires_at > timezone.now() + dt.timedelta(days=2)
    assert "End: when it is revoked → " in text
    assert "Note: “Colleagues only.” → “Until Friday.”" in text

    ada_at.post(f"/policies/{policy.pk}/edit", {"end": "keep", "note": ""})
    before = policy.expires_at
    policy.refresh_from_db()
    assert (policy.expires_at, policy.note) == (before, "")
    ada_at.post(f"/policies/{policy.pk}/edit", {"end": "never", "note": ""})
    policy.refresh_from_db()
    assert policy.expires_at is None


@pytest.mark.parametrize(
    ("sent", "says"),
    [
        ({"end": "days"}, "Days from today: Say after how many days"),
        ({"end": "days", "days": "0"}, "greater than or equal to 1"),
        ({"end": "never"}, "not one of the available choices"),  # it has no other end now
        ({"end": "keep", "note": "x" * 501}, "at most 500"),
    ],
)
def test_a_wrong_end_is_said_at_its_field_and_changes_nothing(
    policy: Policy, ada_at: Client, sent: dict[str, str], says: str
) -> None:
    answer = ada_at.post(f"/policies/{policy.pk}/edit", sent)
    assert answer.status_code == 422
    assert says in text_of(answer)
    policy.refresh_from_db()
    assert (policy.expires_at, policy.note) == (None, "Colleagues only.")


def test_an_expired_rule_offers_to_be_made_anew_and_nothing_else(policy: Policy, ada_at: Client) -> None:
    Policy.objects.filter(pk=policy.pk).update(expires_at=timezone.now())
    text = text_of(ada_at.get(f"/policies/{policy.pk}"))
    assert "Make it anew" in text
    assert "Change its end or note" not in text
    answer = ada_at.post(f"/policies/{policy.pk}/edit", {"end": "never", "note": ""})
    assert answer.status_code == 422
    assert "Make it anew" in text_of(answer)


def test_it_is_suspended_with_a_reason_and_renewed_with_one_click(policy: Policy, ada_at: Client) -> None:
    assert ada_at.post(f"/policies/{policy.pk}/suspend", {"reason": ""}).status_code == 422
    text = text_of(ada_at.post(f"/policies/{policy.pk}/suspend", {"reason": "Under review."}, follow=True))
    assert "Suspended: Under review." in text
    assert "Suspend it…" not in text
    page = ada_at.get(f"/policies/{policy.pk}/changes")
    assert "Suspended: Under review." in text_of(page)
    assert "Nothing has changed of what it was made for." in text_of(page)

    ada_at.post(f"/policies/{policy.pk}/changes", {"token": hidden(page, "token")})
    policy.refresh_from_db()
    assert policy.suspended_reason == ""
    assert "the policy holds" in text_of(ada_at.get(f"/policies/{policy.pk}/changes"))


def test_a_suspension_for_another_reason_is_not_lifted_by_a_click_on_the_earlier_page(
    policy: Policy, ada_at: Client, acting: Acting, ada: User
) -> None:
    policies.suspend(acting(ada), policy.pk, "Under review.")
    token = hidden(ada_at.get(f"/policies/{policy.pk}/changes"), "token")
    policies.suspend(acting(ada), policy.pk, "It was abused.")
    text = text_of(ada_at.post(f"/policies/{policy.pk}/changes", {"token": token}, follow=True))
    assert "It has changed again since you looked" in text
    policy.refresh_from_db()
    assert policy.suspended_reason == "It was abused."


def test_a_deny_offers_no_suspension(account: Account, ada_at: Client) -> None:
    deny = grant(None, rule(account, effect=Effect.DENY), source=Source.API)
    assert "Suspend it" not in text_of(ada_at.get(f"/policies/{deny.pk}"))
    answer = ada_at.post(f"/policies/{deny.pk}/suspend", {"reason": "x"})
    assert answer.status_code == 422
    assert "Only an allow can be suspended" in text_of(answer)


def test_a_revoked_rule_leaves_its_history(policy: Policy, ada_at: Client) -> None:
    ada_at.post(f"/policies/{policy.pk}/revoke")
    answer = ada_at.get(f"/policies/{policy.pk}")
    text = text_of(answer)
    assert answer.status_code == 404
    assert f"Policy {policy.pk} is not there any more" in text
    assert "Revoked by ada" in text
    assert "Colleagues" not in text
    assert "ada revoked it" in text_of(ada_at.get(f"/policies/{policy.pk}/revoke"))
    assert "Revoked by ada" in text_of(ada_at.get("/policies/history"))


def test_the_history_of_all_rules_is_paged(account: Account, ada_at: Client) -> None:
    for number in range(55):
        grant(None, rule(account, f"desk:tool_{number}"), source=Source.API)
    first = ada_at.get("/policies/history")
    assert "desk:tool_54" in text_of(first)
    assert "desk:tool_4 " not in text_of(first)
    assert "desk:tool_4 " in text_of(ada_at.get("/policies/history?before=6"))
    assert "Nothing older" in text_of(ada_at.get("/policies/history?before=1"))
    assert ada_at.get("/policies/history?before=x").status_code == 200


def test_what_a_run_remembers_leads_back_to_the_run_and_is_no_model_for_others(
    account: Account, make_run: Callable[..., Run], ada_at: Client
) -> None:
    run = make_run()
    policy = grant(None, rule(account, run=run), source=Source.RUN_APPROVAL)
    page = ada_at.get(f"/policies/{policy.pk}")
    assert f'class="crumb" href="/runs/{run.pk}"' in page.content.decode()
    assert "Write one like it" not in text_of(page)
    assert "With its run" in text_of(page)
