"""A stdio server is a child with a bounded life and a bounded view of us."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from runs.mcp_client import Completed, StdioBinding
from tests.mcp.bindings import LEGACY, PATIENCE, ROOT, effects_in, raw, wait_for
from tests.mcp.recorder import Recorder

CALLER = """
import asyncio, sys
from runs.mcp_client import Operation, StdioBinding, perform

async def journal(*_): pass

async def main():
    server = StdioBinding(command=sys.argv[1], args=tuple(sys.argv[2:]), env={"M3_EFFECTS": "%s"})
    await perform(server, Operation(kind="tool", name="hangs"), saved=None, elicit=None, journal=journal, timeout=60)

asyncio.run(main())
"""


def is_running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


async def test_the_child_is_gone_when_the_call_returns(recorder: Recorder) -> None:
    await recorder.perform(raw("legacy"), "bare", saved=LEGACY, report_session=True)
    pid = recorder.sessions[0].pid
    assert pid is not None
    assert not is_running(pid)


async def test_a_child_that_ignores_the_end_of_its_input_and_sigterm_is_killed(
    tmp_path: Path, recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("runs.keeper.child.EXIT_GRACE_SECONDS", 0.3)
    stubborn = tmp_path / "stubborn.py"
    stubborn.write_text(
        "import signal, sys, time\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        f"sys.argv = ['raw', 'legacy']\n"
        f"source = open({str(ROOT / 'tests/servers/raw.py')!r}).read()\n"
        "try:\n    exec(compile(source, 'raw', 'exec'))\n"
        "except SystemExit:\n    time.sleep(600)\n"
    )
    binding = StdioBinding(command=sys.executable, args=(str(stubborn),))
    await recorder.perform(binding, "bare", saved=LEGACY, report_session=True)
    pid = recorder.sessions[0].pid
    assert pid is not None
    assert not is_running(pid)


async def test_the_child_sees_its_own_environment_and_the_path_and_nothing_else(
    recorder: Recorder, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("M3_SECRET_OF_OURS", "do not tell")
    show = tmp_path / "show.py"
    show.write_text("import os, sys\nsys.exit(' '.join(sorted(os.environ)))\n")
    binding = StdioBinding(command=sys.executable, args=(str(show),), env={"TOKEN": "x"})
    outcome: Any = await recorder.perform(binding, "x")
    names = set(outcome.message.partition("last line was: ")[2].split()) - {
        "Check",
        "that",
        "it",
        "starts",
        "by",
    }
    assert {"TOKEN", "PATH"} <= names
    assert not {"M3_SECRET_OF_OURS", "HOME", "USER"} & names


async def test_a_relative_command_is_found_on_the_bindings_own_path(
    tmp_path: Path, recorder: Recorder
) -> None:
    program = tmp_path / "my-server"
    program.write_text(f"#!/bin/sh\nexec {sys.executable} {ROOT / 'tests/servers/raw.py'} modern\n")
    program.chmod(0o755)
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    outcome = await recorder.perform(StdioBinding(command="my-server", env={"PATH": path}), "bare")
    assert isinstance(outcome, Completed)


@pytest.mark.skipif(not Path("/usr/bin/setpriv").exists(), reason="util-linux's setpriv is not installed")
def test_the_child_dies_with_its_owner_even_if_the_owner_is_killed(tmp_path: Path) -> None:
    """The server hangs and never looks at its input again, so only the death signal can end it."""
    effects = tmp_path / "seen"
    stuck = tmp_path / "stuck.py"
    stuck.write_text(
        "import json, os, time\n"
        "open(os.environ['M3_EFFECTS'], 'w').write(json.dumps({'pid': os.getpid()}))\n"
        "time.sleep(600)\n"
    )
    owner = subprocess.Popen(
        [sys.executable, "-c", CALLER % effects, sys.executable, str(stuck)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    try:
        (entry,) = wait_for(lambda: effects_in(effects), "the server to start")
        assert is_running(entry["pid"])
    finally:
        owner.send_signal(signal.SIGKILL)
        owner.wait(PATIENCE)
    wait_for(lambda: not is_running(entry["pid"]), "the server to end")
