"""A node server does not end when its input does, so something else has to end it with its owner."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from runs.mcp_client import StdioBinding
from tests.mcp.bindings import PATIENCE, ROOT, wait_for
from tests.requirements import require

pytestmark = pytest.mark.node


def is_running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


def test_a_node_server_dies_with_its_owner_even_if_the_owner_is_killed(
    everything_over_stdio: StdioBinding,
) -> None:
    require(shutil.which("setpriv") is not None, "setpriv (Debian: `apt-get install util-linux`)")
    owner = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "tests.npm_servers.owner",
            everything_over_stdio.command,
            *everything_over_stdio.args,
        ],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert owner.stdout is not None
        child = int(owner.stdout.readline())
        assert is_running(child)
    finally:
        owner.kill()
        owner.communicate(timeout=PATIENCE)
    wait_for(lambda: not is_running(child), "the server to end with its owner")
