"""An older stdio server asks, its worker goes, and the next worker goes on with the same session: one execution."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.conf import LazySettings
from django.db import OperationalError

from runs import control, db, hosts, lease
from runs.errors import StateConflict
from runs.models import Round, Run, ToolCall
from runs.round_rows import Decider
from runs.worker import session_rows
from tests.mcp.bindings import ROOT, effects_in, wait_for
from tests.mcp.test_child_process import is_running
from tests.mcp.test_reattach_stdio import keepers_of
from tests.worker.conftest import Desk, replaced, results

TOOLS = ["asks_again", "asks_in_turn", "asks_then_dies", "asks_often", "hangs"]


@pytest.fixture(autouse=True)
def old_server(settings: LazySettings, tmp_path: Path) -> None:
    """A stdio server of the older generation that is nothing but lines of JSON and starts in a moment."""
    listed = tmp_path / "tools.json"
    schema = {"type": "object"}
    listed.write_text(json.dumps([{"name": name, "inputSchema": schema} for name in TOOLS]))
    script = str(ROOT / "tests" / "servers" / "raw.py")
    entry = {
        "command": sys.executable,
        "args": [script, "legacy", f"tools={listed}"],
        "env": {"M3_EFFECTS": str(tmp_path / "seen")},
    }
    entries = {**settings.M3.stdio_servers, "old": entry}
    settings.M3 = dataclasses.replace(settings.M3, stdio_servers=entries)


@pytest.fixture
def received(tmp_path: Path) -> Callable[[str], list[dict[str, Any]]]:
    """What reached the server: messages of a method, or answers to its prompts."""

    def received(what: str) -> list[dict[str, Any]]:
        messages = [entry["message"] for entry in effects_in(tmp_path / "seen")]
        if what == "answers":
            return [message for message in messages if "method" not in message]
        return [message for message in messages if message.get("method") == what]

    return received


async def asked(desk_: Desk, times: int = 1, **arguments: Any) -> tuple[Run, Round]:
    """A run whose call waits for a person."""
    call = {"call": "old:asks_in_turn", "args": {"times": times, **arguments}, "as": "r"}
    run = await desk_.start([call, {"finish": "{{ r.status }}"}], server="old")
    (round_,) = await desk_.pending(run)
    return run, round_


async def keeper_of(run: Run) -> int:
    call = await db.read(ToolCall.objects.get, step__run=run)
    (keeper,) = keepers_of(call.wire["session"]["keeper"])
    return keeper


async def names_of(run: Run) -> list[str]:
    replies = (await db.read(results, run))["steps.0"]["result"]["replies"]
    return [reply["content"]["name"] for reply in replies]


async def test_a_worker_stops_while_a_person_thinks_and_the_next_one_goes_on(
    desk_: Desk, desk_of: Callable[..., Any], stop: Callable[[], Any], received: Any
) -> None:
    run, round_ = await asked(desk_)
    keeper = await keeper_of(run)
    second = await replaced(desk_of, desk_, stop)
    await second.eventually(lambda: run.events.filter(type="tool_call.resumed").exists(), "the attach", run)
    taken = await db.read(Round.objects.get, pk=round_.pk)
    assert (taken.status, taken.held) == ("pending", True)
    assert taken.lease_owner == second.engine.owner
    assert taken.lease_token != round_.lease_token
    await second.accept(round_, name="Ada")
    assert (await second.finished(run)).output == "done"
    assert await names_of(run) == ["Ada"]
    assert len(received("tools/call")) == 1
    assert len(received("answers")) == 1
    assert received("notifications/cancelled") == []
    call = await db.read(ToolCall.objects.get, step__run=run)
    assert (call.attempts, call.phase, "session" in call.wire) == (1, "done", False)
    await asyncio.to_thread(wait_for, lambda: not is_running(keeper), "the keeper to end with its call")


async def test_a_worker_that_stops_because_its_database_is_away_leaves_the_session(
    desk_: Desk,
    desk_of: Callable[..., Any],
    stop: Callable[[], Any],
    received: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nobody can say whether the call is over, so it is not."""
    run, round_ = await asked(desk_)

    def away(_: int) -> bool:
        raise OperationalError("the connection is lost")

    with monkeypatch.context() as broken:
        broken.setattr(session_rows, "is_open", away)
        await stop()
    second = await replaced(desk_of, desk_, stop)
    await second.accept(round_, name="Ada")
    assert (await second.finished(run)).output == "done"
    assert (len(received("tools/call")), len(received("answers"))) == (1, 1)
    assert received("notifications/cancelled") == []


