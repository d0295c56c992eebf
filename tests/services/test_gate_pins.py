"""A rule holds for the server and the definitions that it was made for, and for no others (R25, R28)."""

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


def allow(account: Account, target: str) -> Policy:
    return grant(
        None,
        Rule(account=account, effect=Effect.ALLOW, scope=Scope.ACCOUNT, target=target),
        source=Source.API,
    )


def test_a_changed_definition_suspends_the_rule_for_later_runs(
    make_run: MakeRun, verdict_on: VerdictOn, account: Account, desk: Server
) -> None:
    policy = allow(account, "desk:send_email")
    assert verdict_on(make_run()).code == "allow_rule"

    desk.tools.filter(name="send_email").update(digest="sha256:other")

    verdict = verdict_on(make_run())
    assert (verdict.effect, verdict.code, verdict.rule_id) == ("ask", "suspended", policy.pk)
    assert "definition of the tool has changed" in verdict.reason


def test_a_rule_on_a_server_is_suspended_only_for_the_tool_that_was_added(
    make_run: MakeRun, verdict_on: VerdictOn, account: Account, desk: Server
) -> None:
    allow(account, "desk")
    Tool.objects.create(server=desk, name="fly", digest="sha256:fly")
    run = make_run()

    assert verdict_on(run, "desk:fly").code == "suspended"
    assert verdict_on(run).code == "allow_rule"


def test_another_server_under_the_same_name_asks_again(
    make_run: MakeRun, verdict_on: VerdictOn, account: Account, desk: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    allow(account, "desk:send_email")
    monkeypatch.setitem(settings.M3.stdio_servers, "desk", {"command": "another-program"})
    Server.objects.filter(pk=desk.pk).update(identity="sha256:another")

    assert verdict_on(make_run()).effect == "ask"


def test_the_same_tool_name_on_another_server_asks(
    make_run: MakeRun, verdict_on: VerdictOn, account: Account, desk: Server
) -> None:
    allow(account, "desk:send_email")
    other = Server.objects.create(
        account=account, name="post", transport="http", url="https://post.example", identity="sha256:post"
    )
    Tool.objects.create(server=other, name="send_email", digest="sha256:post")
    desk.agents.get().servers.add(other)

    assert verdict_on(make_run(), "post:send_email").code == "no_rule"


def test_a_rule_that_preceded_its_server_pins_what_it_first_allows(
    make_run: MakeRun, verdict_on: VerdictOn, account: Account, desk: Server
) -> None:
    Server.objects.filter(pk=desk.pk).update(name="later")
    policy = allow(account, "desk:send_email")
    assert policy.pinned_identity == ""
    Server.objects.filter(pk=desk.pk).update(name="desk")

    assert verdict_on(make_run()).code == "allow_rule"
    policy.refresh_from_db()
    assert policy.pinned_identity == desk.identity
    assert list(policy.pinned_tools) == ["send_email"]

    desk.tools.filter(name="send_email").update(digest="sha256:other")
    assert verdict_on(make_run()).code == "suspended"


def test_granting_again_renews_a_suspended_rule(
    make_run: MakeRun, verdict_on: VerdictOn, account: Account, desk: Server
) -> None:
    policy = allow(account, "desk:send_email")
    desk.tools.filter(name="send_email").update(digest="sha256:other")
    assert verdict_on(make_run()).code == "suspended"

    assert allow(account, "desk:send_email").pk == policy.pk
    assert verdict_on(make_run()).code == "allow_rule"


def test_a_deny_rule_keeps_its_force_whatever_changes(
    make_run: MakeRun, verdict_on: VerdictOn, account: Account, desk: Server
) -> None:
    grant(
        None,
        Rule(account=account, effect=Effect.DENY, scope=Scope.ACCOUNT, target="desk:send_email"),
        source=Source.API,
    )
    desk.tools.filter(name="send_email").update(digest="sha256:other")

    assert verdict_on(make_run(mode="autonomous")).code == "deny_rule"
