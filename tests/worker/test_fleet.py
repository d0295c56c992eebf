"""Which host goes on with a run whose session a keeper holds, and what becomes of it when that host is gone."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from runs import control, db
from runs.errors import StateConflict
from runs.models import Round, Run, ToolCall
from runs.round_rows import Decider
from tests.mcp.bindings import effects_in
from tests.mcp.test_child_process import is_running
from tests.worker.conftest import results
from tests.worker.fleet import (  # noqa: F401  (fixtures)
    NEVER,
    SOON,
    Fleet,
    a_bound,
    a_fleet,
    an_old_server,
    on_a_server,
)

pytestmark = on_a_server
Bound = Callable[[float], None]


async def row(run: Run) -> Run:
    return await db.read(Run.objects.get, pk=run.pk)


async def test_a_run_waits_for_the_host_that_keeps_its_session_and_nobody_else_touches_it(
    fleet: Fleet,
) -> None:
    fleet.start("a")
    run, round_ = await fleet.asked()
    keeper = await fleet.keeper_of(run)
    held = await row(run)
    assert held.pin == fleet.identity("a")
    fleet.start("b")
    fleet.kill("a")
    await fleet.let_go(run)
    await fleet.looked_at_everything()
    assert (await row(run)).lease_token == held.lease_token, "the other host has not claimed it"

    await fleet.desk.accept(round_, name="Ada")
    await fleet.looked_at_everything()
    waiting = await db.read(Round.objects.get, pk=round_.pk)
    assert (waiting.status, (await row(run)).lease_token) == ("response_validated", held.lease_token)

    fleet.start("a")
    done = await fleet.desk.finished(run)
    assert (done.output, done.pin) == ("done", None)
    assert (fleet.received("tools/call"), fleet.received(None)) == (1, 1)
    assert fleet.received("notifications/cancelled") == 0
    await fleet.ended(keeper)


async def test_an_answer_reaches_the_host_of_the_session_while_other_hosts_work(fleet: Fleet) -> None:
    fleet.start("a")
    run, round_ = await fleet.asked()
    token = (await row(run)).lease_token
    fleet.start("b")
    await fleet.desk.accept(round_, name="Ada")
    assert (await fleet.desk.finished(run)).output == "done"
    assert (await row(run)).lease_token == token, "one worker did it all"
    assert (fleet.received("tools/call"), fleet.received(None)) == (1, 1)


async def test_a_run_whose_session_is_over_is_anybodys_again(fleet: Fleet) -> None:
    fleet.start("a")
    run, round_ = await fleet.asked()
    await fleet.desk.accept(round_, name="Ada")
    await fleet.desk.finished(run)
    fleet.kill("a")
    fleet.start("b")
    await db.write(control.reply, run.pk, "once more")
    again = await fleet.desk.eventually(
        lambda: Run.objects.filter(pk=run.pk, status="waiting_for_input").first(),
        "the other host to ask",
        run,
    )
    assert again.pin == fleet.identity("b")


async def test_when_the_host_is_gone_round_and_run_fail_and_say_which_machine_it_was(
    fleet: Fleet,
    bound: Bound,
) -> None:
    bound(SOON)
    fleet.start("a")
    run, round_ = await fleet.asked()
    keeper = await fleet.keeper_of(run)
    fleet.kill("a")
    fleet.start("b")
    done = await fleet.desk.finished(run)
    assert (done.outcome, done.error_code) == ("failed", "managed_input_recovery_unavailable")
    assert fleet.identity("a").split(" ")[0] in (done.error or "")
    assert "start the run again" in (done.error or "")
    lost = await db.read(Round.objects.get, pk=round_.pk)
    assert (lost.status, lost.failure_code) == ("failed", "recovery_unavailable")
    await fleet.desk.eventually(
        lambda: Run.objects.filter(pk=run.pk, pin=None).exists(), "the pin to go", run
    )
    with pytest.raises(StateConflict):
        await fleet.desk.accept(round_, name="too late")
    assert is_running(keeper), "no other host can end it"

    fleet.start("a")
    await fleet.ended(keeper)
    assert (fleet.received("tools/call"), fleet.received(None)) == (1, 0)


async def test_an_answer_that_was_stored_before_its_host_went_is_not_said_to_have_arrived(
    fleet: Fleet,
    bound: Bound,
) -> None:
    bound(SOON)
    fleet.start("a")
    run, round_ = await fleet.asked()
    fleet.kill("a")
    bound(NEVER)  # for whoever takes the answer, which then comes in time however slow this machine is
    await fleet.desk.accept(round_, name="Ada")
    bound(SOON)
    fleet.start("b")
    done = await fleet.desk.finished(run)
    assert done.error_code == "managed_input_recovery_unavailable"
    lost = await db.read(Round.objects.get, pk=round_.pk)
    assert (lost.failure_code, lost.delivered_at) == ("recovery_unavailable", None)
    assert lost.responses, "the answer stays on record"
    assert (fleet.received("tools/call"), fleet.received(None)) == (1, 0)


async def test_a_call_that_may_be_made_again_is_made_on_another_host_with_the_answer_given_meanwhile(
    fleet: Fleet,
    bound: Bound,
    old_server: Callable[..., None],
) -> None:
    bound(SOON)
    old_server(readOnlyHint=True)
    fleet.start("a")
    run, round_ = await fleet.asked()
    keeper = await fleet.keeper_of(run)
    fleet.kill("a")
    bound(NEVER)  # for whoever takes the answer, which then comes in time however slow this machine is
    await fleet.desk.accept(round_, name="Ada")
    bound(SOON)
    fleet.start("b")
    done = await fleet.desk.finished(run)
    assert (done.output, done.pin) == ("done", None)
    (reply,) = (await db.read(results, run))["steps.0"]["result"]["replies"]
    assert reply["content"] == {"name": "Ada"}
    assert (fleet.received("tools/call"), fleet.received(None)) == (2, 1)
    assert await db.read(Round.objects.filter(run=run).count) == 1, "nobody was asked twice"
    fleet.start("a")
    await fleet.ended(keeper)


async def test_an_answer_for_a_host_that_is_gone_is_refused_and_can_be_given_when_it_is_back(
    fleet: Fleet,
    bound: Bound,
) -> None:
    """The process that takes the answer is on another host, so it goes by the signs of life of that one."""
    bound(SOON)
    fleet.start("a")
    run, round_ = await fleet.asked()
    fleet.kill("a")
    await fleet.let_go(run)
    await fleet.gone("a")
    with pytest.raises(StateConflict, match="another machine"):
        await fleet.desk.accept(round_, name="into the void")
    assert (await db.read(Round.objects.get, pk=round_.pk)).status == "pending"
    fleet.start("a")
    await fleet.desk.eventually(
        lambda: run.events.filter(type="tool_call.resumed").exists(), "the attach", run
    )
    await fleet.desk.accept(round_, name="Ada")
    assert (await fleet.desk.finished(run)).output == "done"
    assert (fleet.received("tools/call"), fleet.received(None)) == (1, 1)


async def test_a_host_that_comes_back_before_anybody_took_its_run_keeps_it_again(
    fleet: Fleet,
    bound: Bound,
) -> None:
    bound(SOON)
    fleet.start("a")
    run, round_ = await fleet.asked()
    fleet.kill("a")
    await fleet.let_go(run)
    await db.write(Run.objects.filter(pk=run.pk).update, pin=None)  # a third host saw that it was gone
    fleet.start("a")
    await fleet.desk.eventually(
        lambda: run.events.filter(type="tool_call.resumed").exists(), "the attach", run
    )
    assert (await row(run)).pin == fleet.identity("a")
    await fleet.desk.accept(round_, name="Ada")
    assert (await fleet.desk.finished(run)).output == "done"


async def test_cancelling_while_the_host_is_away_ends_the_session_when_it_is_back(fleet: Fleet) -> None:
    fleet.start("a")
    run, _ = await fleet.asked()
    keeper = await fleet.keeper_of(run)
    fleet.kill("a")
    fleet.start("b")
    await db.write(control.cancel, run.pk, decider=Decider(user=fleet.desk.person, via="page"))
    await fleet.looked_at_everything()
    assert is_running(keeper)
    fleet.start("a")
    await fleet.ended(keeper)
    await fleet.desk.eventually(
        lambda: Run.objects.filter(pk=run.pk, pin=None).exists(), "the pin to go", run
    )


async def test_a_cancelled_run_of_a_host_that_is_gone_leaves_its_session_to_that_host(
    fleet: Fleet,
    bound: Bound,
) -> None:
    bound(SOON)
    fleet.start("a")
    run, _ = await fleet.asked()
    keeper = await fleet.keeper_of(run)
    fleet.kill("a")
    await db.write(control.cancel, run.pk, decider=Decider(user=fleet.desk.person, via="page"))
    fleet.start("b")
    call = await db.read(ToolCall.objects.get, step__run=run)
    await fleet.desk.eventually(
        lambda: "session" not in ToolCall.objects.get(pk=call.pk).wire, "the record to go", run
    )
    assert is_running(keeper)
    fleet.start("a")
    await fleet.ended(keeper)


async def test_a_session_at_an_http_server_goes_on_from_any_host_at_once(
    fleet: Fleet,
    playground_effects: Path,
) -> None:
    fleet.start("a")
    call = {"call": "legacy:ask_in_turn", "args": {"times": 1, "tag": "any host"}, "as": "r"}
    run = await fleet.desk.start([call, {"finish": "{{ r.status }}"}], server="legacy")
    (round_,) = await fleet.desk.pending(run)
    assert (await row(run)).pin is None
    fleet.start("b")
    fleet.kill("a")
    await fleet.desk.eventually(
        lambda: run.events.filter(type="tool_call.resumed").exists(), "the attach", run
    )
    await fleet.desk.accept(round_, name="Ada")
    assert (await fleet.desk.finished(run)).output == "done"
    began = [entry for entry in effects_in(playground_effects) if entry.get("tag") == "any host"]
    assert [entry["what"] for entry in began].count("ask_in_turn began") == 1


async def test_a_local_tool_is_lost_with_its_worker_and_the_lease_alone_protects_it(fleet: Fleet) -> None:
    fleet.start("a")
    run = await fleet.desk.start([{"call": "local:sign", "args": {"tag": "here"}}], server="")
    await fleet.desk.pending(run)
    held = await row(run)
    assert held.pin is None
    fleet.start("b")
    await fleet.looked_at_everything()
    assert (await row(run)).lease_token == held.lease_token, "its lease is renewed"
    fleet.kill("a")
    done = await fleet.desk.finished(run)
    assert done.error_code == "managed_input_recovery_unavailable"
    signed = [entry["what"] for entry in effects_in(fleet.seen.parent / "local")]
    assert signed == ["sign began"]


async def test_a_keeper_that_died_on_its_host_is_found_by_that_host_at_once(fleet: Fleet) -> None:
    """No other host can look; nobody waits until the host is gone, because it is not."""
    fleet.start("a")
    run, _ = await fleet.asked()
    keeper = await fleet.keeper_of(run)
    fleet.start("b")
    os.kill(keeper, signal.SIGKILL)
    done = await fleet.desk.finished(run)
    assert done.error_code == "managed_input_recovery_unavailable"
    assert "The process that kept the server's session" in (done.error or "")
