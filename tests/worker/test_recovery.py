"""The worker that asked is gone; another goes on as far as can be proven, and says so where it cannot."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from runs import db, lease
from runs.binding import binding_of
from runs.errors import LeaseLost, SessionBusyError, StateConflict
from runs.mcp_client import LiveSession, end_session
from runs.models import Round, Run, Server, Tool, ToolCall
from runs.run_states import HumanInput
from runs.worker import call_journal, journal
from tests.mcp.bindings import effects_in
from tests.worker.conftest import Desk, replaced, results


async def test_a_card_outlives_its_worker(
    desk_: Desk, desk_of: Callable[..., Any], stop: Callable[[], Any]
) -> None:
    run = await desk_.start([{"call": "playground:no_state", "args": {}, "as": "r"}], server="playground")
    (round_,) = await desk_.pending(run)
    await stop()
    await desk_.accept(round_, name="written while nobody works")
    second = await replaced(desk_of, desk_, stop)
    await second.finished(run)
    assert "written while nobody works" in (await db.read(results, run))["steps.0"]["result"]


async def interrupted(desk_: Desk, tag: str, playground_effects: Any, **options: Any) -> Run:
    run = await desk_.start(
        [{"call": "playground:slow", "args": {"tag": tag}, "as": "r"}, {"finish": "{{ r.status }}"}],
        server="playground",
        **options,
    )
    await desk_.eventually(
        lambda: [
            e for e in effects_in(playground_effects) if e["what"] == "slow started" and e["tag"] == tag
        ],
        "the call",
        run,
    )
    return run


async def test_a_started_call_of_unknown_outcome_is_not_repeated_but_asked_about(
    desk_: Desk, desk_of: Callable[..., Any], stop: Callable[[], Any], playground_effects: Any
) -> None:
    run = await interrupted(desk_, "unknown", playground_effects)
    second = await replaced(desk_of, desk_, stop)
    (round_,) = await second.pending(run, "outcome")
    started = [
        e for e in effects_in(playground_effects) if e["what"] == "slow started" and e["tag"] == "unknown"
    ]
    assert len(started) == 1
    assert (await db.read(ToolCall.objects.get, step__run=run)).phase == "unknown"
    await second.accept(round_, decision="happened")
    assert (await second.finished(run)).output == "done"


async def test_where_nobody_may_be_asked_the_end_of_the_run_says_that_the_call_may_have_happened(
    desk_: Desk, desk_of: Callable[..., Any], stop: Callable[[], Any], playground_effects: Any
) -> None:
    run = await interrupted(desk_, "unasked", playground_effects, human_input=HumanInput.FAIL)
    second = await replaced(desk_of, desk_, stop)
    ended = await second.finished(run)
    assert (ended.outcome, ended.error_code) == ("failed", "human_input_required")
    assert (ended.error or "").startswith(
        "playground:slow was called, and nobody knows whether it took effect"
    )


async def test_run_again_is_one_permission_for_one_attempt(
    desk_: Desk, desk_of: Callable[..., Any], stop: Callable[[], Any], playground_effects: Any
) -> None:
    run = await interrupted(desk_, "again", playground_effects)
    second = await replaced(desk_of, desk_, stop)
    (round_,) = await second.pending(run, "outcome")
    await second.accept(round_, decision="run_again")

    def started() -> bool:
        found = [
            e for e in effects_in(playground_effects) if e["what"] == "slow started" and e["tag"] == "again"
        ]
        return len(found) == 2

    await second.eventually(started, "the second attempt", run)
    third = await replaced(desk_of, second, stop)
    (asked,) = await third.pending(run, "outcome")
    assert asked.pk != round_.pk, "the old permission is used up"
    await third.accept(asked, decision="stop")
    done = await third.finished(run)
    assert (done.outcome, done.error_code) == ("failed", "stopped")


async def test_a_read_only_tool_of_a_trusted_server_is_simply_called_again(
    desk_: Desk, desk_of: Callable[..., Any], stop: Callable[[], Any], playground_effects: Any
) -> None:
    run = await interrupted(desk_, "harmless", playground_effects)
    await db.write(Tool.objects.filter(name="slow").update, annotations={"readOnlyHint": True})
    second = await replaced(desk_of, desk_, stop)
    await second.eventually(
        lambda: run.events.filter(type="tool_call.repeated").exists(),
        "the call to be made again by itself",
        run,
    )
    assert await db.read(Round.objects.filter(run=run).count) == 0


async def session_is_lost(run: Run) -> None:
    """End the session of the run's call at its server, as a server does that is started anew."""
    call = await db.read(ToolCall.objects.select_related("server").get, step__run=run)
    assert call.server is not None
    facts = {key: value for key, value in call.wire["session"].items() if key != "host"}
    await end_session(binding_of(call.server), LiveSession(**facts), token=0)


