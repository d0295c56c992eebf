"""A rule that an admin writes is looked at first, which changes nothing, and saved as it was seen."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from approvals import exchange, writing
from approvals.exchange import Fate, Imported, import_, preview
from approvals.facts import Effect
from approvals.models import Policy, Source
from approvals.rehearsal import UnconfirmedRule
from approvals.writing import Written
from runs.access import Actor
from runs.errors import ModelValidationError, NotAllowed
from runs.models import Account, EndUser, Run, Server, User
from tests.services.policy_helpers import decided_at_once, grant_as_shown, rule

Acting = Callable[[User], Actor]

NEW_USER = Written(effect=Effect.ALLOW, target="desk:refund", user_id="cust_new")


@pytest.fixture
def actor(acting: Acting, ada: User, desk: Server) -> Actor:
    return acting(ada)


def test_looking_stores_neither_the_rule_nor_its_end_user(actor: Actor) -> None:
    seen = writing.preview(actor, NEW_USER)
    assert "for the user cust_new" in seen.rehearsal.rule.sentence
    assert not Policy.objects.exists()
    assert not EndUser.objects.exists()


def test_what_was_seen_is_saved_for_an_end_user_who_is_new_too(actor: Actor) -> None:
    """The confirmation holds although the end user of the look was never stored; another one comes in between."""
    seen = writing.preview(actor, NEW_USER)
    EndUser.objects.create(account=actor.account, user_id="somebody_else")
    policy = writing.write(actor, NEW_USER, shown=seen.rehearsal.digest, confirmed=True)
    assert (policy.end_user.user_id if policy.end_user else "") == "cust_new"
    assert policy.source == Source.API


def test_what_was_seen_is_not_saved_without_the_confirmation(actor: Actor) -> None:
    seen = writing.preview(actor, NEW_USER)
    with pytest.raises(UnconfirmedRule):
        writing.write(actor, NEW_USER, shown=seen.rehearsal.digest, confirmed=False)
    with pytest.raises(UnconfirmedRule):
        writing.write(actor, NEW_USER, shown="", confirmed=True)
    assert not EndUser.objects.exists()


def test_a_look_says_which_rule_would_be_renewed(actor: Actor, account: Account) -> None:
    there = grant_as_shown(actor, rule(account))
    seen = writing.preview(actor, Written(effect=Effect.ALLOW, target="desk:send_email"))
    assert seen.existing == there
    assert writing.preview(actor, Written(effect=Effect.DENY, target="desk:send_email")).existing is None


def test_only_admins_look_and_write(acting: Acting, alice: User, desk: Server) -> None:
    with pytest.raises(NotAllowed):
        writing.preview(acting(alice), NEW_USER)
    with pytest.raises(NotAllowed):
        writing.write(acting(alice), NEW_USER, shown="", confirmed=True)


def test_an_import_is_previewed_rule_by_rule_and_changes_nothing(actor: Actor, account: Account) -> None:
    grant_as_shown(actor, rule(account), note="old")
    grant_as_shown(actor, rule(account, "desk:get_customer"))
    allow = {"effect": "allow"}
    data = {
        "version": 1,
        "rules": [
            {**allow, "target": "desk:send_email", "note": "new"},
            {**allow, "target": "desk:get_customer"},
            {"effect": "deny", "target": "mail", "user_id": "cust_new"},
            {"effect": "deny", "target": "mail", "expires_at": "2020-01-01T00:00:00Z"},
            {**allow, "target": "desk:refund"},
        ],
    }
    before = list(Policy.objects.values())

    plan = preview(actor, data)

    fates = [planned.fate for planned in plan.rules]
    assert fates == [Fate.CHANGED, Fate.UNCHANGED, Fate.MADE, Fate.EXPIRED, Fate.MADE]
    assert [finding.rule.target for finding in plan.findings] == ["desk:refund"]
    assert list(Policy.objects.values()) == before
    assert not EndUser.objects.exists()

    EndUser.objects.create(account=account, user_id="somebody_else")
    done = import_(actor, data, shown=plan.confirmation, confirmed=True, seen=plan.digest)
    assert done == Imported(made=2, changed=1, unchanged=1, expired=1)


def test_an_import_that_would_do_something_else_by_now_is_shown_again(actor: Actor, account: Account) -> None:
    data = {"version": 1, "rules": [{"effect": "deny", "target": "desk"}]}
    plan = preview(actor, data)
    grant_as_shown(actor, rule(account, "desk", Effect.DENY))
    with pytest.raises(UnconfirmedRule, match="something else by now"):
        import_(actor, data, seen=plan.digest)


def test_every_wrong_rule_is_named_at_once(actor: Actor) -> None:
    wrong = {"effect": "maybe", "target": "desk"}
    right = {"effect": "deny", "target": "desk"}
    with pytest.raises(ModelValidationError, match=r"^Rule 1: .* Another one is wrong\.") as refused:
        preview(actor, {"version": 1, "rules": [wrong, right, {**right, "note": 5}]})
    assert [mistake["rule"] for mistake in refused.value.details["mistakes"]] == [1, 3]


def test_no_more_mistakes_are_collected_than_are_told(actor: Actor) -> None:
    with pytest.raises(ModelValidationError) as refused:
        preview(actor, {"version": 1, "rules": [5] * 100})
    assert len(refused.value.details["mistakes"]) == 20


def test_a_preview_rehearses_what_comes_into_force(actor: Actor, make_run: Callable[..., Run]) -> None:
    decided_at_once(make_run(), "desk:send_email", allowed=True)
    plan = exchange.preview(
        actor, {"version": 1, "rules": [{"effect": "allow", "target": "desk:send_email"}]}
    )
    [planned] = plan.rules
    assert planned.rehearsal is not None
    assert planned.rehearsal.would_allow == 1