async def test_an_answer_that_is_given_while_nobody_works_is_delivered_by_the_next_worker(
    desk_: Desk, desk_of: Callable[..., Any], stop: Callable[[], Any], received: Any
) -> None:
    run, round_ = await asked(desk_)
    await stop()
    await desk_.accept(round_, name="Ada")
    second = await replaced(desk_of, desk_, stop)
    assert (await second.finished(run)).output == "done"
    assert await names_of(run) == ["Ada"]
    assert (len(received("tools/call")), len(received("answers"))) == (1, 1)
    delivered = await db.read(Round.objects.get, pk=round_.pk)
    assert (delivered.status, delivered.delivery_attempts) == ("resolved", 1)


async def test_two_prompts_of_one_call_with_three_workers_are_two_rounds_and_one_execution(
    desk_: Desk, desk_of: Callable[..., Any], stop: Callable[[], Any], received: Any
) -> None:
    run, first = await asked(desk_, times=2)
    second_desk = await replaced(desk_of, desk_, stop)
    await second_desk.accept(first, name="first")
    second = await second_desk.eventually(
        lambda: Round.objects.filter(run=run, round_index=1).pending().first(), "the second prompt", run
    )
    third_desk = await replaced(desk_of, second_desk, stop)
    await third_desk.accept(second, name="second")
    assert (await third_desk.finished(run)).output == "done"
    assert await names_of(run) == ["first", "second"]
    assert (len(received("tools/call")), len(received("answers"))) == (1, 2)
    assert await db.read(Round.objects.filter(run=run).count) == 2


async def test_several_prompts_at_once_survive_their_worker_each_with_its_own_round(
    desk_: Desk, desk_of: Callable[..., Any], stop: Callable[[], Any], received: Any
) -> None:
    run = await desk_.start([{"call": "old:asks_often", "args": {"times": 3}, "as": "r"}], server="old")
    (round_,) = await desk_.pending(run)
    desk = await replaced(desk_of, desk_, stop)
    for number in range(3):
        (round_,) = await desk.pending(run)
        assert round_.round_index == number
        await desk.accept(round_, name=f"answer {number}")
    await desk.finished(run)
    assert (len(received("tools/call")), len(received("answers"))) == (1, 3)


@pytest.mark.parametrize("while_away", [True, False])
async def test_a_question_that_its_server_withdraws_is_closed_and_the_next_one_is_asked(
    desk_: Desk, desk_of: Callable[..., Any], stop: Callable[[], Any], received: Any, while_away: bool
) -> None:
    call = {"call": "old:asks_again", "args": {"after": 1.5}, "as": "r"}
    run = await desk_.start([call, {"finish": "{{ r.status }}"}], server="old")
    (first,) = await desk_.pending(run)
    desk = await replaced(desk_of, desk_, stop) if while_away else desk_
    second = await desk.eventually(
        lambda: Round.objects.filter(run=run, round_index=1).pending().first(), "the second question", run
    )
    withdrawn = await db.read(Round.objects.get, pk=first.pk)
    assert (withdrawn.status, withdrawn.failure_code) == ("failed", "superseded")
    assert (await db.read(Run.objects.get, pk=run.pk)).status == "waiting_for_input", (
        "as long as one waits (C39)"
    )
    await desk.accept(second, name="Ada")
    assert (await desk.finished(run)).output == "done"
    assert await names_of(run) == ["Ada"]
    assert len(received("tools/call")) == 1


async def test_a_worker_that_stops_after_the_answer_leaves_the_call_to_the_next_one(
    desk_: Desk, desk_of: Callable[..., Any], stop: Callable[[], Any], received: Any
) -> None:
    run, round_ = await asked(desk_, then=1.5)
    await desk_.accept(round_, name="Ada")
    await desk_.eventually(lambda: received("answers"), "the answer to reach the server", run)
    second = await replaced(desk_of, desk_, stop)
    assert (await second.finished(run)).output == "done"
    assert (len(received("tools/call")), len(received("answers"))) == (1, 1)
    assert received("notifications/cancelled") == []


