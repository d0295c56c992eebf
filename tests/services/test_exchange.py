"""Rules as JSON: out of one account, into another, all of them or none, twice as well as once."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable
from typing import Any

import pytest
from django.utils import timezone

from approvals import policies
from approvals.decisions import decide
from approvals.exchange import MAX_RULES, Imported, export, import_
from approvals.facts import Effect
from approvals.models import Policy, Source
from approvals.policies import grant
from approvals.rehearsal import UnconfirmedRule
from runs.access import Actor
from runs.errors import ModelValidationError, NotAllowed
from runs.models import Account, EndUser, LedgerEntry, Role, Round, Run, Server, User
from tests.people import person
from tests.services.policy_helpers import grant_as_shown, matches, rule

Acting = Callable[[User], Actor]

DENY = {"approval": {"action": "accept", "content": {"decision": "deny"}}}


@pytest.fixture
def actor(acting: Acting, ada: User, desk: Server) -> Actor:
    return acting(ada)


@pytest.fixture
def stranger(acting: Acting, other_account: Account) -> Actor:
    """An admin of another account, whom a file may be given to."""
    return acting(person("olga", other_account, Role.ADMIN))


def wrapped(*rules: dict[str, Any]) -> dict[str, Any]:
    return {"version": 1, "rules": list(rules)}


def deny(target: str = "desk:refund", **fields: Any) -> dict[str, Any]:
    return {"effect": "deny", "target": target, **fields}


def test_what_is_exported_is_imported_elsewhere_as_the_same_rules(
    actor: Actor, stranger: Actor, account: Account, customer: EndUser, make_run: Callable[..., Run]
) -> None:
    until = timezone.now() + dt.timedelta(days=3)
    grant_as_shown(actor, rule(account, condition=(matches("to", "*@example.com"),)), note="us")
    grant(actor, rule(account, effect=Effect.DENY, expires_at=until), source=Source.API)
    held = grant(None, rule(account, "desk", end_user=customer), source=Source.API)
    policies.suspend(actor, held.pk, "Under review.")
    grant(None, rule(account, run=make_run()), source=Source.API)
    exported = export(account)

    done = import_(stranger, json.loads(json.dumps(exported)))

    assert done == Imported(made=3, changed=0, unchanged=0, expired=0)
    assert export(stranger.account) == exported
    assert Policy.objects.filter(account=stranger.account, pinned_identity="").count() == 3
    assert EndUser.objects.filter(account=stranger.account, user_id="cust_123").exists()


def test_importing_again_changes_nothing_and_leaves_no_record(actor: Actor, account: Account) -> None:
    data = wrapped(deny(), deny("desk", user_id="cust_5", note="never"))
    import_(actor, data)
    before = (list(Policy.objects.values()), LedgerEntry.objects.count())

    assert import_(actor, data) == Imported(made=0, changed=0, unchanged=2, expired=0)
    assert (list(Policy.objects.values()), LedgerEntry.objects.count()) == before


def test_an_existing_rule_is_made_to_say_what_the_file_says_and_others_stay(
    actor: Actor, account: Account
) -> None:
    kept = grant_as_shown(actor, rule(account, "desk:get_customer"))
    changed = grant_as_shown(actor, rule(account), note="old")
    entry = {"effect": "allow", "target": "desk:send_email", "note": "new", "suspended": "Not yet."}

    assert import_(actor, wrapped(entry)) == Imported(made=0, changed=1, unchanged=0, expired=0)

    changed.refresh_from_db()
    assert (changed.note, changed.suspended_reason) == ("new", "Not yet.")
    assert Policy.objects.filter(pk=kept.pk).exists()
    assert LedgerEntry.objects.filter(action="policy.edited", subject=f"policy {changed.pk}").count() == 1


def test_rules_that_have_expired_are_left_out_both_ways(actor: Actor, account: Account) -> None:
    past = timezone.now() - dt.timedelta(days=1)
    row = grant(None, rule(account), source=Source.API)
    Policy.objects.filter(pk=row.pk).update(expires_at=past)
    assert export(account)["rules"] == []

    assert import_(actor, wrapped(deny(expires_at="2020-01-01T00:00:00Z"))).expired == 1
    assert Policy.objects.count() == 1


def test_a_suspended_rule_closes_no_waiting_call_and_one_in_force_does(
    actor: Actor, make_round: Callable[..., Round]
) -> None:
    waiting = make_round()
    entry = {"effect": "allow", "target": "desk:send_email", "suspended": "Not yet."}
    import_(actor, wrapped(entry))
    waiting.refresh_from_db()
    assert waiting.status == "pending"

    import_(actor, wrapped({**entry, "suspended": ""}))
    waiting.refresh_from_db()
    assert waiting.outcome == "allowed"


def test_what_needs_a_confirmation_needs_one_for_all_and_it_is_bound_to_what_was_found(
    actor: Actor, acting: Acting, alice: User, make_round: Callable[..., Round], desk: Server
) -> None:
    decide(acting(alice), make_round().pk, DENY, idempotency_key="d")
    data = wrapped(
        {"effect": "allow", "target": "desk:send_email"}, {"effect": "allow", "target": "desk:refund"}, deny()
    )
    with pytest.raises(UnconfirmedRule, match="2 of these rules") as refused:
        import_(actor, data)
    found = refused.value.details
    assert [len(one["covered_denials"]) for one in found["rules"]] == [1, 0]
    assert not Policy.objects.exists()

    desk.tools.filter(name="refund").update(risk="money")
    with pytest.raises(UnconfirmedRule) as again:
        import_(actor, data, shown=found["confirmation"], confirmed=True)
    assert not Policy.objects.exists()
    shown = again.value.details["confirmation"]
    assert import_(actor, data, shown=shown, confirmed=True).made == 3
    assert import_(actor, data).unchanged == 3


@pytest.mark.parametrize(
    "wrong",
    [
        "desk",
        {"target": "desk"},
        deny(extra=1),
        deny(effect="maybe"),
        deny(effect=["deny"]),
        deny(target="desk*"),
        deny(target=5),
        deny(scope="run"),
        deny(scope="user"),
        deny(scope="account", user_id="cust_1"),
        deny(user_id=""),
        deny(user_id=5),
        deny(condition={"version": 1, "tests": []}),
        deny(expires_at="tomorrow"),
        deny(expires_at="2030-01-01T00:00:00"),
        deny(expires_at="2030-13-01T00:00:00Z"),
        deny(expires_at=5),
        deny(note="x" * 501),
        deny(note=None),
        deny(note="\ud800"),
        deny("desk:\x00"),
        deny("desk\n"),
        deny(suspended="Not yet."),
        {
            "effect": "allow",
            "target": "desk:refund",
            "condition": {"version": 1, "tests": [{"path": ["rows", 0], "kind": "equals", "value": 1}]},
        },
    ],
)
def test_one_wrong_rule_imports_nothing_and_is_named_by_its_number(actor: Actor, wrong: Any) -> None:
    with pytest.raises(ModelValidationError, match=r"^Rule 2: .*Nothing was imported\.") as refused:
        import_(actor, wrapped(deny("desk:send_email", user_id="cust_77"), wrong))
    assert refused.value.details["rule"] == 2
    assert not Policy.objects.exists()
    assert not EndUser.objects.filter(user_id="cust_77").exists()


@pytest.mark.parametrize(
    "data",
    [
        None,
        [],
        {},
        {"version": 2, "rules": []},
        {"version": True, "rules": []},
        {"version": 1, "rules": {}},
        {"version": 1, "rules": [], "more": 1},
        {"version": 1, "rules": [deny(f"desk:{n}") for n in range(MAX_RULES + 1)]},
    ],
)
def test_what_is_no_export_is_refused(actor: Actor, data: Any) -> None:
    with pytest.raises(ModelValidationError):
        import_(actor, data)


def test_the_same_rule_twice_is_refused(actor: Actor) -> None:
    with pytest.raises(ModelValidationError, match="Rules 1 and 3"):
        import_(actor, wrapped(deny(), deny("desk"), deny(note="again")))
    assert not Policy.objects.exists()


def test_importing_needs_an_admin(acting: Acting, alice: User, desk: Server) -> None:
    with pytest.raises(NotAllowed):
        import_(acting(alice), wrapped(deny()))


@pytest.mark.parametrize("end", ["9999-12-31T23:59:59-00:01", "0001-01-01T00:00:00+00:01"])
def test_an_end_beyond_the_calendar_is_a_mistake_in_words(acting: Any, ada: User, end: str) -> None:
    data = {"version": 1, "rules": [{"effect": "allow", "target": "desk:zz", "expires_at": end}]}
    with pytest.raises(ModelValidationError, match="expires_at is a moment"):
        import_(acting(ada), data)
