"""Processes that a benchmark starts, watches and ends, each by its own id. Linux only: memory and CPU from /proc."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")

ROOT = Path(__file__).resolve().parents[1]
PATIENCE = 120.0
"""Seconds that anything may take before a benchmark gives up."""


def wait_for(condition: Callable[[], T], what: str, *, every: float = 0.02) -> T:
    """Look every `every` seconds until `condition` gives something true. Raises TimeoutError after PATIENCE."""
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        if found := condition():
            return found
        time.sleep(every)
    raise TimeoutError(f"waited {PATIENCE:.0f} s for {what}")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextmanager
def listening(
    args: Sequence[str], port: int, log: Path, env: dict[str, str] | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    """A Python process of ours (`args` follow the interpreter) while it serves `port`; ended on leaving.

    `env` is its whole environment, by default the caller's.
    Raises RuntimeError with its output if it ends before it listens.
    """
    with running(args, lambda: _answers(port), log, env) as process:
        yield process


@contextmanager
def running(
    args: Sequence[str], ready: Callable[[], bool], log: Path, env: dict[str, str] | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    """The same for a process that is `ready` in another way than by listening."""
    with log.open("ab") as output:
        process = subprocess.Popen([sys.executable, *args], cwd=ROOT, env=env, stdout=output, stderr=output)
    try:
        wait_for(lambda: process.poll() is not None or ready(), f"{args} to be ready")
        if process.poll() is not None:
            raise RuntimeError(f"{args} ended with {process.returncode}:\n{log.read_text()}")
        yield process
    finally:
        _end(process)


def resident_mb(pid: int) -> float:
    """Megabytes of memory that the process holds now (VmRSS)."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0]) / 1024


def cpu_seconds(pid: int) -> float:
    """Processor time of the process so far, user and system."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def cpu_percent(pid: int, seconds: float) -> float:
    """Share of one core that the process uses over the next `seconds`."""
    before, started = cpu_seconds(pid), time.monotonic()
    time.sleep(seconds)
    return 100 * (cpu_seconds(pid) - before) / (time.monotonic() - started)


def _answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(15)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait(15)
