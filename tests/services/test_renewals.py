"""A rule that a change has suspended: what has changed is shown, and an admin renews it for exactly that (R28)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.conf import settings

from approvals import changes, pins, renewals
from approvals.batch import why_alone
from approvals.cards import card_for
from approvals.facts import Effect, Scope
from approvals.gate import PolicyGate, evaluate
from approvals.models import Policy, Source
from approvals.policies import grant
from approvals.rules import Rule
from runs import definitions
from runs.access import Actor, actor_for
from runs.canonical import digest
from runs.errors import NotAllowed, NotFound, StateConflict
from runs.gate import Verdict
from runs.mcp_client import ToolDefinition
from runs.models import Account, Round, Run, Server, Tool, User
from runs.tool_rows import store_tools

VerdictOn = Callable[..., Verdict]
MakeRun = Callable[..., Run]
MakeRound = Callable[..., Round]


@pytest.fixture
def admin(ada: User) -> Actor:
    return actor_for(ada)


def mail(maximum: int, name: str = "send_email") -> ToolDefinition:
    schema = {"type": "object", "properties": {"amount": {"type": "number", "maximum": maximum}}}
    return ToolDefinition(
        name=name,
        title=None,
        description="Sends it.",
        input_schema=schema,
        output_schema=None,
        annotations={},
        digest=digest([name, schema]),
    )


@pytest.fixture
def grown(desk: Server, account: Account) -> Policy:
    """A rule for desk:send_email, which has grown since it was made."""
    store_tools(desk, [mail(100)])
    policy = allow(account, "desk:send_email")
    store_tools(desk, [mail(10_000)])
    return policy


def allow(account: Account, target: str) -> Policy:
    rule = Rule(account=account, effect=Effect.ALLOW, scope=Scope.ACCOUNT, target=target)
    return grant(None, rule, source=Source.API)


def asked(make_round: MakeRound, make_run: MakeRun) -> Round:
    """The pause of a call as the worker opens it: with the gate's own verdict."""
    round_ = make_round(run=make_run())
    verdict = dict(PolicyGate().decide(round_.run, round_.turn, round_.step.call).as_json())  # type: ignore[union-attr]
    round_.context = {**round_.context, "verdict": verdict}
    round_.save()
    return Round.objects.for_cards().get(pk=round_.pk)


def sentences(card: Any) -> list[str]:
    return [one.sentence for one in card.changed.differences]


def test_a_card_of_a_suspended_rule_shows_what_has_changed(
    grown: Policy, make_round: MakeRound, make_run: MakeRun, admin: Actor
) -> None:
    card = card_for(asked(make_round, make_run), admin)
    assert sentences(card) == ["Argument amount: maximum 100 → 10000."]
    assert card.renewal is not None
    assert (card.renewal.policy_id, card.renewal.in_view, card.renewal.may) == (grown.pk, True, True)
    assert not card.stale


def test_renewing_lets_the_waiting_call_go_by_the_rule(
    grown: Policy, make_round: MakeRound, make_run: MakeRun, admin: Actor
) -> None:
    round_ = asked(make_round, make_run)
    renewal = renewals.renewal_of(admin, grown.pk)
    assert renewal is not None
    renewals.renew(admin, grown.pk, renewal.token)

    round_.refresh_from_db()
    assert (round_.outcome, round_.decided_via) == ("allowed", "rule")
    assert round_.context["allowed_by"]["rule_id"] == grown.pk
    assert renewals.renewal_of(admin, grown.pk) is None
    with pytest.raises(StateConflict, match="renewed it already"):
        renewals.renew(admin, grown.pk, renewal.token)


def test_a_change_that_nobody_has_seen_is_not_renewed(grown: Policy, desk: Server, admin: Actor) -> None:
    renewal = renewals.renewal_of(admin, grown.pk)
    assert renewal is not None
    store_tools(desk, [mail(1_000_000)])
    with pytest.raises(StateConflict, match="changed again since you looked"):
        renewals.renew(admin, grown.pk, renewal.token)
    grown.refresh_from_db()
    assert grown.pinned_tools == {"send_email": mail(100).digest}


