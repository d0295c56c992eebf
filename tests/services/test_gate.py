"""The gate collects its facts from the rows and decides by the one order (design section 7)."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.conf import settings

from approvals.facts import Effect, Scope
from approvals.models import Policy, Source
from approvals.policies import Rule, grant
from runs.gate import Verdict
from runs.models import Account, Run, Server, Tool

VerdictOn = Callable[..., Verdict]
MakeRun = Callable[..., Run]


def rule(account: Account, target: str, effect: Effect = Effect.ALLOW) -> Policy:
    return grant(
        None, Rule(account=account, effect=effect, scope=Scope.ACCOUNT, target=target), source=Source.API
    )


def test_a_write_asks_in_approval_mode_and_offers_to_remember(
    make_run: MakeRun, verdict_on: VerdictOn
) -> None:
    verdict = verdict_on(make_run())

    assert (verdict.effect, verdict.code, verdict.risk) == ("ask", "no_rule", "write")
    assert verdict.remember == ("run", "account")


def test_a_trusted_read_runs_in_approval_mode(make_run: MakeRun, verdict_on: VerdictOn) -> None:
    assert verdict_on(make_run(), "desk:get_customer").code == "safe"


def test_the_annotations_of_an_untrusted_server_count_for_nothing(
    make_run: MakeRun, verdict_on: VerdictOn, desk: Server
) -> None:
    Server.objects.filter(pk=desk.pk).update(trusted=False)

    assert verdict_on(make_run(), "desk:get_customer").effect == "ask"


def test_the_word_of_an_admin_beats_the_annotations(
    make_run: MakeRun, verdict_on: VerdictOn, desk: Server
) -> None:
    desk.tools.filter(name="get_customer").update(risk="strict")

    verdict = verdict_on(make_run(mode="autonomous"), "desk:get_customer")
    assert (verdict.effect, verdict.code, verdict.remember) == ("ask", "strict", ())


def test_a_high_stakes_call_never_preselects_remember(make_run: MakeRun, verdict_on: VerdictOn) -> None:
    verdict = verdict_on(make_run(), "desk:refund")

    assert (verdict.code, verdict.remember_preselected) == ("high_stakes", False)


def test_where_nobody_may_be_asked_an_ask_becomes_a_deny(make_run: MakeRun, verdict_on: VerdictOn) -> None:
    run = make_run()
    Run.objects.filter(pk=run.pk).update(human_input="fail")

    assert verdict_on(run).code == "human_input_required"


def test_before_a_plan_is_approved_only_safe_calls_run(make_run: MakeRun, verdict_on: VerdictOn) -> None:
    run = make_run(mode="plan")
    assert verdict_on(run).code == "plan_first"
    assert verdict_on(run, "desk:get_customer").effect == "allow"

    Run.objects.filter(pk=run.pk).update(plan_approved=True)
    assert verdict_on(run).effect == "ask"


def test_a_call_outside_the_selection_is_denied(make_run: MakeRun, verdict_on: VerdictOn) -> None:
    run = make_run(tools=["desk:refund"])

    assert verdict_on(run).code == "not_selected"
    assert verdict_on(run, "desk:refund").effect == "ask"


def test_a_selection_that_approves_lets_what_it_names_run(make_run: MakeRun, verdict_on: VerdictOn) -> None:
    assert verdict_on(make_run(tools=["desk:send_email"], tools_approve=True)).code == "selected"


def test_a_server_that_the_agent_does_not_have_is_denied_by_name(
    make_run: MakeRun, verdict_on: VerdictOn
) -> None:
    verdict = verdict_on(make_run(mode="autonomous"), "bank:transfer")

    assert verdict.effect == "deny"
    assert "Customer success has no server bank" in verdict.reason


def test_a_tool_that_the_server_never_had_is_denied_by_name(make_run: MakeRun, verdict_on: VerdictOn) -> None:
    verdict = verdict_on(make_run(mode="autonomous"), "desk:fly")

    assert verdict.effect == "deny"
    assert "fly" in verdict.reason


def test_a_server_that_was_never_listed_says_what_to_do(
    make_run: MakeRun, verdict_on: VerdictOn, desk: Server
) -> None:
    desk.tools.all().delete()

    assert "Test its connection" in verdict_on(make_run(mode="autonomous")).reason


def test_a_tool_that_vanished_during_the_turn_is_denied(
    make_run: MakeRun, verdict_on: VerdictOn, desk: Server
) -> None:
    run = make_run(mode="autonomous")
    desk.tools.filter(name="send_email").update(present=False)

    assert (verdict_on(run).effect, verdict_on(run).code) == ("deny", "removed")


def test_a_server_that_was_deleted_during_the_turn_is_denied(
    make_run: MakeRun, verdict_on: VerdictOn, desk: Server
) -> None:
    run = make_run(mode="autonomous")
    desk.delete()

    assert verdict_on(run).code == "removed"


def test_an_entry_that_the_host_took_away_is_denied(
    make_run: MakeRun, verdict_on: VerdictOn, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = make_run(mode="autonomous")
    monkeypatch.delitem(settings.M3.stdio_servers, "desk")

    assert verdict_on(run).code == "removed"


def test_an_entry_that_the_host_changed_asks_even_in_autonomous_mode(
    make_run: MakeRun, verdict_on: VerdictOn, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = make_run(mode="autonomous")
    monkeypatch.setitem(settings.M3.stdio_servers, "desk", {"command": "another-program"})

    assert (verdict_on(run).effect, verdict_on(run).code) == ("ask", "changed")


@pytest.mark.parametrize("appeared", [False, True], ids=["changed", "added"])
def test_a_definition_that_is_not_the_frozen_one_asks_even_in_autonomous_mode(
    make_run: MakeRun, verdict_on: VerdictOn, desk: Server, appeared: bool
) -> None:
    run = make_run(mode="autonomous")
    if appeared:
        Tool.objects.create(server=desk, name="fly", digest="sha256:fly")
    else:
        desk.tools.filter(name="send_email").update(digest="sha256:other")

    verdict = verdict_on(run, "desk:fly" if appeared else "desk:send_email")
    assert (verdict.effect, verdict.code, verdict.remember) == ("ask", "changed", ())


def test_tools_that_became_known_only_during_the_turn_are_not_called_changed(
    make_run: MakeRun, verdict_on: VerdictOn, desk: Server
) -> None:
    Tool.objects.all().delete()
    run = make_run(mode="autonomous")
    Tool.objects.create(server=desk, name="send_email", digest="sha256:first")

    assert verdict_on(run).code == "autonomous"


@pytest.mark.parametrize("operation", ["prompt", "resource"])
def test_prompts_and_resources_are_reads_unless_a_rule_says_otherwise(
    make_run: MakeRun, verdict_on: VerdictOn, account: Account, operation: str
) -> None:
    run = make_run()
    target = "desk:customers://all"
    assert verdict_on(run, target, operation=operation).code == "safe"

    rule(account, "desk", Effect.DENY)
    assert verdict_on(run, target, operation=operation).code == "deny_rule"


def test_local_tools_have_no_server_and_are_judged_by_name(make_run: MakeRun, verdict_on: VerdictOn) -> None:
    run = make_run()

    assert verdict_on(run, "local:Agent").code == "safe"
    assert verdict_on(run, "local:decide_value_observation").code == "strict"
    assert verdict_on(run, "local:anything").code == "no_rule"


def test_an_allow_by_rule_counts_the_use_of_the_rule(
    make_run: MakeRun, verdict_on: VerdictOn, account: Account
) -> None:
    policy = rule(account, "desk:send_email")
    run = make_run()

    assert [verdict_on(run).rule_id, verdict_on(run).rule_id] == [policy.pk, policy.pk]

    policy.refresh_from_db()
    assert policy.hits == 2
    assert policy.last_used_at is not None


def test_a_deny_rule_beats_an_allow_rule_and_autonomous_mode(
    make_run: MakeRun, verdict_on: VerdictOn, account: Account
) -> None:
    rule(account, "desk:send_email")
    rule(account, "desk", Effect.DENY)

    assert verdict_on(make_run(mode="autonomous")).code == "deny_rule"
