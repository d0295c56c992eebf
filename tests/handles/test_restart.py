"""A program is killed while a round is pending; the next one answers, and every effect has happened once."""

from __future__ import annotations

import dataclasses
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.conf import LazySettings

from runs.handles import MCPTestKit, ModelValidationError, NotFound, SQLiteExecutionStore, StdioServer
from runs.models import Run
from tests.handles.conftest import ADDRESS, agent, answer, inside, pending_of
from tests.mcp.bindings import PATIENCE, ROOT, wait_for


@pytest.fixture
def killed(path: Path, parcels: Callable[..., StdioServer], tmp_path: Path) -> list[str]:
    """The ids that a program told before it was killed: of its execution and of the pending round."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "M3_DATA_DIR": str(tmp_path / "var")}
    arguments = [str(path), parcels().args[0], str(tmp_path / "effects")]
    with subprocess.Popen(
        [sys.executable, "-m", "tests.handles.first_program", *arguments],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
    ) as program:
        try:
            assert program.stdout is not None
            told = program.stdout.readline().split()
        finally:
            program.send_signal(signal.SIGKILL)
    assert len(told) == 2
    return told


def test_the_next_program_answers_and_the_call_goes_on_once(
    killed: list[str],
    store: SQLiteExecutionStore,
    parcels: Callable[..., StdioServer],
    effects: Callable[[], list[dict[str, Any]]],
) -> None:
    execution_id, round_id = killed
    with MCPTestKit(store=store, env={}, servers=[parcels()]) as kit:
        handle = kit.execution(execution_id)
        assert pending_of(handle).round_id == round_id
        handle.respond_elicitation(round_id, {"shipping_address": ADDRESS}, idempotency_key="after")
        assert handle.result(PATIENCE).output == "done"
    assert [effect["what"] for effect in effects()] == ["label", "book"]


def test_without_its_server_the_execution_waits_and_says_what_it_needs(
    killed: list[str], store: SQLiteExecutionStore
) -> None:
    with MCPTestKit(store=store, env={}) as kit:
        with pytest.raises(ModelValidationError, match="servers="):
            kit.execution(killed[0])
        with pytest.raises(NotFound):
            kit.execution(killed[1])
    (waiting,) = store.managed_input_store.list_rounds(killed[0])
    assert waiting.status == "pending"


def test_an_execution_that_is_due_waits_for_its_server_too(
    path: Path,
    settings: LazySettings,
    parcels: Callable[..., StdioServer],
    effects: Callable[[], list[dict[str, Any]]],
) -> None:
    settings.M3 = dataclasses.replace(settings.M3, sweep_seconds=0.05)
    steps: list[dict[str, Any]] = [
        {"sleep": 0.5},
        {"call": "parcels:label", "as": "x"},
        {"finish": "{{ x.status }}"},
    ]
    store, another = SQLiteExecutionStore(path), SQLiteExecutionStore(path)
    with MCPTestKit(store=store, env={}) as kit:
        handle = agent(kit, *steps).submit("Label", server=parcels())
        wait_for(lambda: handle.snapshot().started_at, "the start")

    def due() -> bool:
        with inside(path):
            run = Run.objects.order_by("pk")[0]
            return run.next_at is None and run.wake_seq != run.seen_seq

    with MCPTestKit(store=another, env={}) as without:
        wait_for(due, "the end of the sleep")
        other = agent(without, {"sleep": 0.3}, {"finish": "ok"}).submit("Other")
        assert other.result(PATIENCE).output == "ok"
        assert due()
    with MCPTestKit(store=store, env={}, servers=[parcels()]) as kit:
        assert kit.execution(handle.execution_id).result(PATIENCE).output == "done"
    store.close()
    another.close()
    assert len(effects()) == 1


def test_a_question_on_an_open_session_waits_for_the_next_kit(
    path: Path, parcels: Callable[..., StdioServer], effects: Callable[[], list[dict[str, Any]]]
) -> None:
    steps = [{"call": "parcels:book", "as": "b"}, {"finish": "{{ b.status }}"}]
    store = SQLiteExecutionStore(path)
    with MCPTestKit(store=store, env={}) as kit:
        handle = agent(kit, *steps).submit("Book", server=parcels("legacy"), human_input="managed")
        round_id = pending_of(handle).round_id
    with MCPTestKit(store=store, env={}, servers=[parcels("legacy")]) as kit:
        again = kit.execution(handle.execution_id)
        assert answer(again, elicitation=ADDRESS) == round_id
        assert again.result(PATIENCE).output == "done"
    store.close()
    assert len(effects()) == 1
