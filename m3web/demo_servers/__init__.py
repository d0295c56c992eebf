"""The MCP servers that ship with the product, each a real process of its own.

`python -m m3web.demo_servers.shipping` speaks protocol 2026-07-28, `python -m m3web.demo_servers.desk`
2025-11-25; on stdio, or with `--http PORT` as streamable HTTP on 127.0.0.1. Nothing of the product is in them.
"""

from __future__ import annotations

import argparse
import json
import os
from typing import Any

EFFECTS_VARIABLE = "M3_EFFECTS"
"""Environment variable that names a file; every side effect appends one JSON line to it."""


def record_effect(what: str, **facts: Any) -> None:
    """Note one side effect where M3_EFFECTS says, so that a test can count what really happened."""
    path = os.environ.get(EFFECTS_VARIABLE)
    if path:
        with open(path, "a", encoding="utf-8") as file:
            file.write(json.dumps({"what": what, **facts}) + "\n")


def http_port(description: str) -> int | None:
    """The port of `--http PORT`, or None for stdio."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--http", type=int, metavar="PORT", help="serve HTTP on 127.0.0.1 instead of stdio")
    port: int | None = parser.parse_args().http
    return port
