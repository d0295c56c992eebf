"""Where the servers of these tests are, and how to wait for what they do."""

from __future__ import annotations

import json
import socket
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from runs.mcp_client import StdioBinding

ROOT = Path(__file__).resolve().parents[2]
STATE_KEY = "5a" * 32
LEGACY = {"initialize": {}}
"""A saved negotiation that makes a server of both generations speak the older one."""

PATIENCE = 60.0
"""Seconds that anything may take before a test gives up."""


def script(path: Path | str, *args: str, env: dict[str, str] | None = None) -> StdioBinding:
    return StdioBinding(command=sys.executable, args=(str(path), *args), env=env or {})


def module(name: str, **env: str) -> StdioBinding:
    return StdioBinding(command=sys.executable, args=("-m", name), env=env, cwd=str(ROOT))


def raw(*args: str, **env: str) -> StdioBinding:
    return script(ROOT / "tests" / "servers" / "raw.py", *args, env=env)


def effects_in(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def wait_for(condition: Callable[[], Any], what: str, *, patience: float = PATIENCE) -> Any:
    """Poll until `condition` gives something true; fail after `patience` seconds."""
    until = time.monotonic() + patience
    while time.monotonic() < until:
        if found := condition():
            return found
        time.sleep(0.02)
    raise AssertionError(f"waited {patience} s for {what}")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def listens(port: int, address: str = "127.0.0.1") -> bool:
    with socket.socket() as probe:
        return probe.connect_ex((address, port)) == 0
