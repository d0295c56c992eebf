"""A program is killed while a round is pending; the next one answers, and every effect has happened once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from runs.handles import MCPTestKit, ModelValidationError, NotFound, SQLiteExecutionStore, StdioServer
from tests.handles.conftest import ADDRESS, pending_of
from tests.mcp.bindings import PATIENCE, ROOT


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
