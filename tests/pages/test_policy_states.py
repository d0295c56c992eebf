"""The list of rules by state: in force, suspended, expired, unused for long (R27, R28)."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable

import pytest
from django.test import Client
from django.utils import timezone

from approvals import policy_lists
from approvals.facts import Effect
from approvals.models import Policy, Source
from approvals.policies import grant
from runs.models import Account, Server, User
from tests.pages.policy_pages import text_of
from tests.services.policy_helpers import rule

LONG_AGO = dt.timedelta(days=31)


@pytest.fixture
def vera_at(vera: User, desk: Server, client_for: Callable[[User], Client]) -> Client:
    return client_for(vera)


@pytest.fixture
def rules(account: Account, desk: Server) -> dict[str, Policy]:
    """One rule of every state, and one that is in none but in force."""
    made = {
        name: grant(None, rule(account, target), source=Source.API)
        for name, target in (
            ("in_force", "desk:get_customer"),
            ("held", "desk:send_email"),
            ("changed", "desk:refund"),
            ("partly", "desk"),
            ("expired", "mail"),
            ("unused", "shop"),
        )
    }
    now = timezone.now()
    Policy.objects.filter(pk=made["held"].pk).update(suspended_reason="Under review.")
    Policy.objects.filter(pk=made["expired"].pk).update(expires_at=now)
    Policy.objects.filter(pk=made["unused"].pk).update(created_at=now - LONG_AGO)
    desk.tools.filter(name="refund").update(digest="sha256:other")
    return made


def listed(client: Client, query: str, rules: dict[str, Policy]) -> set[str]:
    page = client.get(f"/policies?{query}").content.decode()
    return {name for name, policy in rules.items() if f'id="policy-{policy.pk}"' in page}


def test_rules_filter_by_state(vera_at: Client, rules: dict[str, Policy]) -> None:
    assert listed(vera_at, "", rules) == set(rules)
    assert listed(vera_at, "state=in_force", rules) == {"in_force", "partly", "unused"}
    assert listed(vera_at, "state=suspended", rules) == {"held", "changed", "partly"}
    assert listed(vera_at, "state=expired", rules) == {"expired"}
    assert listed(vera_at, "state=unused", rules) == {"unused"}
    assert listed(vera_at, "state=suspended&q=desk:", rules) == {"held", "changed", "partly"}
    assert listed(vera_at, "state=suspended&q=refund", rules) == {"changed"}
    assert listed(vera_at, "state=nonsense", rules) == set(rules)


def test_each_state_is_said_in_a_word(vera_at: Client, rules: dict[str, Policy]) -> None:
    text = text_of(vera_at.get("/policies"))
    for words in ("Suspended for 1 tool", "suspended: Under review.", "not used yet"):
        assert words in text
    # Once as a choice of the filter, once beside the rule.
    assert text.count("Unused for 30 days") == 2
    assert text.count("Expired") == 2


def test_a_rule_that_was_used_lately_or_is_young_is_not_unused(
    vera_at: Client, rules: dict[str, Policy]
) -> None:
    Policy.objects.filter(pk=rules["unused"].pk).update(last_used_at=timezone.now())
    assert listed(vera_at, "state=unused", rules) == set()
    assert text_of(vera_at.get("/policies")).count("Unused for 30 days") == 1


def test_a_page_of_a_state_is_filled_from_as_many_rules_as_it_takes(
    vera_at: Client, account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(policy_lists, "_BATCH", 3)
    monkeypatch.setattr(policy_lists, "PAGE", 2)
    made = {}
    for number in range(12):
        policy = grant(None, rule(account, f"shop:tool_{number}"), source=Source.API)
        made[str(number)] = policy
        if number % 4:
            Policy.objects.filter(pk=policy.pk).update(suspended_reason="Not now.")
    assert listed(vera_at, "state=in_force", made) == {"8", "4"}
    assert listed(vera_at, f"state=in_force&before={made['4'].pk}", made) == {"0"}
    page = vera_at.get("/policies?state=in_force").content.decode()
    assert f"before={made['4'].pk}" in page
    assert "Older policies" not in text_of(vera_at.get(f"/policies?state=in_force&before={made['4'].pk}"))


def test_deny_and_ask_rules_are_never_suspended(vera_at: Client, account: Account, desk: Server) -> None:
    made = {"deny": grant(None, rule(account, "desk:refund", Effect.DENY), source=Source.API)}
    desk.tools.filter(name="refund").update(digest="sha256:other")
    assert listed(vera_at, "state=suspended", made) == set()
    assert listed(vera_at, "state=in_force", made) == {"deny"}
