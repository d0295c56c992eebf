"""Every address of a live installation, called with data that its description permits and forbids, does what it says.

`make api-check` runs this with many examples, `make test` with few; `M3_TEST_REPEATS` says how many.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.api.live import ASK, Live, live
from tests.requirements import repeats

SECONDS = 900
"""A run that takes longer has found something that hangs."""

EXAMPLES_PER_REPEAT = 0.025
"""Of the random phases, for each address; the boundary values of the others are always all tried."""

CONFIG = """
[checks.positive_data_acceptance]
expected-statuses = ["2xx", "401", "403", "404", "409", "422"]
"""
"""A body that fits its schema may still be refused: names are taken, playbooks have mistakes, agents are not there."""

AGENTS: dict[str, Any] = {
    "Talker": {"steps": [{"say": "Hello."}, {"finish": "Done."}]},
    "Asker": {"steps": [ASK, {"finish": "{{ a.answers }}"}]},
    "Planner": {"steps": [{"plan": ["One.", "Two."], "as": "p"}, {"finish": "Done."}]},
}


def check(installation: Live, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run schemathesis over an installation as its admin."""
    config = folder / "schemathesis.toml"
    config.write_text(CONFIG)
    command = [
        str(Path(sys.executable).with_name("schemathesis")),
        f"--config-file={config}",
        "run",
        f"http://127.0.0.1:{installation.up.port}/api/v2/schema",
        f"--header=Authorization: Bearer {installation.key}",
        "--phases=examples,coverage,fuzzing,stateful",
        "--mode=all",
        "--checks=all",
        f"--max-examples={max(2, round(repeats() * EXAMPLES_PER_REPEAT))}",
        "--request-timeout=30",
        "--generation-database=none",
        "--suppress-health-check=all",  # how long data takes to make says nothing about the API
        "--no-color",
    ]
    return subprocess.run(
        command,
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=SECONDS,
        env={"PATH": "/usr/bin"},
    )


@pytest.mark.timeout(SECONDS + 200)
def test_no_address_fails_or_does_what_its_description_does_not_say(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    with live(data, AGENTS) as installation:
        for agent in AGENTS:
            installation.start(agent)
        done = check(installation, tmp_path)
        output = installation.up.text()
    assert done.returncode == 0, done.stdout[-20_000:] + done.stderr
    assert "Stateful" in done.stdout
    assert "Internal Server Error" not in output
    assert "Traceback" not in output, output[-20_000:]
