"""Starting a stdio server and ending it, for whoever owns it: a leg of a call or a session keeper."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
from collections.abc import Mapping, Sequence

EXIT_GRACE_SECONDS = 2.0
"""How long a child may take to end after its stdin closed, and again after SIGTERM (spec, lifecycle)."""

STDERR_KEPT_BYTES = 4096

_DEATH_SIGNAL_PREFIX = ("setpriv", "--pdeathsig", "KILL", "--")
_death_signal_known: bool | None = None


async def command_line(command: str, args: Sequence[str], *, path: str, cwd: str | None) -> tuple[str, ...]:
    """What to execute so that the child dies with its owner, also on the owner's SIGKILL, where the system allows it.

    A bare `command` is looked up on `path`, another one relative to `cwd`. Raises FileNotFoundError.
    """
    prefix = _DEATH_SIGNAL_PREFIX if await _has_death_signal() else ()
    return (*prefix, _program(command, path, cwd), *args)


async def start(
    line: Sequence[str], *, env: Mapping[str, str], cwd: str | None, limit: int
) -> asyncio.subprocess.Process:
    """Start the child in a process group of its own; `limit` is the longest line of its stdout, in bytes.

    Call it on the main thread: the death signal is tied to the thread that spawned the child. Raises OSError.
    """
    return await asyncio.create_subprocess_exec(
        *line,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=dict(env),
        cwd=cwd,
        limit=limit,
        start_new_session=True,
    )


async def stop(process: asyncio.subprocess.Process) -> None:
    """Close stdin and wait; then SIGTERM, then SIGKILL the whole group."""
    if process.stdin is not None:
        process.stdin.close()
    if await _exits(process):
        return
    signal_group(process, signal.SIGTERM)
    if await _exits(process):
        return
    signal_group(process, signal.SIGKILL)
    await _exits(process)


def signal_group(process: asyncio.subprocess.Process, number: signal.Signals) -> None:
    """Signal the child and what it started, unless it has ended."""
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, number)


async def keep_stderr(process: asyncio.subprocess.Process, kept: bytearray) -> None:
    """Keep the end of what the child writes to stderr in `kept`, until it closes it."""
    if process.stderr is None:
        return
    while chunk := await process.stderr.read(4096):
        kept += chunk
        del kept[:-STDERR_KEPT_BYTES]


def last_line(stderr: bytes | bytearray) -> str:
    """The last line of `stderr`, short and printable; "" if there is none."""
    text = stderr.decode("utf-8", "replace").strip()
    last = text.splitlines()[-1].strip() if text else ""
    return "".join(c for c in last if c.isprintable())[-300:]


def _program(command: str, path: str, cwd: str | None) -> str:
    if os.path.dirname(command) and cwd is not None:
        command = os.path.join(cwd, command)
    found = shutil.which(command, path=path)
    if found is None:
        raise FileNotFoundError(f"the command “{command}” was not found")
    return os.path.abspath(found)


async def _has_death_signal() -> bool:
    """Whether util-linux's setpriv is here and knows --pdeathsig (busybox's does not)."""
    global _death_signal_known
    if _death_signal_known is None:
        try:
            probe = await asyncio.create_subprocess_exec(
                *_DEATH_SIGNAL_PREFIX,
                "true",
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.DEVNULL,
            )
            _death_signal_known = await probe.wait() == 0
        except OSError:
            _death_signal_known = False
    return _death_signal_known


async def _exits(process: asyncio.subprocess.Process) -> bool:
    # Polled: Process.wait() also waits for the pipes, which a grandchild may hold open.
    deadline = asyncio.get_running_loop().time() + EXIT_GRACE_SECONDS
    while process.returncode is None and asyncio.get_running_loop().time() < deadline:
        await asyncio.sleep(0.01)
    return process.returncode is not None
