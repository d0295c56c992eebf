"""The machine and the versions, in the words that stand above recorded figures."""

from __future__ import annotations

import datetime as dt
import os
import platform
import sqlite3
import tempfile
from importlib.metadata import version
from pathlib import Path

PACKAGES = ("django", "channels", "daphne", "djangorestframework", "playwright")


def describe() -> str:
    versions = ", ".join(f"{name} {version(name)}" for name in PACKAGES)
    return "\n".join(
        [
            f"- {dt.datetime.now(dt.UTC):%Y-%m-%d}, {platform.system()} on {platform.machine()}: {_processor()}, "
            f"{os.cpu_count()} cores, {_memory_gb():.0f} GB of memory; data on {_file_system(tempfile.gettempdir())}",
            f"- load average at the start: {os.getloadavg()[0]:.1f} (of an idle machine: about 0)",
            f"- Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}, {versions}",
        ]
    )


def _processor() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    return next(
        (line.partition(":")[2].strip() for line in lines if line.startswith("model name")),
        "unnamed processor",
    )


def _memory_gb() -> float:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1024**3


def _file_system(folder: str) -> str:
    """Type of the file system that holds `folder`: the mount whose path is the longest beginning of it."""
    mounts = [line.split()[1:3] for line in Path("/proc/mounts").read_text().splitlines()]
    holding = [(len(path), kind) for path, kind in mounts if Path(folder).resolve().is_relative_to(path)]
    return max(holding)[1]
