"""The timeout counts the server's time; a person's time is free. Cancelling is told to the server."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path
from typing import Any

import pytest

from runs.mcp_client import Answer, Completed, Failed, HttpBinding, Request
from runs.mcp_client.clock import DeadlinePassedError, HumanClock, run_until
from tests.mcp.bindings import LEGACY, PATIENCE, effects_in, module, raw
from tests.mcp.recorder import Recorder


async def until(condition: Any) -> None:
    async with asyncio.timeout(PATIENCE):
        while not condition():
            await asyncio.sleep(0.02)


async def test_a_tool_that_hangs_is_given_up_in_time(recorder: Recorder) -> None:
    outcome = await recorder.perform(raw("modern"), "hangs", timeout=2)
    assert isinstance(outcome, Failed)
    assert outcome.code == "timeout"
    assert outcome.outcome_unknown
    assert "did not answer within 2 seconds" in outcome.message


async def test_lines_that_are_no_messages_are_named_when_time_runs_out(recorder: Recorder) -> None:
    outcome = await recorder.perform(raw("modern"), "noisy", timeout=2)
    assert isinstance(outcome, Failed)
    assert "3 lines" in outcome.message


async def test_the_time_a_person_takes_is_not_counted(recorder: Recorder) -> None:
    """The person takes longer than the whole timeout, the server nearly nothing."""
    timeout = 2.0

    async def answer(_: Request) -> Answer:
        await asyncio.sleep(timeout * 1.1)
        return Answer(action="decline")

    recorder.answer = answer
    params = {"message": "?", "requestedSchema": {"type": "object"}}
    done = await recorder.perform(raw("legacy"), "asks", {"params": params}, saved=LEGACY, timeout=timeout)
    assert isinstance(done, Completed)


async def test_a_clock_with_two_pauses_runs_again_after_the_last_one() -> None:
    clock = HumanClock(0.1)
    with clock.paused():
        with clock.paused():
            pass
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(clock.expired(), 0.3)
    await asyncio.wait_for(clock.expired(), PATIENCE)


async def test_a_stopped_clock_expires_only_after_a_restart() -> None:
    clock = HumanClock(0.01)
    clock.stop()
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(clock.expired(), 0.1)
    clock.restart()
    await asyncio.wait_for(clock.expired(), PATIENCE)


async def test_work_that_ends_although_it_was_cancelled_still_counts() -> None:
    async def stubborn() -> str:
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
        return "done"

    assert await run_until(stubborn(), HumanClock(0.01)) == "done"


async def test_work_that_is_cut_short_raises_deadline_passed_after_it_closed() -> None:
    closed = asyncio.Event()

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            closed.set()

    with pytest.raises(DeadlinePassedError):
        await run_until(work(), HumanClock(0.01))
    assert closed.is_set()


@pytest.mark.parametrize("saved", [None, LEGACY], ids=["modern", "legacy"])
@pytest.mark.parametrize("report_session", [False, True], ids=["plain", "resumable"])
async def test_cancelling_the_call_cancels_the_tool_over_http(
    playground: HttpBinding, effects: Path, recorder: Recorder, saved: Any, report_session: bool
) -> None:
    tag = f"http-{saved is None}-{report_session}"
    await cancel_slow(playground, effects, recorder, tag, saved=saved, report_session=report_session)


@pytest.mark.parametrize("saved", [None, LEGACY], ids=["modern", "legacy"])
async def test_cancelling_the_call_cancels_the_tool_over_stdio(
    tmp_path: Path, recorder: Recorder, saved: Any
) -> None:
    effects = tmp_path / "effects"
    server = module("tests.servers.playground", M3_EFFECTS=str(effects))
    await cancel_slow(server, effects, recorder, "stdio", saved=saved)


async def cancel_slow(server: Any, effects: Path, recorder: Recorder, tag: str, **options: Any) -> None:
    def seen(what: str) -> bool:
        return {"what": what, "tag": tag} in effects_in(effects)

    call = asyncio.create_task(recorder.perform(server, "slow", {"tag": tag}, timeout=60, **options))
    await until(lambda: seen("slow started"))
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(call, PATIENCE)
    await until(lambda: seen("slow cancelled"))


async def test_time_running_out_cancels_the_tool(
    playground: HttpBinding, effects: Path, recorder: Recorder
) -> None:
    outcome = await recorder.perform(playground, "slow", {"tag": "late"}, saved=LEGACY, timeout=2.0)
    assert isinstance(outcome, Failed)
    assert outcome.code == "timeout"
    await until(lambda: {"what": "slow cancelled", "tag": "late"} in effects_in(effects))


async def test_cancelling_during_a_prompt_frees_the_prompt(
    playground: HttpBinding, recorder: Recorder
) -> None:
    freed = asyncio.Event()

    async def answer(_: Request) -> Answer:
        try:
            await asyncio.Event().wait()
        finally:
            freed.set()
        raise AssertionError("unreachable")

    recorder.answer = answer
    call = asyncio.create_task(recorder.perform(playground, "ask_in_turn", {"times": 1}, saved=LEGACY))
    await until(lambda: recorder.asked)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(call, PATIENCE)
    assert freed.is_set()
