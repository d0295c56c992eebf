"""An allow is worth what the card showed: whatever has changed since counts before the call is sent, not after."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import pytest
from django.conf import LazySettings

from approvals.models import Policy
from runs import control, db, tool_words
from runs.access import actor_for
from runs.models import Role, Round, Run, Server, Tool, User
from runs.risk import Risk
from runs.round_rows import Decider
from runs.rounds import ROUND_LIMIT
from runs.tool_standing import Words
from tests.people import person
from tests.worker.conftest import Desk, results

Effects = Callable[[], list[dict[str, Any]]]

MAIL = {"to": "ann@example.com", "subject": "Hello", "body": "Text"}
SEND = [{"call": "desk:send_email", "args": MAIL, "as": "m"}, {"finish": "{{ m.status }}: {{ m.error }}"}]


async def asked(desk_: Desk, **options: Any) -> tuple[Run, Round]:
    run = await desk_.start(SEND, server="desk", mode="approval", **options)
    (round_,) = await desk_.pending(run, "approval")
    return run, round_


async def asked_again(desk_: Desk, run: Run, first: Round) -> Round:
    def look() -> Round | None:
        return Round.objects.filter(run=run, kind="approval").pending().exclude(pk=first.pk).first()

    found: Round = await desk_.eventually(look, "the second question", run)
    return found


async def test_a_tool_that_was_blocked_meanwhile_does_not_run(desk_: Desk, effects: Effects) -> None:
    run, round_ = await asked(desk_)
    await db.write(Tool.objects.filter(name="send_email").update, risk="blocked")
    await desk_.accept(round_, decision="allow")
    done = await desk_.finished(run)
    assert (done.output or "").startswith("denied")
    assert effects() == []


async def test_another_program_under_the_same_name_is_another_question(
    desk_: Desk, effects: Effects, settings: LazySettings
) -> None:
    run, round_ = await asked(desk_)
    entry = settings.M3.stdio_servers["desk"]
    moved = {**settings.M3.stdio_servers, "desk": {**entry, "args": [*entry["args"], "--other"]}}
    settings.M3 = dataclasses.replace(settings.M3, stdio_servers=moved)
    await desk_.accept(round_, decision="allow")
    second = await asked_again(desk_, run, round_)
    assert effects() == []
    assert second.context["verdict"]["code"] == "changed"


async def test_a_tool_that_describes_itself_otherwise_is_another_question(
    desk_: Desk, effects: Effects
) -> None:
    run, round_ = await asked(desk_)
    await db.write(Tool.objects.filter(name="send_email").update, digest="sha256:another")
    await desk_.accept(round_, decision="allow")
    second = await asked_again(desk_, run, round_)
    assert effects() == []
    await desk_.accept(second, decision="allow")
    assert (await desk_.finished(run)).output == "done: "
    assert len(effects()) == 1


async def test_a_tool_of_greater_risk_than_shown_is_another_question(desk_: Desk, effects: Effects) -> None:
    run, round_ = await asked(desk_)
    await db.write(Tool.objects.filter(name="send_email").update, risk="money")
    await desk_.accept(round_, decision="allow")
    second = await asked_again(desk_, run, round_)
    assert second.context["verdict"]["risk"] == "money"
    assert effects() == []


async def test_a_tool_or_server_that_is_gone_is_denied(desk_: Desk, effects: Effects) -> None:
    run, round_ = await asked(desk_)
    await db.write(Tool.objects.filter(name="send_email").update, present=False)
    await desk_.accept(round_, decision="allow")
    assert ((await desk_.finished(run)).output or "").startswith("denied")
    assert effects() == []


async def test_a_deny_rule_made_meanwhile_beats_the_allow(desk_: Desk, effects: Effects) -> None:
    run, round_ = await asked(desk_)
    rule = {"effect": "deny", "scope": "account", "target_server": "desk", "source": "api"}
    await db.write(Policy.objects.create, account=desk_.account, **rule)
    await desk_.accept(round_, decision="allow")
    assert ((await desk_.finished(run)).output or "").startswith("denied")
    assert effects() == []


async def test_a_change_of_mode_concerns_the_next_call_and_not_the_one_that_was_allowed(
    desk_: Desk, effects: Effects
) -> None:
    run, round_ = await asked(desk_)
    await db.write(control.set_mode, run.pk, "plan", decider=Decider(user=desk_.person, via="page"))
    await desk_.accept(round_, decision="allow")
    assert (await desk_.finished(run)).output == "done: "
    assert len(effects()) == 1


async def test_running_again_needs_a_tool_that_may_still_run(desk_: Desk, settings: LazySettings) -> None:
    settings.M3 = dataclasses.replace(settings.M3, call_timeout_seconds=1.5)
    run = await desk_.start(
        [{"call": "playground:slow", "args": {"tag": "blocked"}, "as": "r"}], server="playground"
    )
    (round_,) = await desk_.pending(run, "outcome")
    await db.write(Tool.objects.filter(name="slow").update, risk="blocked")
    await desk_.accept(round_, decision="run_again")
    await desk_.finished(run)
    assert (await db.read(results, run))["steps.0"]["status"] == "denied"
    assert await db.read(run.events.filter(type="tool_call.sent").count) == 1


@pytest.mark.parametrize("change", ["blocked", "moved"])
async def test_answers_to_a_form_do_not_reach_a_server_that_may_no_longer_have_them(
    desk_: Desk, effects: Effects, change: str
) -> None:
    run = await desk_.start([{"call": "shipping:book_shipment", "args": {"item": "Lamp"}, "as": "b"}])
    (round_,) = await desk_.pending(run, "elicitation")
    if change == "blocked":
        await db.write(Tool.objects.filter(name="book_shipment").update, risk="blocked")
    else:
        await db.write(
            Server.objects.filter(name="shipping").update, entry="desk", identity="sha256:elsewhere"
        )
    await desk_.accept(round_, street="1 Main Street", city="Pune")
    if change == "blocked":
        await desk_.finished(run)
        assert (await db.read(results, run))["steps.0"]["status"] == "denied"
    else:
        await desk_.pending(run, "approval")
    assert effects() == []
    fresh = await db.read(Round.objects.get, pk=round_.pk)
    assert (fresh.status, fresh.outcome) == ("failed", "superseded")
    assert fresh.responses is not None, "what the person said is kept for the record"


async def test_a_risk_that_an_admin_changes_takes_the_waiting_card_back_and_asks_with_the_new_one(
    desk_: Desk, effects: Effects
) -> None:
    run, round_ = await asked(desk_)
    await db.write(say, desk_, Words(risk=Risk.MONEY))
    second = await asked_again(desk_, run, round_)
    assert second.context["verdict"]["risk"] == "money"
    fresh = await db.read(Round.objects.get, pk=round_.pk)
    assert (fresh.outcome, fresh.failure_code) == ("superseded", "risk_changed")
    await desk_.accept(second, decision="allow")
    assert (await desk_.finished(run)).output == "done: "
    assert len(effects()) == 1


@pytest.mark.parametrize(("risk", "output", "made"), [(Risk.BLOCKED, "denied", 0), (Risk.READ, "done", 1)])
async def test_a_tool_that_is_blocked_or_turns_out_to_be_harmless_needs_no_person_any_more(
    desk_: Desk, effects: Effects, risk: Risk, output: str, made: int
) -> None:
    run, _ = await asked(desk_)
    await db.write(say, desk_, Words(risk=risk))
    assert ((await desk_.finished(run)).output or "").startswith(output)
    assert len(effects()) == made


def say(desk_: Desk, words: Words) -> None:
    ada = User.objects.filter(username="ada").first() or person("ada", desk_.account, Role.ADMIN)
    tool = Tool.objects.get(name="send_email")
    tool_words.say(actor_for(ada), tool.server_id, tool.pk, words)


async def test_a_change_as_often_as_an_admin_likes_only_asks_again(desk_: Desk, effects: Effects) -> None:
    run, round_ = await asked(desk_)
    for number in range(ROUND_LIMIT + 2):
        await db.write(say, desk_, Words(risk=(Risk.MONEY, Risk.WRITE)[number % 2]))
        round_ = await asked_again(desk_, run, round_)
    await desk_.accept(round_, decision="allow")
    assert (await desk_.finished(run)).output == "done: "
    assert len(effects()) == 1
