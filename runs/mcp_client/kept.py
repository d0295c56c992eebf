"""A stdio server that lives under a session keeper (`runs.keeper`), so that its session may outlive this process."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import secrets
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import anyio
from anyio.abc import ObjectReceiveStream, ObjectSendStream
from mcp.shared.message import SessionMessage

import runs
from runs.keeper import child
from runs.keeper.place import MAX_SOCKET_PATH, socket_folder
from runs.keeper.process import MAX_FRAME_BYTES, Spec

from .live import Keep
from .stdio import StdioLink, encoded, environment
from .values import Json, StdioBinding

START_SECONDS = 20.0
"""How long a keeper may take to say that it is there."""

CONNECT_SECONDS = 10.0


class KeeperGoneError(Exception):
    """No keeper answers at the socket: it was ended, or the machine was started anew since."""


@dataclass
class KeptLink(StdioLink):
    """The streams of a child that a keeper owns.

    `detached` means that nothing goes out any more: whatever the session says on its way down would be heard by
    a server that is to notice nothing.
    """

    keeper: str = ""
    detached: bool = False
    heard_of_end: bool = False
    """Whether the keeper told that the child has ended; a connection that just ends means that the keeper is gone."""
    taken: bool = False
    _writer: asyncio.StreamWriter | None = None

    async def outlive_us(self) -> None:
        """From here on the session outlives this process: whoever attaches next finds it."""
        await self.frame(b"K\n")

    async def frame(self, frame: bytes) -> None:
        """Send one frame to the keeper (`runs.keeper.process`); one that is gone is noticed by whoever reads."""
        if self._writer is not None:
            with contextlib.suppress(OSError):
                self._writer.write(frame)
                await self._writer.drain()


@asynccontextmanager
async def open_kept(binding: StdioBinding, keep: Keep, *, max_bytes: int) -> AsyncIterator[KeptLink]:
    """Start a keeper with the child under it, and attach to it; the child is ended as `open_stdio` ends it, unless
    the link is detached by then.

    Raises OSError if either cannot be started.
    """
    path, pid = await _start(binding, keep, max_bytes)
    async with attach_kept(path, keep.token, max_bytes=max_bytes) as link:
        link.pid = pid
        yield link


@asynccontextmanager
async def attach_kept(
    path: str, token: int, *, max_bytes: int, on_first_message: bool = False
) -> AsyncIterator[KeptLink]:
    """Attach to a keeper. What it has kept arrives at once, or `on_first_message` only after our first message:
    a reply must not arrive before its request is known here.

    If somebody with a newer right has the session, the streams end and the link says `taken`.

    Raises KeeperGoneError if there is no keeper.
    """
    reader, writer = await _connect(path, max_bytes)
    incoming, read_stream = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    write_stream, outgoing = anyio.create_memory_object_stream[SessionMessage](0)
    link = KeptLink(pid=0, read_stream=read_stream, write_stream=write_stream, keeper=path, _writer=writer)
    hello = b"A" + json.dumps({"token": token}).encode() + b"\n"
    if not on_first_message:
        writer.write(hello)
        hello = b""
    try:
        async with anyio.create_task_group() as tasks:
            reading = anyio.Event()
            tasks.start_soon(_read_frames, reader, link, incoming, reading)
            tasks.start_soon(_write_frames, writer, link, outgoing, hello, incoming.close)
            try:
                yield link
            finally:
                with anyio.CancelScope(shield=True):
                    read_stream.close()
                    write_stream.close()
                    if not link.detached:
                        await _close(link, reading)
                tasks.cancel_scope.cancel()
    finally:
        writer.close()


async def _connect(path: str, max_bytes: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    try:
        async with asyncio.timeout(CONNECT_SECONDS):
            return await asyncio.open_unix_connection(path, limit=max_bytes + 1024)
    except ConnectionRefusedError as error:
        with contextlib.suppress(OSError):
            os.unlink(path)  # left behind by a keeper that was killed
        raise KeeperGoneError(str(error)) from error
    except (OSError, TimeoutError) as error:
        raise KeeperGoneError(str(error)) from error


async def end_kept(path: str, token: int, operation_id: str) -> None:
    """End a session that nobody drives any more: tell its server that the call is cancelled, then close it.

    A keeper that is gone, or that a newer right holds, is left alone.
    """
    with contextlib.suppress(KeeperGoneError):
        async with attach_kept(path, token, max_bytes=MAX_FRAME_BYTES) as link:
            await link.frame(b"S" + _cancellation(operation_id))


def _cancellation(operation_id: str) -> bytes:
    params: Json = {"requestId": operation_id, "reason": "The call is no longer wanted."}
    notice = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}
    return json.dumps(notice).encode() + b"\n"


async def _start(binding: StdioBinding, keep: Keep, max_bytes: int) -> tuple[str, int]:
    """Start a keeper; gives its socket and the pid of its child."""
    env = environment(binding)
    # Absolute, because the keeper runs in another folder than this process, and its child must not notice.
    cwd = os.path.abspath(binding.cwd or os.curdir)
    line = await child.command_line(binding.command, binding.args, path=env["PATH"], cwd=cwd)
    path = str(socket_folder(keep.folder) / f"{keep.label[:20]}-{secrets.token_hex(4)}.sock")
    if len(os.fsencode(path)) > MAX_SOCKET_PATH:
        raise OSError("the path of the folder for sockets is too long; set a shorter TMPDIR")
    spec = Spec(line=line, env=env, cwd=cwd, limit=max_bytes, orphan_seconds=keep.orphan_seconds)
    _reap()
    # Popen and not asyncio's subprocess, whose transport kills its process when the loop ends.
    keeper = subprocess.Popen(
        [sys.executable, "-ESm", "runs.keeper", path],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=Path(runs.__file__).parents[1],
        env={"PATH": env["PATH"]},
        start_new_session=True,
    )
    _started.add(keeper)
    try:
        async with asyncio.timeout(START_SECONDS):
            said = await _told(keeper, json.dumps(spec.__dict__).encode())
    except BaseException:
        keeper.kill()
        raise
    if "child" not in said:
        raise OSError(f"it could not be started ({said.get('error', 'its keeper ended')})")
    return path, int(said["child"])


_started: set[subprocess.Popen[bytes]] = set()
"""Keepers of this process that may have to be reaped."""


def _reap() -> None:
    for keeper in [keeper for keeper in _started if keeper.poll() is not None]:
        _started.discard(keeper)


async def _told(keeper: subprocess.Popen[bytes], spec: bytes) -> dict[str, Json]:
    """Tell a new keeper what to do; gives its answer, {} if it ended without one."""
    if keeper.stdin is None or keeper.stdout is None:
        return {}
    answer = asyncio.StreamReader()
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(answer), keeper.stdout
    )
    try:
        with contextlib.suppress(OSError):
            await asyncio.to_thread(keeper.stdin.write, spec)
            keeper.stdin.close()
        line = await answer.readline()
    finally:
        transport.close()
    return dict(json.loads(line)) if line else {}


async def _read_frames(
    reader: asyncio.StreamReader,
    link: KeptLink,
    incoming: ObjectSendStream[SessionMessage | Exception],
    reading: anyio.Event,
) -> None:
    """Hand over the server's messages until the keeper says that there are no more, or is gone."""
    try:
        async with incoming:
            while True:
                frame = await reader.readuntil(b"\n")
                kind, line = frame[:1], frame[1:]
                if kind == b"E":
                    said = json.loads(line)
                    link.heard_of_end, link.too_large = True, said["too_large"]
                    link.stderr[:] = said["last_words"].encode()
                    break
                if kind == b"R":
                    link.taken = link.detached = True
                    break
                message = link.understand(line)
                if message is not None:
                    await incoming.send(message)
    except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
        pass
    except (anyio.ClosedResourceError, anyio.BrokenResourceError):
        pass  # the session is gone
    with contextlib.suppress(OSError):
        while await reader.read(65536):
            pass
    reading.set()


async def _write_frames(
    writer: asyncio.StreamWriter,
    link: KeptLink,
    outgoing: ObjectReceiveStream[SessionMessage],
    hello: bytes,
    close_incoming: Callable[[], None],
) -> None:
    try:
        async for item in outgoing:
            if link.detached:
                continue
            if hello:
                writer.write(hello)
                hello = b""
            writer.write(b"S" + encoded(item))
            await writer.drain()
    except OSError:
        close_incoming()


async def _close(link: KeptLink, reading: anyio.Event) -> None:
    """Have the keeper end the child, and wait for both, bounded by what ending a child may take."""
    await link.frame(b"C\n")
    with anyio.move_on_after(3 * child.EXIT_GRACE_SECONDS + 1):
        await reading.wait()
    _reap()
