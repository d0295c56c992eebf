"""A server as a child process: newline-delimited JSON-RPC over its stdin and stdout.

Own transport rather than the SDK's: one message is bounded in size, stderr is kept (bounded) for error texts,
the environment is exactly the binding's, and the child dies with its owner even on SIGKILL.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import cast

import anyio
from anyio.abc import ObjectReceiveStream, ObjectSendStream
from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter

from .values import StdioBinding

EXIT_GRACE_SECONDS = 2.0
"""How long a child may take to end after its stdin closed, and again after SIGTERM (spec, lifecycle)."""

STDERR_KEPT_BYTES = 4096

_DEATH_SIGNAL_PREFIX = ("setpriv", "--pdeathsig", "KILL", "--")


@dataclass
class StdioLink:
    """The two message streams of a running child, and what is known of how it fares."""

    process: asyncio.subprocess.Process
    read_stream: ObjectReceiveStream[SessionMessage | Exception]
    write_stream: ObjectSendStream[SessionMessage]
    too_large: bool = False
    noise: int = 0
    """Lines on stdout that were no JSON-RPC message."""
    _stderr: bytearray = field(default_factory=bytearray)

    def last_words(self) -> str:
        """The end of what the child wrote to stderr, as one short line; "" if nothing."""
        text = self._stderr.decode("utf-8", "replace").strip()
        last = text.splitlines()[-1].strip() if text else ""
        return "".join(c for c in last if c.isprintable())[-300:]


@asynccontextmanager
async def open_stdio(binding: StdioBinding, *, max_bytes: int) -> AsyncIterator[StdioLink]:
    """Start the child, yield its streams, and end it: close stdin, then SIGTERM, then SIGKILL its group.

    A message over `max_bytes` ends the connection with `too_large` set. Call it on the main thread's loop:
    the death signal is tied to the thread that spawned the child.

    Raises OSError if the child cannot be started.
    """
    process = await _spawn(binding, limit=max_bytes)
    incoming, read_stream = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    write_stream, outgoing = anyio.create_memory_object_stream[SessionMessage](0)
    link = StdioLink(process=process, read_stream=read_stream, write_stream=write_stream)
    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_read_messages, link, incoming)
            tasks.start_soon(_write_messages, process, outgoing, incoming.close)
            tasks.start_soon(_keep_stderr, link)
            try:
                yield link
            finally:
                with anyio.CancelScope(shield=True):
                    read_stream.close()
                    write_stream.close()
                    await _stop(process)
                tasks.cancel_scope.cancel()
    finally:
        # Also reached when a second cancellation cut the orderly stop short.
        _signal_group(process, signal.SIGKILL)


async def _spawn(binding: StdioBinding, *, limit: int) -> asyncio.subprocess.Process:
    env = dict(binding.env)
    env.setdefault("PATH", os.environ.get("PATH", os.defpath))
    prefix = _DEATH_SIGNAL_PREFIX if await _has_death_signal() else ()
    return await asyncio.create_subprocess_exec(
        *prefix,
        _program(binding, env["PATH"]),
        *binding.args,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=env,
        cwd=binding.cwd,
        limit=limit,
        start_new_session=True,
    )


def _program(binding: StdioBinding, path: str) -> str:
    """The program's absolute path: a bare name on `path`, another one relative to the binding's directory."""
    command = binding.command
    if os.path.dirname(command) and binding.cwd is not None:
        command = os.path.join(binding.cwd, command)
    found = shutil.which(command, path=path)
    if found is None:
        raise FileNotFoundError(f"the command “{binding.command}” was not found")
    return os.path.abspath(found)


_death_signal_known: bool | None = None


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


async def _read_messages(link: StdioLink, incoming: ObjectSendStream[SessionMessage | Exception]) -> None:
    """Hand over one message per line until the child closes its stdout; skip lines that are no message."""
    stdout = cast("asyncio.StreamReader", link.process.stdout)
    async with incoming:
        while True:
            try:
                line = await stdout.readuntil(b"\n")
            except asyncio.IncompleteReadError:
                break  # the child closed its stdout
            except asyncio.LimitOverrunError:
                link.too_large = True
                break
            try:
                message = jsonrpc_message_adapter.validate_json(line, by_name=False)
            except ValueError:
                link.noise += bool(line.strip())
                continue
            try:
                await incoming.send(SessionMessage(message))
            except (anyio.ClosedResourceError, anyio.BrokenResourceError):
                break  # the session is gone
    # A child that is still writing must be able to reach its end.
    with contextlib.suppress(OSError):
        while await stdout.read(65536):
            pass


async def _write_messages(
    process: asyncio.subprocess.Process,
    outgoing: ObjectReceiveStream[SessionMessage],
    close_incoming: Callable[[], None],
) -> None:
    stdin = cast("asyncio.StreamWriter", process.stdin)
    try:
        async for item in outgoing:
            text = item.message.model_dump_json(by_alias=True, exclude_unset=True)
            stdin.write(text.encode("utf-8", "surrogatepass") + b"\n")
            await stdin.drain()
    except OSError:
        # The child no longer reads: end the session, else a request would wait for ever.
        close_incoming()


async def _keep_stderr(link: StdioLink) -> None:
    stderr = cast("asyncio.StreamReader", link.process.stderr)
    while chunk := await stderr.read(4096):
        link._stderr += chunk
        del link._stderr[:-STDERR_KEPT_BYTES]


async def _stop(process: asyncio.subprocess.Process) -> None:
    """Close stdin and wait; then SIGTERM, then SIGKILL the whole group."""
    if process.stdin is not None:
        process.stdin.close()
    if await _exits(process):
        return
    _signal_group(process, signal.SIGTERM)
    if await _exits(process):
        return
    _signal_group(process, signal.SIGKILL)
    await _exits(process)


async def _exits(process: asyncio.subprocess.Process) -> bool:
    # Polled: Process.wait() also waits for the pipes, which a grandchild may hold open.
    with anyio.move_on_after(EXIT_GRACE_SECONDS):
        while process.returncode is None:
            await anyio.sleep(0.01)
    return process.returncode is not None


def _signal_group(process: asyncio.subprocess.Process, number: signal.Signals) -> None:
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, number)
