"""A server as a child process: newline-delimited JSON-RPC over its stdin and stdout.

Own transport rather than the SDK's: one message is bounded in size, stderr is kept (bounded) for error texts,
the environment is exactly the binding's, and the child dies with its owner even on SIGKILL.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import cast

import anyio
from anyio.abc import ObjectReceiveStream, ObjectSendStream
from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter

from runs.keeper import child

from .values import StdioBinding


@dataclass
class StdioLink:
    """The two message streams of a running child, and what is known of how it fares."""

    pid: int
    read_stream: ObjectReceiveStream[SessionMessage | Exception]
    write_stream: ObjectSendStream[SessionMessage]
    too_large: bool = False
    noise: int = 0
    """Lines on stdout that were no JSON-RPC message."""
    stderr: bytearray = field(default_factory=bytearray)

    def last_words(self) -> str:
        """The end of what the child wrote to stderr, as one short line; "" if nothing."""
        return child.last_line(self.stderr)

    def understand(self, line: bytes) -> SessionMessage | None:
        """The message on one line of the child's stdout; None, and counted, if it is none."""
        try:
            return SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))
        except ValueError:
            self.noise += bool(line.strip())
            return None


@asynccontextmanager
async def open_stdio(binding: StdioBinding, *, max_bytes: int) -> AsyncIterator[StdioLink]:
    """Start the child, yield its streams, and end it: close stdin, then SIGTERM, then SIGKILL its group.

    A message over `max_bytes` ends the connection with `too_large` set. Call it on the main thread's loop:
    the death signal is tied to the thread that spawned the child.

    Raises OSError if the child cannot be started.
    """
    env = environment(binding)
    line = await child.command_line(binding.command, binding.args, path=env["PATH"], cwd=binding.cwd)
    process = await child.start(line, env=env, cwd=binding.cwd, limit=max_bytes)
    incoming, read_stream = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    write_stream, outgoing = anyio.create_memory_object_stream[SessionMessage](0)
    link = StdioLink(pid=process.pid, read_stream=read_stream, write_stream=write_stream)
    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_read_messages, process, link, incoming)
            tasks.start_soon(_write_messages, process, outgoing, incoming.close)
            tasks.start_soon(child.keep_stderr, process, link.stderr)
            try:
                yield link
            finally:
                with anyio.CancelScope(shield=True):
                    read_stream.close()
                    write_stream.close()
                    await child.stop(process)
                tasks.cancel_scope.cancel()
    finally:
        # Also reached when a second cancellation cut the orderly stop short; nothing of the child may outlive its loop.
        child.signal_group(process, signal.SIGKILL)
        with anyio.move_on_after(child.EXIT_GRACE_SECONDS, shield=True):
            await process.wait()


def environment(binding: StdioBinding) -> dict[str, str]:
    """The child's whole environment: the binding's, and our `PATH` if it names none."""
    return {"PATH": os.environ.get("PATH", os.defpath), **binding.env}


def encoded(item: SessionMessage) -> bytes:
    """A message as one line."""
    text = item.message.model_dump_json(by_alias=True, exclude_unset=True)
    return text.encode("utf-8", "surrogatepass") + b"\n"


async def _read_messages(
    process: asyncio.subprocess.Process,
    link: StdioLink,
    incoming: ObjectSendStream[SessionMessage | Exception],
) -> None:
    """Hand over one message per line until the child closes its stdout; skip lines that are no message."""
    stdout = cast("asyncio.StreamReader", process.stdout)
    async with incoming:
        while True:
            try:
                line = await stdout.readuntil(b"\n")
            except asyncio.IncompleteReadError:
                break  # the child closed its stdout
            except asyncio.LimitOverrunError:
                link.too_large = True
                break
            message = link.understand(line)
            if message is None:
                continue
            try:
                await incoming.send(message)
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
            stdin.write(encoded(item))
            await stdin.drain()
    except OSError:
        # The child no longer reads: end the session, else a request would wait for ever.
        close_incoming()