def test_a_card_that_shows_an_older_change_leads_to_the_present_one(
    grown: Policy, desk: Server, make_round: MakeRound, make_run: MakeRun, admin: Actor
) -> None:
    round_ = asked(make_round, make_run)
    store_tools(desk, [mail(1_000_000)])
    card = card_for(round_, admin)
    assert card.stale
    assert sentences(card) == ["Argument amount: maximum 100 → 10000."], "what it asked because of"
    assert card.renewal is not None
    assert not card.renewal.in_view


def test_only_an_admin_of_the_account_renews(grown: Policy, alice: User, otto: User) -> None:
    operator = actor_for(alice)
    renewal = renewals.renewal_of(operator, grown.pk)
    assert renewal is not None
    assert not renewal.may
    with pytest.raises(NotAllowed):
        renewals.renew(operator, grown.pk, renewal.token)
    assert renewals.renewal_of(actor_for(otto), grown.pk) is None
    with pytest.raises(NotFound):
        renewals.shown(actor_for(otto), grown.pk)


def test_a_rule_on_a_server_names_every_tool_that_renewing_would_accept(
    desk: Server, account: Account, admin: Actor
) -> None:
    store_tools(desk, [mail(1), mail(1, "refund")])
    policy = allow(account, "desk")
    store_tools(desk, [mail(1), mail(2, "refund"), mail(1, "fly")])
    _, renewal, found = renewals.shown(admin, policy.pk)
    assert renewal is not None
    assert renewal.tools == 2
    assert [one.tool for one in found] == ["desk:fly", "desk:refund"]
    assert found[0].differences[0].sentence == "The tool fly is new."
    assert [one.sentence for one in found[1].differences] == ["Argument amount: maximum 1 → 2."]


def test_another_server_is_shown_by_both_addresses_without_secrets(
    desk: Server,
    account: Account,
    admin: Actor,
    make_round: MakeRound,
    make_run: MakeRun,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    entries = settings.M3.stdio_servers
    monkeypatch.setitem(entries, "desk", {"command": "desk-server", "args": ["--token", "s3cret"]})
    desk.identity = pins.look(account, "desk", "send_email").identity or ""
    desk.save()
    policy = allow(account, "desk:send_email")
    definitions.keep_present_address(desk)
    monkeypatch.setitem(entries, "desk", {"command": "evil-server", "args": ["--token", "s3cret"]})
    card = card_for(asked(make_round, make_run), admin)
    (moved,) = card.changed.differences if card.changed else ()
    assert moved.before == "desk-server --token '[redacted]'"
    assert moved.after == "evil-server --token '[redacted]'", "although nobody has looked at it yet"
    assert card.renewal is None, "the turn began with the other server, which no rule heals"
    _, renewal, found = renewals.shown(admin, policy.pk)
    assert renewal is not None
    assert found[0].differences == (moved,)


def test_an_earlier_text_that_is_not_kept_is_said_and_the_present_one_shown_in_full(
    desk: Server, account: Account, make_round: MakeRound, make_run: MakeRun, admin: Actor
) -> None:
    allow(account, "desk:send_email")
    Tool.objects.filter(name="send_email").update(digest="sha256:other")
    card = card_for(asked(make_round, make_run), admin)
    assert card.changed is not None
    assert card.changed.notes == (changes.LOST,)
    assert card.changed.differences[0].sentence.startswith("Argument to: added")


def test_a_card_says_when_its_tool_has_changed_since_it_was_asked(
    desk: Server, make_round: MakeRound, make_run: MakeRun, admin: Actor
) -> None:
    round_ = asked(make_round, make_run)
    assert not card_for(round_, admin).stale
    Tool.objects.filter(name="send_email").update(risk="money")
    assert card_for(round_, admin).stale


def test_a_call_that_asks_because_of_a_change_is_decided_alone(
    grown: Policy, make_round: MakeRound, make_run: MakeRun, admin: Actor
) -> None:
    round_ = asked(make_round, make_run)
    call = round_.step.call  # type: ignore[union-attr]
    why = why_alone(round_, evaluate(round_.run, round_.turn, call))
    assert why is not None
    assert "is suspended" in why


def test_policies_keep_the_definitions_that_they_were_made_for(grown: Policy) -> None:
    assert mail(100).digest in pins.pinned_digests(grown.account_id)
