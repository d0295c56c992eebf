"""Changing a rule: its end and note, suspending and renewing it, and the record of who did it (R9, R27, R28)."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable

import pytest
from django.utils import timezone

from approvals import pins, policies
from approvals.facts import Effect
from approvals.models import Policy, Source
from approvals.policies import grant, rule_sentence
from runs.access import Actor
from runs.errors import ModelValidationError, NotAllowed, NotFound, StateConflict
from runs.gate import Verdict
from runs.models import Account, LedgerEntry, Round, Run, Server, User
from tests.services.policy_helpers import grant_as_shown, rule

Acting = Callable[[User], Actor]
VerdictOn = Callable[..., Verdict]
MakeRun = Callable[..., Run]
MakeRound = Callable[..., Round]


@pytest.fixture
def policy(acting: Acting, ada: User, account: Account, desk: Server) -> Policy:
    return grant_as_shown(acting(ada), rule(account), note="weekly mails")


def changes() -> list[tuple[str, str]]:
    return [
        (entry.action.removeprefix("policy."), entry.actor_name)
        for entry in LedgerEntry.objects.filter(action__startswith="policy.").order_by("seq")
    ]


def test_an_admin_sets_the_end_and_the_note_of_a_rule(acting: Acting, ada: User, policy: Policy) -> None:
    until = timezone.now() + dt.timedelta(days=3)
    policies.edit(acting(ada), policy.pk, expires_at=until, note="for May")

    policy.refresh_from_db()
    assert (policy.expires_at, policy.note) == (until, "for May")
    details = LedgerEntry.objects.get(action="policy.edited").facts
    assert (details["before"]["note"], details["after"]["note"]) == ("weekly mails", "for May")
    assert details["before"]["expires_at"] is None


def test_an_edit_that_changes_nothing_is_not_recorded(acting: Acting, ada: User, policy: Policy) -> None:
    policies.edit(acting(ada), policy.pk, expires_at=None, note="weekly mails")
    assert changes() == [("made", "ada")]


def test_the_end_of_a_rule_lies_ahead_and_an_expired_rule_is_made_anew(
    acting: Acting, ada: User, policy: Policy
) -> None:
    past = timezone.now() - dt.timedelta(seconds=1)
    with pytest.raises(ModelValidationError, match="revoke"):
        policies.edit(acting(ada), policy.pk, expires_at=past, note="")
    with pytest.raises(ModelValidationError, match="500"):
        policies.edit(acting(ada), policy.pk, expires_at=None, note="x" * 501)
    Policy.objects.update(expires_at=past)
    for change in (
        lambda: policies.edit(acting(ada), policy.pk, expires_at=None, note=""),
        lambda: policies.renew(acting(ada), policy.pk),
    ):
        with pytest.raises(StateConflict, match="Make it anew"):
            change()
    policy.refresh_from_db()
    assert (policy.expires_at, policy.note) == (past, "weekly mails")


def test_a_suspended_rule_asks_with_the_reason_also_inside_a_live_run(
    acting: Acting, ada: User, policy: Policy, make_run: MakeRun, verdict_on: VerdictOn
) -> None:
    run = make_run()
    assert verdict_on(run).effect == "allow"

    policies.suspend(acting(ada), policy.pk, "  Too many mails.  ")

    verdict = verdict_on(run)
    assert (verdict.effect, verdict.code, verdict.remember) == ("ask", "suspended", ())
    assert "Too many mails." in verdict.reason
    assert LedgerEntry.objects.get(action="policy.suspended").facts["reason"] == "Too many mails."


@pytest.mark.parametrize("reason", ["", "   ", "x" * 301])
def test_suspending_needs_a_reason_that_fits(acting: Acting, ada: User, policy: Policy, reason: str) -> None:
    with pytest.raises(ModelValidationError, match="why"):
        policies.suspend(acting(ada), policy.pk, reason)


@pytest.mark.parametrize("effect", [Effect.DENY, Effect.ASK])
def test_only_an_allow_can_be_suspended(acting: Acting, ada: User, account: Account, effect: Effect) -> None:
    held = grant(acting(ada), rule(account, effect=effect), source=Source.API)
    with pytest.raises(ModelValidationError, match="Revoke"):
        policies.suspend(acting(ada), held.pk, "No more.")


def test_renewing_lifts_a_suspension_and_closes_the_calls_that_wait(
    acting: Acting, ada: User, policy: Policy, make_round: MakeRound
) -> None:
    policies.suspend(acting(ada), policy.pk, "Under review.")
    waiting = make_round()

    renewed = policies.renew(acting(ada), policy.pk)

    waiting.refresh_from_db()
    assert (waiting.outcome, waiting.context["allowed_by"]["rule_id"]) == ("allowed", policy.pk)
    assert renewed.suspended_reason == ""


def test_renewing_pins_what_is_offered_now(
    acting: Acting, ada: User, policy: Policy, desk: Server, make_run: MakeRun, verdict_on: VerdictOn
) -> None:
    desk.tools.filter(name="send_email").update(digest="sha256:other")
    assert verdict_on(make_run()).code == "suspended"

    policies.renew(acting(ada), policy.pk)

    assert verdict_on(make_run()).code == "allow_rule"
    assert pins.is_pinned(Policy.objects.get())


def test_an_operator_cannot_lift_what_an_admin_suspended_by_remembering(
    acting: Acting, ada: User, alice: User, account: Account, policy: Policy
) -> None:
    policies.suspend(acting(ada), policy.pk, "Under review.")
    with pytest.raises(NotAllowed, match="Under review"):
        grant(acting(alice), rule(account), source=Source.RUN_APPROVAL)
    policy.refresh_from_db()
    assert policy.suspended_reason == "Under review."


def test_changing_rules_needs_an_admin_of_the_account(
    acting: Acting, alice: User, otto: User, policy: Policy
) -> None:
    attempts = (
        lambda actor: policies.edit(actor, policy.pk, expires_at=None, note="mine"),
        lambda actor: policies.suspend(actor, policy.pk, "mine"),
        lambda actor: policies.renew(actor, policy.pk),
    )
    for attempt in attempts:
        with pytest.raises(NotAllowed):
            attempt(acting(alice))
        with pytest.raises(NotFound):
            attempt(acting(otto))
    assert changes() == [("made", "ada")]


def test_every_change_says_who_made_it_and_stays_when_the_rule_is_gone(
    acting: Acting, ada: User, policy: Policy, account: Account
) -> None:
    actor = acting(ada)
    policies.suspend(actor, policy.pk, "Under review.")
    policies.renew(actor, policy.pk)
    number, sentence = policy.pk, rule_sentence(policy)
    policies.revoke(actor, policy.pk)
    grant(None, rule(account), source=Source.API)

    assert changes() == [
        ("made", "ada"),
        ("suspended", "ada"),
        ("renewed", "ada"),
        ("revoked", "ada"),
        ("made", "installation"),
    ]
    gone = LedgerEntry.objects.get(action="policy.revoked")
    assert (gone.subject, gone.facts, gone.actor) == (f"policy {number}", {"sentence": sentence}, ada)


def test_a_change_that_fails_leaves_no_record(
    acting: Acting, ada: User, account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise RuntimeError("no")

    monkeypatch.setattr("approvals.resolutions.close_covered", fails)
    with pytest.raises(RuntimeError):
        grant(acting(ada), rule(account), source=Source.API)
    assert not LedgerEntry.objects.exists()


def test_rules_that_nothing_used_for_thirty_days_are_unused(account: Account, make_run: MakeRun) -> None:
    now = timezone.now()
    ages = {"old": (40, None), "idle": (90, 31), "used": (90, 29), "new": (29, None)}
    for tool, (made, used) in ages.items():
        row = grant(None, rule(account, f"desk:{tool}"), source=Source.API)
        Policy.objects.filter(pk=row.pk).update(
            created_at=now - dt.timedelta(days=made),
            last_used_at=None if used is None else now - dt.timedelta(days=used),
        )
    once = grant(None, rule(account, run=make_run()), source=Source.API)
    Policy.objects.filter(pk=once.pk).update(created_at=now - dt.timedelta(days=90))

    unused = Policy.objects.filter(account=account).unused(now)
    assert set(unused.values_list("target_tool", flat=True)) == {"old", "idle"}
