"""Real servers for the client's tests, shared over HTTP where stdio is not the point."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from runs.mcp_client import HttpBinding
from tests.mcp.bindings import PATIENCE, ROOT, STATE_KEY, free_port, listens, wait_for
from tests.mcp.recorder import Recorder


@pytest.fixture(scope="session")
def serve_http() -> Iterator[Callable[..., str]]:
    """Start a server module with `--http` and give its URL; all are ended with the test session."""
    children: list[subprocess.Popen[bytes]] = []

    def start(name: str, **env: str) -> str:
        port = free_port()
        child = subprocess.Popen(
            [sys.executable, "-m", name, "--http", str(port)], cwd=ROOT, env={**os.environ, **env}
        )
        children.append(child)
        wait_for(lambda: listens(port) or child.poll() is not None, f"{name} on port {port}")
        assert child.poll() is None, f"{name} did not start"
        return f"http://127.0.0.1:{port}/mcp"

    yield start
    for child in children:
        child.terminate()
    for child in children:
        child.wait(PATIENCE)


@pytest.fixture(scope="session")
def effects(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the shared HTTP playground writes its effects."""
    return tmp_path_factory.mktemp("playground") / "effects"


@pytest.fixture(scope="session")
def playground(serve_http: Callable[..., str], effects: Path) -> HttpBinding:
    url = serve_http("tests.servers.playground", M3_EFFECTS=str(effects), M3_STATE_KEY=STATE_KEY)
    return HttpBinding(url=url, allow_private=True)


@pytest.fixture
def recorder() -> Recorder:
    return Recorder()