async def test_a_call_in_which_nobody_was_asked_ends_with_its_worker(
    desk_: Desk, desk_of: Callable[..., Any], stop: Callable[[], Any], received: Any
) -> None:
    run = await desk_.start([{"call": "old:hangs", "args": {}, "as": "r"}], server="old")
    await desk_.eventually(lambda: received("tools/call"), "the call", run)
    keeper = await keeper_of(run)
    second = await replaced(desk_of, desk_, stop)
    assert len(received("notifications/cancelled")) == 1
    await asyncio.to_thread(wait_for, lambda: not is_running(keeper), "the keeper to end")
    (round_,) = await second.pending(run, "outcome")
    assert "The worker stopped while this call was under way" in round_.context["reason"]


async def test_stopping_again_while_a_prompt_is_being_put_once_more_leaves_the_session_too(
    desk_: Desk, desk_of: Callable[..., Any], stop: Callable[[], Any], received: Any
) -> None:
    run, round_ = await asked(desk_)
    for number in range(3):
        desk = await replaced(desk_of, desk_, stop)
        await desk.eventually(
            lambda wanted=number + 1: run.events.filter(type="tool_call.resumed").count() >= wanted,
            "the attach",
            run,
        )  # and stop at once, wherever it is by now
    desk = await replaced(desk_of, desk_, stop)
    await desk.accept(round_, name="Ada")
    assert (await desk.finished(run)).output == "done"
    assert (len(received("tools/call")), len(received("answers"))) == (1, 1)
    assert received("notifications/cancelled") == []


async def test_a_reply_that_was_stored_is_used_and_the_session_that_it_left_behind_is_ended(
    desk_: Desk, desk_of: Callable[..., Any], stop: Callable[[], Any], received: Any
) -> None:
    """The worker died between the reply and its consequences."""
    run, _ = await asked(desk_)
    keeper = await keeper_of(run)
    await stop()
    reply = {"content": [{"type": "text", "text": "stored"}]}
    await db.write(ToolCall.objects.filter(step__run=run).update, raw_result=reply)
    desk = await replaced(desk_of, desk_, stop)
    assert (await desk.finished(run)).output == "done"
    assert (await db.read(results, run))["steps.0"]["result"] == "stored"
    await asyncio.to_thread(wait_for, lambda: not is_running(keeper), "the keeper to end")
    call = await db.read(ToolCall.objects.get, step__run=run)
    assert "session" not in call.wire
    fresh = await db.read(Round.objects.get, step=call.step_id)
    assert (fresh.status, fresh.failure_code) == ("failed", "superseded"), "nobody waits for that answer"
    assert received("answers") == []


async def test_cancelling_a_run_whose_session_nobody_holds_ends_the_call_at_its_server(
    desk_: Desk, desk_of: Callable[..., Any], stop: Callable[[], Any], received: Any
) -> None:
    run, _ = await asked(desk_)
    keeper = await keeper_of(run)
    await stop()
    assert is_running(keeper)
    await db.write(control.cancel, run.pk, decider=Decider(user=desk_.person, via="page"))
    assert received("notifications/cancelled") == []
    await desk_of(desk_.account, desk_.person)
    await desk_.eventually(lambda: received("notifications/cancelled"), "the server to hear of it", run)
    await asyncio.to_thread(wait_for, lambda: not is_running(keeper), "the keeper to end")
    call = await db.read(ToolCall.objects.get, step__run=run)
    await desk_.eventually(
        lambda: "session" not in ToolCall.objects.get(pk=call.pk).wire, "the record to go", run
    )


async def test_cancelling_a_run_whose_session_is_held_ends_it_at_once(desk_: Desk, received: Any) -> None:
    run, _ = await asked(desk_)
    keeper = await keeper_of(run)
    await db.write(control.cancel, run.pk, decider=Decider(user=desk_.person, via="page"))
    await desk_.eventually(lambda: received("notifications/cancelled"), "the server to hear of it", run)
    await asyncio.to_thread(wait_for, lambda: not is_running(keeper), "the keeper to end")
    assert received("answers") == [] or "error" in received("answers")[0], "no made-up answer (A5)"


