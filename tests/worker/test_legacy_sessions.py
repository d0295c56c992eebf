"""A server of the older generation asks on its open session; the worker holds it until a person answers."""

from __future__ import annotations

from typing import Any

from runs import control, db
from runs.models import Round, Run, ToolCall
from runs.round_rows import Decider
from tests.mcp.bindings import effects_in
from tests.worker.conftest import Desk, results


async def test_a_held_session_is_answered_in_place_and_the_call_is_made_once(desk_: Desk) -> None:
    run = await desk_.start(
        [{"call": "legacy:ask_in_turn", "args": {"times": 2}, "as": "r"}], server="legacy"
    )
    for number in range(2):
        (round_,) = await desk_.pending(run)
        assert list(round_.requests) == ["elicitation"]
        assert round_.held
        assert round_.round_index == number
        await desk_.accept(round_, name=f"answer {number}")
    await desk_.finished(run)
    call = await db.read(ToolCall.objects.get, step__run=run)
    assert (call.attempts, call.phase) == (1, "done")
    assert "answer 1" in (await db.read(results, run))["steps.0"]["result"]
    assert await db.read(lambda: set(Round.objects.filter(run=run).values_list("status", flat=True))) == {
        "resolved"
    }


async def test_two_prompts_at_once_of_one_call_are_asked_one_after_the_other(desk_: Desk) -> None:
    run = await desk_.start([{"call": "legacy:ask_at_once", "args": {}, "as": "r"}], server="legacy")
    asked = []
    for _ in range(2):
        (round_,) = await desk_.pending(run)
        asked.append(round_.requests["elicitation"]["message"])
        await desk_.accept(round_, name=asked[-1])
    await desk_.finished(run)
    assert sorted(asked) == ["left", "right"]
    assert '[{"name": "left"}, {"name": "right"}]' in (await db.read(results, run))["steps.0"]["result"]


async def test_a_url_prompt_records_consent_and_carries_its_elicitation_id(desk_: Desk) -> None:
    step = {"call": "legacy:ask_url", "args": {"url": "https://pay.example/1"}, "as": "r"}
    run = await desk_.start([step], server="legacy")
    (round_,) = await desk_.pending(run)
    assert round_.requests["elicitation"]["mode"] == "url"
    assert round_.requests["elicitation"]["elicitation_id"] == "e-1"
    await desk_.answer(round_, {"elicitation": {"action": "accept"}})
    await desk_.finished(run)
    assert (await db.read(results, run))["steps.0"]["result"] == "accept"


async def test_a_page_that_must_be_opened_first_makes_the_call_start_again(desk_: Desk) -> None:
    run = await desk_.start(
        [{"call": "legacy:needs_url", "args": {"tag": "worker"}, "as": "r"}], server="legacy"
    )
    (round_,) = await desk_.pending(run)
    assert not round_.held, "the call is over; nothing is open while the person logs in"
    (key,) = round_.requests
    await desk_.answer(round_, {key: {"action": "accept"}})
    await desk_.finished(run)
    assert (await db.read(results, run))["steps.0"]["result"] == "logged in"


async def test_several_held_sessions_of_a_parallel_group_wait_side_by_side(desk_: Desk) -> None:
    calls = [{"call": "legacy:ask_in_turn", "args": {"times": 1}, "as": f"r{n}"} for n in range(2)]
    run = await desk_.start(
        [{"parallel": calls}, {"finish": "{{ r0.status }} {{ r1.status }}"}], server="legacy"
    )
    first, second = await desk_.pending(run, count=2)
    await desk_.accept(second, name="second")
    fresh = await db.read(Round.objects.get, pk=first.pk)
    assert fresh.status == "pending", "deciding one neither decides nor drops another (R8)"
    await desk_.accept(first, name="first")
    assert (await desk_.finished(run)).output == "done done"


async def test_cancelling_the_run_cancels_the_call_on_its_server(
    desk_: Desk, playground_effects: Any
) -> None:
    run = await desk_.start([{"call": "legacy:slow", "args": {"tag": "cancel-me"}}], server="legacy")

    def noted(what: str) -> Any:
        return lambda: [
            e for e in effects_in(playground_effects) if e["what"] == what and e["tag"] == "cancel-me"
        ]

    await desk_.eventually(noted("slow started"), "the call to begin", run)
    await db.write(control.cancel, run.pk, decider=Decider(user=desk_.person, via="page"))
    done = await db.read(Run.objects.get, pk=run.pk)
    assert (done.outcome, done.error_code) == ("cancelled", "cancelled")
    await desk_.eventually(noted("slow cancelled"), "the server to hear of it", run)


async def test_with_nobody_to_ask_the_server_is_refused_and_the_run_fails_clearly(desk_: Desk) -> None:
    step = {"call": "legacy:ask_or_say_why", "args": {}, "as": "r"}
    run = await desk_.start([step], server="legacy", human_input=None)
    done = await desk_.finished(run)
    assert (done.outcome, done.error_code) == ("failed", "human_input_required")
    assert await db.read(Round.objects.filter(run=run).count) == 0
