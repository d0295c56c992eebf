"""Making and taking back rules, and the one sentence that says what a rule does (R23, R26, R27, R30)."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable

import pytest
from django.utils import timezone

from approvals.facts import Effect, Scope
from approvals.models import Policy, Source
from approvals.policies import Rule, grant, preview, remembering, revoke, rule_sentence, rule_text
from runs.access import Actor
from runs.errors import ModelValidationError, NotAllowed, NotFound
from runs.gate import Verdict
from runs.models import Account, EndUser, Round, Run, Server, User

Acting = Callable[[User], Actor]
VerdictOn = Callable[..., Verdict]
MakeRun = Callable[..., Run]


def account_rule(account: Account, *, target: str = "desk:send_email", **fields: object) -> Rule:
    return Rule(account=account, effect=Effect.ALLOW, scope=Scope.ACCOUNT, target=target, **fields)  # type: ignore[arg-type]


def test_granting_twice_returns_the_same_row(
    acting: Acting, ada: User, account: Account, desk: Server
) -> None:
    first = grant(acting(ada), account_rule(account), source=Source.API, note="weekly mails")
    second = grant(acting(ada), account_rule(account), source=Source.API)

    assert first.pk == second.pk
    assert (second.note, second.created_by, second.source) == ("weekly mails", ada, "api")
    assert Policy.objects.count() == 1


def test_effects_scopes_and_targets_are_rows_of_their_own(
    acting: Acting, ada: User, account: Account, customer: EndUser
) -> None:
    actor = acting(ada)
    grant(actor, account_rule(account), source=Source.API)
    grant(actor, account_rule(account, target="post"), source=Source.API)
    deny = Rule(account=account, effect=Effect.DENY, scope=Scope.ACCOUNT, target="desk")
    grant(actor, deny, source=Source.API)
    user = Rule(account=account, effect=Effect.ALLOW, scope=Scope.USER, target="post", end_user=customer)
    grant(actor, user, source=Source.API)

    assert Policy.objects.count() == 4


def test_a_rule_pins_the_server_and_the_tools_that_it_covers(account: Account, desk: Server) -> None:
    one = grant(None, account_rule(account), source=Source.API)
    whole = grant(None, account_rule(account, target="desk"), source=Source.API)

    assert one.pinned_identity == whole.pinned_identity == desk.identity
    assert list(one.pinned_tools) == ["send_email"]
    assert set(whole.pinned_tools) == {"send_email", "get_customer", "refund"}


def test_granting_again_keeps_the_later_expiry(acting: Acting, ada: User, account: Account) -> None:
    soon, late = timezone.now() + dt.timedelta(days=1), timezone.now() + dt.timedelta(days=9)
    actor = acting(ada)
    grant(actor, account_rule(account, expires_at=late), source=Source.API)

    assert grant(actor, account_rule(account, expires_at=soon), source=Source.API).expires_at == late
    assert grant(actor, account_rule(account), source=Source.API).expires_at is None


def test_an_expired_rule_no_longer_decides(
    account: Account, make_run: MakeRun, verdict_on: VerdictOn
) -> None:
    past = timezone.now() - dt.timedelta(seconds=1)
    grant(None, account_rule(account, expires_at=past), source=Source.API)

    assert verdict_on(make_run()).code == "no_rule"


def test_only_admins_write_rules_down_and_operators_only_remember(
    acting: Acting, alice: User, vera: User, account: Account
) -> None:
    with pytest.raises(NotAllowed):
        grant(acting(alice), account_rule(account), source=Source.API)
    with pytest.raises(NotAllowed):
        grant(acting(vera), account_rule(account), source=Source.RUN_APPROVAL)

    assert grant(acting(alice), account_rule(account), source=Source.RUN_APPROVAL).created_by == alice


def test_owners_of_another_account_look_as_if_they_did_not_exist(
    acting: Acting, ada: User, account: Account, other_account: Account
) -> None:
    stranger = EndUser.objects.create(account=other_account, user_id="cust_123")
    foreign = [
        account_rule(other_account),
        Rule(account=account, effect=Effect.ALLOW, scope=Scope.USER, target="desk", end_user=stranger),
    ]
    for rule in foreign:
        with pytest.raises(NotFound):
            grant(acting(ada), rule, source=Source.API)
    with pytest.raises(NotFound):
        grant(None, foreign[1], source=Source.API)
    assert not Policy.objects.exists()


@pytest.mark.parametrize(
    "target", ["", ":", "desk:", ":send_email", "desk*", "desk:*", "desk: x", "de sk:x", "desk:" + "x" * 201]
)
def test_what_is_no_target_is_refused(acting: Acting, ada: User, account: Account, target: str) -> None:
    with pytest.raises(ModelValidationError, match="server:tool"):
        grant(acting(ada), account_rule(account, target=target), source=Source.API)


def test_a_tool_name_is_split_from_its_server_at_the_first_colon(
    acting: Acting, ada: User, account: Account
) -> None:
    policy = grant(acting(ada), account_rule(account, target="desk:a:b"), source=Source.API)

    assert (policy.target_server, policy.target_tool, policy.target) == ("desk", "a:b", "desk:a:b")


def test_rules_match_exactly_their_scope(
    account: Account, make_run: MakeRun, verdict_on: VerdictOn, customer: EndUser
) -> None:
    mine, theirs, nobodys = make_run(user_id="cust_123"), make_run(user_id="cust_9"), make_run()
    grant(
        None,
        Rule(
            account=account,
            effect=Effect.ALLOW,
            scope=Scope.USER,
            target="desk:send_email",
            end_user=customer,
        ),
        source=Source.API,
    )
    grant(None, account_rule(account, target="desk:refund"), source=Source.API)
    once = Rule(account=account, effect=Effect.ALLOW, scope=Scope.RUN, target="desk:refund", run=theirs)
    grant(None, once, source=Source.API)

    allowed = {
        (name, target): verdict_on(run, target).effect == "allow"
        for name, run in {"mine": mine, "theirs": theirs, "nobodys": nobodys}.items()
        for target in ("desk:send_email", "desk:refund")
    }
    assert [key for key, is_allowed in allowed.items() if is_allowed] == [
        ("mine", "desk:send_email"),
        ("theirs", "desk:refund"),
        ("nobodys", "desk:refund"),
    ]


def test_a_deny_rule_of_the_account_reaches_every_user(
    account: Account, make_run: MakeRun, verdict_on: VerdictOn
) -> None:
    deny = Rule(account=account, effect=Effect.DENY, scope=Scope.ACCOUNT, target="desk")
    grant(None, deny, source=Source.API)

    assert verdict_on(make_run(user_id="cust_123")).code == "deny_rule"


def test_revoking_deletes_the_row_and_the_next_call_of_the_live_run_asks(
    acting: Acting, ada: User, account: Account, make_run: MakeRun, verdict_on: VerdictOn
) -> None:
    run = make_run()
    policy = grant(acting(ada), account_rule(account), source=Source.API)
    assert verdict_on(run).effect == "allow"

    revoke(acting(ada), policy.pk)

    assert not Policy.objects.exists()
    assert verdict_on(run).effect == "ask"


def test_operators_revoke_what_they_made_and_nothing_else(
    acting: Acting, ada: User, alice: User, bob: User, vera: User, otto: User, account: Account
) -> None:
    made = grant(acting(alice), account_rule(account), source=Source.RUN_APPROVAL)
    for user, refusal in ((bob, NotAllowed), (vera, NotAllowed), (otto, NotFound)):
        with pytest.raises(refusal):
            revoke(acting(user), made.pk)
    revoke(acting(alice), made.pk)

    again = grant(acting(alice), account_rule(account), source=Source.RUN_APPROVAL)
    revoke(acting(ada), again.pk)
    assert not Policy.objects.exists()


def test_a_new_rule_closes_pending_cards_whoever_makes_it(
    acting: Acting, ada: User, account: Account, make_round: Callable[..., Round]
) -> None:
    covered, other = make_round(), make_round(tool="desk:refund")

    policy = grant(acting(ada), account_rule(account), source=Source.API)

    covered.refresh_from_db()
    other.refresh_from_db()
    assert (covered.outcome, covered.decided_via, covered.decided_by) == ("allowed", "rule", None)
    assert covered.context["allowed_by"] == {"rule_id": policy.pk, "text": rule_sentence(policy)}
    assert other.status == "pending"


def test_the_text_shown_before_saving_is_the_text_of_the_stored_rule(
    acting: Acting, ada: User, account: Account, make_run: MakeRun
) -> None:
    plain, carried = make_run(), make_run(user_id="cust_123")
    for run, scope, days in ((plain, "run", None), (plain, "account", 7), (carried, "user", 30)):
        shown = preview(run, "desk:send_email", scope, days)
        stored = grant(
            acting(ada), remembering(run, "desk:send_email", Scope(scope), days), source=Source.RUN_APPROVAL
        )
        assert rule_sentence(stored) == shown


def test_the_sentence_names_effect_target_owner_and_end() -> None:
    until = dt.datetime(2030, 5, 6, tzinfo=dt.UTC)

    def text(effect: Effect, scope: Scope, target: str, **fields: object) -> str:
        facts = {"user_id": None, "run_id": None, "expires_at": None, **fields}
        return rule_text(effect=effect, scope=scope, target=target, **facts)  # type: ignore[arg-type]

    assert (
        text(Effect.ALLOW, Scope.RUN, "desk:refund", run_id=7) == "Allow desk:refund for the rest of run 7."
    )
    assert text(Effect.ALLOW, Scope.USER, "desk:refund", user_id="cust_1", expires_at=until) == (
        "Allow desk:refund in every run for the user cust_1, until 6 May 2030, 00:00 UTC."
    )
    assert text(Effect.ALLOW, Scope.ACCOUNT, "desk") == (
        "Allow every tool of desk in every run of this account that carries no user, until it is revoked."
    )
    assert text(Effect.DENY, Scope.ACCOUNT, "desk:refund") == (
        "Deny desk:refund in every run of this account, until it is revoked."
    )


def test_hidden_characters_in_names_are_shown_in_the_sentence() -> None:
    text = rule_text(
        effect=Effect.ALLOW,
        target="desk:refund\u202e",
        scope=Scope.USER,
        user_id="a\u200bb",
        run_id=None,
        expires_at=None,
    )

    assert not {"\u202e", "\u200b"} & set(text)
    assert "U+202E" in text


@pytest.mark.parametrize("days", [0, -1, 3651, True, 1.5])
def test_a_rule_expires_after_a_sensible_number_of_days(make_run: MakeRun, days: int) -> None:
    with pytest.raises(ModelValidationError, match="1 to 3650"):
        preview(make_run(), "desk:send_email", "run", days)


@pytest.mark.parametrize(
    ("user_id", "scope"), [(None, "user"), ("cust_123", "account"), (None, "everywhere")]
)
def test_a_scope_that_the_run_does_not_have_is_refused(
    make_run: MakeRun, user_id: str | None, scope: str
) -> None:
    with pytest.raises(ModelValidationError):
        preview(make_run(user_id=user_id), "desk:send_email", scope)


def test_remembering_what_an_admin_allowed_for_a_time_leaves_that_time_alone(
    acting: Acting, ada: User, alice: User, account: Account
) -> None:
    end = timezone.now() + dt.timedelta(days=1)
    written = grant(acting(ada), account_rule(account, expires_at=end), source=Source.API)

    grant(acting(alice), account_rule(account), source=Source.RUN_APPROVAL)

    written.refresh_from_db()
    assert (written.expires_at, written.created_by) == (end, ada)
