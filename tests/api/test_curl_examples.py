"""The shell examples of docs/api.md, run as printed against a live installation."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

from tests.api.live import live
from tests.core.pages import examples
from tests.requirements import require

SECONDS = 120


def test_the_shell_examples_run_as_printed(tmp_path: Path) -> None:
    require(shutil.which("curl") is not None, "curl")
    data = tmp_path / "data"
    data.mkdir()
    printed = [text for _, text in examples("docs/api.md", "sh")]
    with live(data, {}, M3_DEMO="0", M3_ALLOW_PRIVATE_URLS="1") as installation:
        done = subprocess.run(
            ["bash", "-eu", "-o", "pipefail", "-c", "\n".join(printed)],
            env={
                "PATH": "/usr/bin:/bin",
                "M3_URL": f"http://127.0.0.1:{installation.up.port}",
                "M3_KEY": installation.key,
                "MCP_URL": f"http://127.0.0.1:{installation.up.port}/mcp",
            },
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        with installation.client() as client:
            (run,) = client.get("runs/").json()["data"]
            servers = client.get("servers/").json()["data"]
    assert done.returncode == 0, done.stdout + done.stderr
    assert (run["status"], run["output"], servers) == ("completed", "Chosen.", [])
    assert '"trusted":true' in done.stdout
    assert '"ok":false' in done.stdout  # at that address is no MCP server
    assert json.loads(done.stdout[done.stdout.rindex('{"data":') :])["data"][0]["run_id"] == run["id"]
