"""An older server asks over HTTP, its worker goes, and the next worker goes on with the server's session."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from runs import control, db
from runs.models import Round, Run, ToolCall
from runs.round_rows import Decider
from tests.mcp.bindings import effects_in
from tests.worker.conftest import Desk, replaced, results


def done_by(effects: Path, what: str, tag: str) -> list[dict[str, Any]]:
    return [entry for entry in effects_in(effects) if entry["what"] == what and entry.get("tag") == tag]


async def asked(desk_: Desk, tag: str, times: int = 1) -> tuple[Run, Round]:
    call = {"call": "legacy:ask_in_turn", "args": {"times": times, "tag": tag}, "as": "r"}
    run = await desk_.start([call, {"finish": "{{ r.status }}"}], server="legacy")
    (round_,) = await desk_.pending(run)
    return run, round_


async def test_a_worker_stops_while_a_person_thinks_and_the_next_one_goes_on(
    desk_: Desk, desk_of: Callable[..., Any], stop: Callable[[], Any], playground_effects: Path
) -> None:
    run, round_ = await asked(desk_, "thinks")
    second = await replaced(desk_of, desk_, stop)
    await second.eventually(lambda: run.events.filter(type="tool_call.resumed").exists(), "the attach", run)
    taken = await db.read(Round.objects.get, pk=round_.pk)
    assert (taken.status, taken.lease_owner) == ("pending", second.engine.owner)
    await second.accept(round_, name="Ada")
    assert (await second.finished(run)).output == "done"
    assert "Ada" in (await db.read(results, run))["steps.0"]["result"]
    assert len(done_by(playground_effects, "ask_in_turn began", "thinks")) == 1
    call = await db.read(ToolCall.objects.get, step__run=run)
    assert (call.attempts, "session" in call.wire) == (1, False)


async def test_an_answer_that_is_given_while_nobody_works_is_delivered_by_the_next_worker(
    desk_: Desk, desk_of: Callable[..., Any], stop: Callable[[], Any], playground_effects: Path
) -> None:
    run, first = await asked(desk_, "away", times=2)
    await stop()
    await desk_.accept(first, name="first")
    desk = await replaced(desk_of, desk_, stop)
    second = await desk.eventually(
        lambda: Round.objects.filter(run=run, round_index=1).pending().first(), "the second prompt", run
    )
    await stop()
    await desk.accept(second, name="second")
    third = await replaced(desk_of, desk, stop)
    assert (await third.finished(run)).output == "done"
    text = (await db.read(results, run))["steps.0"]["result"]
    assert text.index("first") < text.index("second")
    assert len(done_by(playground_effects, "ask_in_turn began", "away")) == 1
    assert await db.read(Round.objects.filter(run=run).count) == 2


async def test_cancelling_a_run_whose_session_nobody_holds_ends_the_call_at_its_server(
    desk_: Desk, desk_of: Callable[..., Any], stop: Callable[[], Any]
) -> None:
    run, _ = await asked(desk_, "cancelled")
    await stop()
    await db.write(control.cancel, run.pk, decider=Decider(user=desk_.person, via="page"))
    call = await db.read(ToolCall.objects.get, step__run=run)
    await desk_of(desk_.account, desk_.person)
    await desk_.eventually(
        lambda: "session" not in ToolCall.objects.get(pk=call.pk).wire, "the session to be ended", run
    )