@pytest.mark.parametrize("while_away", [True, False])
async def test_a_keeper_that_dies_fails_round_and_run_and_says_that_it_was_the_keeper(
    desk_: Desk, desk_of: Callable[..., Any], stop: Callable[[], Any], received: Any, while_away: bool
) -> None:
    run, round_ = await asked(desk_)
    keeper = await keeper_of(run)
    if while_away:
        await stop()
    os.kill(keeper, signal.SIGKILL)
    desk = await replaced(desk_of, desk_, stop) if while_away else desk_
    done = await desk.finished(run)
    assert (done.outcome, done.error_code) == ("failed", "managed_input_recovery_unavailable")
    fresh = await db.read(Round.objects.get, pk=round_.pk)
    assert (fresh.status, fresh.failure_code) == ("failed", "recovery_unavailable")
    assert "The process that kept the server's session" in (fresh.failure_message or "")
    assert "start the run again" in (done.error or "")
    with pytest.raises(StateConflict):
        await desk.accept(round_, name="too late")
    assert len(received("tools/call")) == 1


async def test_a_server_that_dies_while_nobody_works_fails_round_and_run_and_says_so(
    desk_: Desk, desk_of: Callable[..., Any], stop: Callable[[], Any]
) -> None:
    run = await desk_.start([{"call": "old:asks_then_dies", "args": {"after": 0.5}}], server="old")
    (round_,) = await desk_.pending(run)
    second = await replaced(desk_of, desk_, stop)
    done = await second.finished(run)
    assert done.error_code == "managed_input_recovery_unavailable"
    fresh = await db.read(Round.objects.get, pk=round_.pk)
    assert fresh.failure_message == done.error
    assert "start the run again" in (done.error or "")


async def test_a_session_on_another_machine_cannot_be_reached_and_the_text_names_it(
    desk_: Desk, desk_of: Callable[..., Any], stop: Callable[[], Any]
) -> None:
    run, _ = await asked(desk_)
    keeper = await keeper_of(run)
    await stop()

    def move(host: str) -> None:
        call = ToolCall.objects.get(step__run=run)
        call.wire["session"]["host"] = host
        call.save()

    await db.write(move, "elsewhere 0000")
    second = await replaced(desk_of, desk_, stop)
    done = await second.finished(run)
    assert done.error_code == "managed_input_recovery_unavailable"
    assert "kept on another machine (elsewhere)" in (done.error or "")
    assert is_running(keeper), "it is not ours to end"
    os.kill(keeper, signal.SIGTERM)
    earlier = " ".join([*hosts.here().split(" ")[:2], "another-start"])
    assert "started anew" in session_rows._elsewhere(earlier).message


async def test_a_server_that_asks_too_often_ends_the_turn_and_every_answer_before_has_arrived(
    desk_: Desk,
) -> None:
    """C42, on a session that stays open."""
    run, round_ = await asked(desk_, times=11)
    for number in range(10):
        (round_,) = await desk_.pending(run)
        assert round_.round_index == number
        await desk_.accept(round_, name=f"answer {number}")
    done = await desk_.finished(run)
    assert (done.outcome, done.error_code) == ("failed", "elicitation_round_limit")
    assert await db.read(lambda: set(Round.objects.filter(run=run).values_list("status", flat=True))) == {
        "resolved"
    }


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
async def test_an_answer_for_a_keeper_that_is_gone_is_refused_and_not_thrown_away(
    desk_: Desk, stop: Callable[[], Any], how: signal.Signals
) -> None:
    run, round_ = await asked(desk_)
    keeper = (await db.read(ToolCall.objects.get, step__run=run)).wire["session"]["keeper"]
    await stop()
    os.kill(keepers_of(keeper)[0], how)
    wait_for(lambda: not keepers_of(keeper), "the keeper to end")
    await db.write(lease.take_over)
    with pytest.raises(StateConflict, match="gone"):
        await desk_.accept(round_, name="into the void")
    assert (await db.read(Round.objects.get, pk=round_.pk)).status == "pending"
