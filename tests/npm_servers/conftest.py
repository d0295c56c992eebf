"""Servers from npm, which nobody here wrote: one process per call over stdio, one for all tests over HTTP."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from runs.mcp_client import Binding, HttpBinding, StdioBinding
from tests.mcp.bindings import PATIENCE, free_port, listens, wait_for
from tests.mcp.recorder import Recorder
from tests.requirements import node_path, npm_script

LOOPBACK = Path(__file__).with_name("loopback.cjs")


@pytest.fixture(scope="session")
def everything_over_stdio() -> StdioBinding:
    script = npm_script("@modelcontextprotocol/server-everything")
    return StdioBinding(command=node_path(), args=(script, "stdio"))


@pytest.fixture(scope="session")
def everything_over_http() -> Iterator[HttpBinding]:
    script = npm_script("@modelcontextprotocol/server-everything")
    port = free_port()
    server = subprocess.Popen(
        [node_path(), "--require", str(LOOPBACK), script, "streamableHttp"],
        env={**os.environ, "PORT": str(port)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        wait_for(lambda: listens(port) or server.poll() is not None, f"server-everything on port {port}")
        assert server.poll() is None, "server-everything did not start"
        yield HttpBinding(url=f"http://127.0.0.1:{port}/mcp", allow_private=True)
    finally:
        server.terminate()
        server.wait(PATIENCE)


@pytest.fixture(params=["stdio", "http"])
def everything(request: pytest.FixtureRequest) -> Binding:
    """server-everything, once over each transport."""
    binding: Binding = request.getfixturevalue(f"everything_over_{request.param}")
    return binding


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The one folder that the filesystem server may touch."""
    allowed = tmp_path / "allowed"
    allowed.mkdir()
    return allowed


@pytest.fixture
def filesystem(folder: Path) -> StdioBinding:
    script = npm_script("@modelcontextprotocol/server-filesystem")
    return StdioBinding(command=node_path(), args=(script, str(folder)))


@pytest.fixture
def recorder() -> Recorder:
    return Recorder()
