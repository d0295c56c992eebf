"""A worker is stopped in the very moment in which its server asks: a pause that is shown has a session behind it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.db import transaction

from runs import db
from runs.models import Round, Run, ToolCall
from runs.worker import leg_rows, replay
from runs.worker.calls import CallDriver
from tests.mcp.bindings import effects_in
from tests.worker.conftest import PATIENCE, Desk, replaced, results


class Writer:
    """The thread that writes, which a test can have wait until a worker that stops has decided about its sessions."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._patch = monkeypatch
        self._waits, self._decided = threading.Event(), threading.Event()
        original = CallDriver.before_stop

        async def before_stop(driver: CallDriver, **how: Any) -> None:
            await original(driver, **how)
            self._decided.set()
            for _ in range(2):  # what came of the wait is stored, and whatever followed from that at once
                await db.write(lambda: None)

        monkeypatch.setattr(CallDriver, "before_stop", before_stop)

    def wait(self) -> None:
        self._waits.set()
        assert self._decided.wait(PATIENCE), "no worker was stopped"

    def wait_at(self, module: Any, boundary: str, when: str) -> None:
        """Wait in a boundary, `when` it begins or right after its commit. On other calls of it, nothing."""
        original = getattr(module, boundary)

        def held(*args: Any, **more: Any) -> Any:
            if when == "begins" and not self._waits.is_set():
                self.wait()
            done = original(*args, **more)
            if when == "is over" and not self._waits.is_set():
                transaction.on_commit(self.wait)
            return done

        self._patch.setattr(module, boundary, held)

    def waits(self) -> bool:
        return self._waits.is_set()

    def let_go(self) -> None:
        self._decided.set()


@pytest.fixture
def writer(monkeypatch: pytest.MonkeyPatch) -> Iterator[Writer]:
    writer = Writer(monkeypatch)
    yield writer
    writer.let_go()


async def asks(desk_: Desk, tag: str) -> Run:
    call = {"call": "legacy:ask_in_turn", "args": {"times": 1, "tag": tag}, "as": "r"}
    return await desk_.start([call, {"finish": "{{ r.status }}"}], server="legacy")


@pytest.mark.parametrize("when", ["begins", "is over"])
async def test_a_question_that_was_being_stored_is_still_asked_by_the_session_that_the_next_worker_takes(
    desk_: Desk,
    desk_of: Callable[..., Any],
    stop: Callable[[], Any],
    playground_effects: Path,
    writer: Writer,
    when: str,
) -> None:
    writer.wait_at(leg_rows, "open_held", when)
    tag = f"stored {when}"
    run = await asks(desk_, tag)
    await desk_.eventually(writer.waits, "the question to be stored", run)

    second = await replaced(desk_of, desk_, stop)

    await second.eventually(lambda: run.events.filter(type="tool_call.resumed").exists(), "the attach", run)
    (round_,) = await second.pending(run)
    await second.accept(round_, name="Ada")
    assert (await second.finished(run)).output == "done"
    assert "Ada" in (await db.read(results, run))["steps.0"]["result"]
    begun = [entry for entry in effects_in(playground_effects) if entry.get("tag") == tag]
    assert [entry["what"] for entry in begun].count("ask_in_turn began") == 1


async def test_a_question_that_comes_once_the_session_is_to_be_ended_is_shown_to_nobody(
    desk_: Desk, stop: Callable[[], Any], writer: Writer
) -> None:
    writer.wait_at(replay, "stored_answer", "begins")
    run = await asks(desk_, "late")
    await desk_.eventually(writer.waits, "the question to arrive", run)

    await stop()

    assert not await db.read(Round.objects.filter(run=run).exists)
    assert "session" not in (await db.read(ToolCall.objects.get, step__run=run)).wire
