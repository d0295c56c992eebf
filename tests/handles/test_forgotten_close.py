"""A program that ends without closing its kit ends quietly, and what waits is there for the next (C37)."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from runs.handles import MCPTestKit, SQLiteExecutionStore
from tests.mcp.bindings import ROOT

FORGETS = """
import sys
from runs.handles import MCPTestKit, SQLiteExecutionStore
kit = MCPTestKit(store=SQLiteExecutionStore(sys.argv[1]), env={})
ask = {"questions": [{"question": "Go?", "header": "Go", "options": [{"label": "Yes"}, {"label": "No"}]}]}
agent = kit.agents([{"definition": {"steps": [{"ask": ask}]}}])[0]
handle = agent.submit("Ask", human_input="managed")
while not handle.pending_rounds():
    pass
print(handle.execution_id)
"""


@pytest.mark.parametrize("last", ["", "raise SystemExit(0)"])
def test_nothing_is_printed_and_nothing_is_lost(path: Path, tmp_path: Path, last: str) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "M3_DATA_DIR": str(tmp_path / "var")}
    environment.pop("DJANGO_SETTINGS_MODULE", None)
    ended = subprocess.run(
        [sys.executable, "-c", FORGETS + last, str(path)],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert (ended.returncode, ended.stderr) == (0, "")

    store = SQLiteExecutionStore(path)
    with MCPTestKit(store=store, env={}) as kit:
        assert len(kit.execution(ended.stdout.strip()).pending_rounds()) == 1
    store.close()
