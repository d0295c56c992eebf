"""Approvals, questions and plans: our own gates, the children of a run, and what ends a turn."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import pytest

from runs import control, db
from runs.models import Round, Run, Server, Step, Tool, ToolCall
from runs.round_rows import Decider
from runs.worker import journal
from tests.worker.conftest import Desk, results

MAIL = {"to": "ann@example.com", "subject": "Hello", "body": "Text"}
SEND = {"call": "desk:send_email", "args": MAIL, "as": "m"}


async def test_an_allowed_call_runs_with_exactly_the_arguments_shown(
    desk_: Desk, effects: Callable[[], list[dict[str, Any]]]
) -> None:
    run = await desk_.start([SEND, {"finish": "{{ m.status }}"}], server="desk", mode="approval")
    (round_,) = await desk_.pending(run, "approval")
    assert round_.context["arguments"] == MAIL
    assert effects() == [], "nothing happens before the decision"
    await desk_.accept(round_, decision="allow")
    assert (await desk_.finished(run)).output == "done"
    assert [effect["what"] for effect in effects()] == ["send_email"]
    call = await db.read(ToolCall.objects.get, step__run=run)
    assert call.executed == MAIL
    assert call.executed_digest == round_.shown_digest


async def test_a_denied_call_never_runs_and_the_words_reach_the_agent(
    desk_: Desk, effects: Callable[[], list[dict[str, Any]]]
) -> None:
    run = await desk_.start(
        [SEND, {"finish": "{{ m.status }}: {{ m.error }}"}], server="desk", mode="approval"
    )
    (round_,) = await desk_.pending(run)
    await desk_.accept(round_, decision="deny", feedback="Ann is on holiday.")
    done = await desk_.finished(run)
    assert done.output == "denied: Ann is on holiday."
    assert done.outcome == "completed", "a denial is not a failure"
    assert effects() == []


async def test_a_required_call_that_is_denied_ends_the_turn(desk_: Desk) -> None:
    run = await desk_.start([{**SEND, "required": True}, {"say": "never"}], server="desk", mode="approval")
    (round_,) = await desk_.pending(run)
    await desk_.accept(round_, decision="deny")
    done = await desk_.finished(run)
    assert done.outcome == "failed"
    assert "steps[0] is required and ended as denied" in (done.error or "")


async def test_edited_arguments_are_what_is_sent_and_both_versions_are_kept(desk_: Desk) -> None:
    run = await desk_.start([SEND], server="desk", mode="approval")
    (round_,) = await desk_.pending(run)
    await desk_.accept(round_, decision="allow", arguments={**MAIL, "subject": "Edited"})
    await desk_.finished(run)
    call = await db.read(ToolCall.objects.get, step__run=run)
    assert (call.asked["subject"], call.executed["subject"]) == ("Hello", "Edited")


async def test_safe_reads_do_not_ask_and_writes_beside_them_do(desk_: Desk) -> None:
    group = [{"call": "desk:list_customers", "args": {}, "as": "c"}, SEND]
    run = await desk_.start(
        [{"parallel": group}, {"finish": "{{ c.status }} {{ m.status }}"}], server="desk", mode="approval"
    )
    (round_,) = await desk_.pending(run, "approval")
    assert round_.operation_name == "send_email"
    await desk_.accept(round_, decision="allow")
    assert (await desk_.finished(run)).output == "done done"


async def test_a_question_waits_and_its_labels_reach_the_agent(desk_: Desk) -> None:
    asked = [
        {
            "question": "Which segment?",
            "header": "Segment",
            "multiSelect": False,
            "options": _options("big", "small"),
        },
        {"question": "Which days?", "header": "Days", "multiSelect": True, "options": _options("Mon", "Tue")},
    ]
    run = await desk_.start([{"ask": {"questions": asked}, "as": "a"}, {"say": "{{ a.answers }}"}], server="")
    (round_,) = await desk_.pending(run, "question")
    answers = {
        "q0": {"action": "accept", "content": {"selected": [1]}},
        "q1": {"action": "accept", "content": {"selected": [0], "other": "Sunday"}},
    }
    await desk_.answer(round_, answers)
    await desk_.finished(run)
    expected = {"Which segment?": "small", "Which days?": ["Mon", "Sunday"]}
    assert (await db.read(results, run))["steps.0"]["answers"] == expected


async def test_a_question_that_does_not_block_takes_the_recommended_option(desk_: Desk) -> None:
    options = _options("red", "blue (Recommended)")
    question = {"question": "Colour?", "header": "Colour", "multiSelect": False, "options": options}
    run = await desk_.start(
        [
            {"ask": {"questions": [question], "blocking": False}, "as": "a"},
            {"finish": '{{ a.answers."Colour?" }}'},
        ],
        server="",
    )
    assert (await desk_.finished(run)).output == "blue (Recommended)"
    assert await db.read(Round.objects.filter(run=run).count) == 0


async def test_nothing_but_safe_calls_run_before_a_plan_is_approved(desk_: Desk) -> None:
    steps = [
        SEND,
        {"plan": ["First", "Second"], "as": "p"},
        {**SEND, "as": "again"},
        {"finish": "{{ m.status }} {{ again.status }}"},
    ]
    run = await desk_.start(steps, server="desk", mode="plan")
    (plan,) = await desk_.pending(run, "plan")
    assert plan.context["text"] == "First"
    await desk_.accept(plan, decision="revise", text="Shorter, please")
    (second,) = await desk_.pending(run, "plan")
    assert second.context["text"] == "Second"
    assert second.context["feedback"] == "Shorter, please"
    await desk_.accept(second, decision="approve")
    (approval,) = await desk_.pending(run, "approval")
    await desk_.accept(approval, decision="allow")
    assert (await desk_.finished(run)).output == "denied done"


async def test_a_child_run_reports_to_the_run_that_started_it(desk_: Desk) -> None:
    await db.write(desk_.agent, "Mailer", [SEND, {"finish": "child says {{ m.status }}"}], "desk")
    run = await desk_.start(
        [{"run": {"agent": "Mailer", "message": "go"}, "as": "c"}, {"finish": "{{ c.result }}"}],
        server="",
        mode="approval",
    )
    child = await desk_.eventually(lambda: Run.objects.filter(parent=run).first(), "the child run", run)
    assert child.mode == "approval", "a child is never laxer than its parent"
    (round_,) = await desk_.pending(child)
    await desk_.accept(round_, decision="allow")
    assert (await desk_.finished(run)).output == "child says done"


async def test_cancelling_a_run_cancels_its_children_first_and_every_card_closes(desk_: Desk) -> None:
    await db.write(desk_.agent, "Mailer", [SEND], "desk")
    run = await desk_.start(
        [{"run": {"agent": "Mailer", "message": "go"}, "as": "c"}], server="", mode="approval"
    )
    child = await desk_.eventually(lambda: Run.objects.filter(parent=run).first(), "the child run", run)
    (round_,) = await desk_.pending(child)
    await db.write(control.cancel, run.pk, decider=Decider(user=desk_.person, via="page"))
    ends = await db.read(lambda: dict(Run.objects.values_list("pk", "outcome")))
    assert set(ends.values()) == {"cancelled"}
    fresh = await db.read(Round.objects.get, pk=round_.pk)
    assert (fresh.status, fresh.outcome, fresh.failure_code) == ("failed", "cancelled", "cancelled")


async def test_a_reply_opens_the_next_turn_and_bindings_persist(desk_: Desk) -> None:
    playbook = {
        "steps": [{"call": "desk:list_customers", "args": {}, "as": "c"}, {"finish": "listed"}],
        "replies": [[{"finish": "still {{ length(c.result.customers) }} customers; you said {{ message }}"}]],
    }
    run = await desk_.start(playbook, server="desk")
    await desk_.finished(run)
    await db.write(control.reply, run.pk, "and now?")
    again = await desk_.eventually(
        lambda: Run.objects.filter(pk=run.pk, status="finished", output__startswith="still").first(),
        "the second turn",
        run,
    )
    assert again.output == "still 7 customers; you said and now?"


async def test_a_sleeping_run_costs_no_task_and_wakes_by_itself(desk_: Desk) -> None:
    run = await desk_.start([{"sleep": 0.4}, {"finish": "awake"}], server="")
    await desk_.eventually(
        lambda: Run.objects.filter(pk=run.pk, next_at__isnull=False).exists(), "the sleep", run
    )
    assert (await desk_.finished(run)).output == "awake"


async def test_with_human_input_off_an_approval_ends_the_turn_as_human_input_required(desk_: Desk) -> None:
    run = await desk_.start([{"ask": {"questions": [_free("What now?")]}}], server="", human_input=None)
    done = await desk_.finished(run)
    assert (done.outcome, done.error_code) == ("failed", "human_input_required")


def _options(*labels: str) -> list[dict[str, str]]:
    return [{"label": label} for label in labels]


def _free(text: str) -> dict[str, Any]:
    return {"question": text, "header": "Q", "multiSelect": False, "options": []}


async def test_with_human_input_off_a_call_that_would_ask_ends_the_turn_and_is_not_made(
    desk_: Desk, effects: Callable[[], list[dict[str, Any]]]
) -> None:
    free = await desk_.start([SEND], server="desk", human_input=None)
    assert (await desk_.finished(free)).outcome == "completed", "in autonomous mode nothing asks"
    await db.write(Tool.objects.filter(name="send_email").update, risk="strict")
    before = len(effects())
    asking = await desk_.start([SEND, {"say": "never"}], server="desk", human_input=None)
    done = await desk_.finished(asking)
    assert (done.outcome, done.error_code) == ("failed", "human_input_required")
    assert len(effects()) == before


async def test_a_child_of_an_approved_plan_may_do_what_the_plan_says(desk_: Desk) -> None:
    await db.write(desk_.agent, "Mailer", [SEND, {"finish": "child says {{ m.status }}"}], "desk")
    steps = [
        {"plan": ["Send it"], "as": "p"},
        {"run": {"agent": "Mailer", "message": "go"}, "as": "c"},
        {"finish": "{{ c.result }}"},
    ]
    run = await desk_.start(steps, server="", mode="plan")
    (plan,) = await desk_.pending(run, "plan")
    await desk_.accept(plan, decision="approve")
    child = await desk_.eventually(lambda: Run.objects.filter(parent=run).first(), "the child run", run)
    (approval,) = await desk_.pending(child, "approval")
    await desk_.accept(approval, decision="allow")
    assert (await desk_.finished(run)).output == "child says done"


async def test_a_list_of_tools_that_is_too_old_is_fetched_anew_before_a_call_is_decided(
    desk_: Desk, settings: Any
) -> None:
    read = [{"call": "playground:echo", "args": {"value": "x"}}]
    await desk_.finished(await desk_.start(read, server="playground"))
    before = await db.read(Server.objects.get, name="playground")
    await desk_.finished(await desk_.start(read, server="playground"))
    assert (await db.read(Server.objects.get, name="playground")).listed_at == before.listed_at
    settings.M3 = dataclasses.replace(settings.M3, tool_list_seconds=0.001)
    await desk_.finished(await desk_.start(read, server="playground"))
    assert (await db.read(Server.objects.get, name="playground")).listed_at > before.listed_at


async def test_an_agent_that_starts_itself_comes_to_an_end(
    desk_: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal, "MAX_FAMILY", 6)
    again = {"run": {"agent": "Loop", "message": "go"}}
    run = await desk_.start([{**again, "as": "a"}, {**again, "as": "b"}], server="", name="Loop")
    assert (await desk_.finished(run)).outcome == "completed"
    assert await db.read(Run.objects.count) == 6
    errors = await db.read(lambda: {step["error"] for step in _run_results()})
    assert any("6 at most" in (error or "") for error in errors)


def _run_results() -> list[dict[str, Any]]:
    return list(Step.objects.filter(kind="run").values_list("result", flat=True))