async def test_a_lost_live_session_fails_its_round_and_run_and_refuses_late_answers(
    desk_: Desk, desk_of: Callable[..., Any], stop: Callable[[], Any]
) -> None:
    run = await desk_.start([{"call": "legacy:ask_in_turn", "args": {"times": 1}}], server="legacy")
    (round_,) = await desk_.pending(run)
    await stop()
    await session_is_lost(run)
    second = await replaced(desk_of, desk_, stop)
    done = await second.finished(run)
    assert (done.outcome, done.error_code) == ("failed", "managed_input_recovery_unavailable")
    assert "The server's session is gone" in (done.error or "")
    fresh = await db.read(Round.objects.get, pk=round_.pk)
    assert (fresh.status, fresh.outcome) == ("failed", "recovery_unavailable")
    with pytest.raises(StateConflict):
        await second.accept(round_, name="too late")


async def test_a_reply_that_was_journalled_is_used_and_the_call_not_repeated(desk_: Desk) -> None:
    """The worker died between the raw result and its consequences."""
    run = await desk_.start(
        [{"call": "playground:echo", "args": {"value": "hi"}, "as": "r"}], server="playground"
    )
    await desk_.finished(run)

    def rewind() -> None:
        step = run.steps.get()
        step.result, step.finished_at = None, None
        step.save()
        ToolCall.objects.filter(step=step).update(phase="sent")
        run.turns.update(status="running_turn", outcome=None, finished_at=None, output=None)
        Run.objects.filter(pk=run.pk).update(status="running_turn", outcome=None)
        run.steps.filter(kind="finish").delete()
        lease.wake(run.pk)

    attempts = (await db.read(ToolCall.objects.get, step__run=run)).attempts
    await db.read(run.steps.filter(kind="finish").delete)
    await db.write(rewind)
    await desk_.finished(run)
    call = await db.read(ToolCall.objects.get, step__run=run)
    assert call.attempts == attempts
    assert (await db.read(results, run))["steps.0"]["result"] == "hi"


async def test_a_worker_that_was_replaced_writes_nothing(desk_: Desk, stop: Callable[[], Any]) -> None:
    run = await desk_.start([{"call": "playground:no_state", "args": {}, "as": "r"}], server="playground")
    (round_,) = await desk_.pending(run)
    await stop()
    await db.write(lease.wake, run.pk)
    first = await db.write(lease.claim, run.pk, "first worker")
    assert first is not None
    with pytest.raises(SessionBusyError):  # never two workers on one run (A24)
        await db.write(lease.claim, run.pk, "second worker")
    await db.write(lease.revoke, run.pk)
    second = await db.write(lease.claim, run.pk, "second worker")
    assert second is not None
    assert second.token > first.token
    for write in (
        lambda: db.write(journal.fail_current_turn, first, "x"),
        lambda: db.write(call_journal.failed, first, round_.step_id, "x", unknown=False),
        lambda: db.write(journal.park, first, 99, None),
    ):
        with pytest.raises(LeaseLost):
            await write()
    assert (await db.read(Run.objects.get, pk=run.pk)).status == "waiting_for_input"


async def test_a_call_is_never_sent_without_a_permission(desk_: Desk, stop: Callable[[], Any]) -> None:
    run = await desk_.start([{"call": "playground:no_state", "args": {}, "as": "r"}], server="playground")
    (round_,) = await desk_.pending(run)
    await stop()
    await db.write(lease.wake, run.pk)
    held = await db.write(lease.claim, run.pk, "worker")
    with pytest.raises(RuntimeError, match="no permission"):
        await db.write(call_journal.sent, held, round_.step_id, "id-1")


async def test_a_deadline_that_passes_ends_round_and_run_as_timed_out(desk_: Desk) -> None:
    def impatient() -> None:
        desk_.account.elicitation_timeout = "1s"
        desk_.account.save()

    await db.write(impatient)
    run = await desk_.start([{"call": "playground:no_state", "args": {}, "as": "r"}], server="playground")
    (round_,) = await desk_.pending(run)
    assert round_.deadline is not None
    done = await desk_.finished(run)
    assert (done.outcome, done.error_code) == ("timed_out", "timeout")
    fresh = await db.read(Round.objects.get, pk=round_.pk)
    assert (fresh.outcome, fresh.failure_code) == ("timed_out", "timeout")


async def test_the_servers_of_an_account_keep_what_was_negotiated(desk_: Desk) -> None:
    run = await desk_.start(
        [{"call": "playground:echo", "args": {"value": "x"}, "as": "r"}], server="playground"
    )
    await desk_.finished(run)
    server = await db.read(Server.objects.get, name="playground")
    assert "discover" in (server.negotiated or {})
