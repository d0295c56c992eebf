"""Standing rules on their page: sentences, source, use, and revoking."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from approvals.models import Policy
from runs.models import Account, EndUser, Run, User

ClientFor = Callable[[User], Client]
Grant = Callable[..., Policy]


@pytest.fixture
def grant(account: Account, alice: User) -> Grant:
    def make(tool: str = "send_email", **fields: Any) -> Policy:
        values: dict[str, Any] = {
            "account": account,
            "effect": "allow",
            "scope": "account",
            "target_server": "desk",
            "target_tool": tool,
            "source": "run_approval",
            "created_by": alice,
            **fields,
        }
        return Policy.objects.create(**values)

    return make


def test_the_page_is_empty_with_an_explanation(vera: User, client_for: ClientFor) -> None:
    assert "No policies yet" in client_for(vera).get("/policies").content.decode()


def test_a_rule_is_a_sentence_with_its_source_and_use(
    grant: Grant, account: Account, vera: User, client_for: ClientFor
) -> None:
    user = EndUser.objects.create(account=account, user_id="cust_123")
    grant(scope="user", end_user=user, hits=3, last_used_at=timezone.now())
    page = client_for(vera).get("/policies").content.decode()
    assert "Allow desk:send_email in every run for the user cust_123, until it is revoked." in page
    assert "Remembered from an approval by alice" in page
    assert "used 3 times, last" in page
    assert "Revoke" not in page


def test_expired_and_suspended_rules_say_so(grant: Grant, vera: User, client_for: ClientFor) -> None:
    grant("a", expires_at=timezone.now())
    grant("b", suspended_reason="The tool's definition has changed.")
    page = client_for(vera).get("/policies").content.decode()
    assert "Expired" in page
    assert "Suspended" in page
    assert "The tool&#x27;s definition has changed." in page


def test_rules_filter_by_effect_target_and_user(grant: Grant, vera: User, client_for: ClientFor) -> None:
    grant("send_email")
    grant("refund", effect="deny")
    client = client_for(vera)
    denied = client.get("/policies?effect=deny").content.decode()
    assert "desk:refund" in denied
    assert "desk:send_email" not in denied
    assert "desk:refund" not in client.get("/policies?q=desk:send").content.decode()
    assert "desk:refund" in client.get("/policies?q=refund").content.decode()
    assert "No policy fits" in client.get("/policies?user=nobody").content.decode()


def test_what_one_run_remembers_is_not_a_standing_rule(
    grant: Grant, make_run: Callable[..., Run], vera: User, client_for: ClientFor
) -> None:
    grant(scope="run", run=make_run())
    assert "No policies yet" in client_for(vera).get("/policies").content.decode()


def test_the_one_who_made_a_rule_revokes_it_after_reading_it(
    grant: Grant, alice: User, client_for: ClientFor
) -> None:
    policy = grant()
    client = client_for(alice)
    assert "Allow desk:send_email" in client.get(f"/policies/{policy.pk}/revoke").content.decode()
    page = client.post(f"/policies/{policy.pk}/revoke", follow=True).content.decode()
    assert "Revoked: Allow desk:send_email" in page
    assert not Policy.objects.exists()
    assert "not there any more" in client.get(f"/policies/{policy.pk}/revoke").content.decode()


def test_another_operator_s_rule_is_left_to_admins(
    grant: Grant, bob: User, ada: User, client_for: ClientFor
) -> None:
    policy = grant()
    assert "Ask an admin" in client_for(bob).get(f"/policies/{policy.pk}/revoke").content.decode()
    assert client_for(bob).post(f"/policies/{policy.pk}/revoke").status_code == 403
    assert client_for(ada).post(f"/policies/{policy.pk}/revoke").status_code == 302
    assert not Policy.objects.exists()


def test_viewers_and_other_accounts_revoke_nothing(
    grant: Grant, vera: User, otto: User, client_for: ClientFor
) -> None:
    policy = grant()
    assert client_for(vera).post(f"/policies/{policy.pk}/revoke").status_code == 403
    assert client_for(otto).post(f"/policies/{policy.pk}/revoke").status_code == 404
    assert "send_email" not in client_for(otto).get("/policies").content.decode()
    assert Policy.objects.exists()


def test_rules_are_paged_by_id(grant: Grant, vera: User, client_for: ClientFor) -> None:
    made = [grant(f"tool_{number}") for number in range(55)]
    client = client_for(vera)
    first = client.get("/policies").content.decode()
    assert "tool_54" in first
    assert "Older policies" in first
    assert "tool_0 " in client.get(f"/policies?before={made[5].pk}").content.decode()
