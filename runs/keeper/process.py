"""The keeper's life: one child, one socket, at most one client.

Frames are lines whose first byte says what they are. From a client: `A` attach (JSON), `S` a line for the server,
`K` outlive me, `C` end the session. To it: `L` a line of the server, `E` the server has ended (JSON), `R` another
client has taken over, or holds a newer right (JSON). The first frame is `A`, whose `token` is the fence: it never
goes down, and whoever carries the same or a higher one takes over (A24).
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from runs.keeper import child
from runs.keeper.backlog import Backlog

FIRST_CLIENT_SECONDS = 30.0
"""How long a keeper waits for whoever started it, and any client may take to say who it is."""

MAX_FRAME_BYTES = 64_000_000
"""Longest line that a client may send."""


@dataclass(frozen=True, kw_only=True)
class Spec:
    """What a keeper is told on its stdin. `limit` is the longest line of the server in bytes, `orphan_seconds`
    how long a session that is to outlive its client waits for the next one."""

    line: Sequence[str]
    env: Mapping[str, str]
    cwd: str | None
    limit: int
    orphan_seconds: float

    def kept_bytes(self) -> int:
        """How much may be kept while nobody is there, before the server is made to wait."""
        return 2 * self.limit


class Keeper:
    """Owns the child and says everything to whoever is attached."""

    def __init__(self, spec: Spec, process: asyncio.subprocess.Process) -> None:
        self.spec, self.process = spec, process
        self.over = asyncio.Event()
        self._backlog = Backlog()
        self._client: asyncio.StreamWriter | None = None
        self._token = -1
        self._outlives = False
        self._ending: bytes | None = None
        self._stderr = bytearray()
        self._room = asyncio.Event()
        self._patience: asyncio.TimerHandle | None = None

    async def keep(self) -> None:
        """Serve until the session is over, then end the child and say so."""
        self._wait_for_client(FIRST_CLIENT_SECONDS)
        words = asyncio.create_task(child.keep_stderr(self.process, self._stderr))
        pump = asyncio.create_task(self._listen_to_child(words))
        await self.over.wait()
        await child.stop(self.process)
        await asyncio.wait({pump}, timeout=child.EXIT_GRACE_SECONDS)
        for task in (pump, words):
            task.cancel()
        child.signal_group(self.process, signal.SIGKILL)
        if self._client is not None:
            self._client.close()

    # --- the child ----------------------------------------------------------------------------------------

    async def _listen_to_child(self, words: asyncio.Task[None]) -> None:
        stdout = self.process.stdout
        too_large = False
        while stdout is not None:
            await self._wait_for_room()
            try:
                line = await stdout.readuntil(b"\n")
            except asyncio.IncompleteReadError:
                break
            except asyncio.LimitOverrunError:
                too_large = True
                break
            self._backlog.heard(line)
            await self._tell(b"L", line)
        if not too_large:
            await asyncio.wait({words}, timeout=1.0)  # its last words may be a moment later than its end
        facts = {"too_large": too_large, "last_words": child.last_line(self._stderr)}
        self._ending = json.dumps(facts).encode() + b"\n"
        await self._tell(b"E", self._ending)
        # A child that is still writing must be able to reach its end.
        while stdout is not None and await stdout.read(65536):
            continue

    async def _wait_for_room(self) -> None:
        while self._client is None and self._backlog.bytes > self.spec.kept_bytes():
            self._room.clear()
            await self._room.wait()

    async def _tell(self, kind: bytes, line: bytes) -> None:
        """Pass one line on to the client, if there is one; one that has gone is no trouble of the child's."""
        client = self._client
        if client is None:
            return
        client.write(kind + line)
        with contextlib.suppress(OSError):
            await client.drain()

    # --- the clients --------------------------------------------------------------------------------------

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection, from its attach to its end."""
        try:
            async with asyncio.timeout(FIRST_CLIENT_SECONDS):
                token = _token(await reader.readuntil(b"\n"))
                if token is None or token < self._token:
                    writer.write(b'R{"reason": "stale"}\n')
                    await writer.drain()
                    while await reader.read(MAX_FRAME_BYTES):
                        pass  # a connection closed on what it still sends would tear the refusal away
                    return
            self._attach(writer, token)
            await writer.drain()
            while frame := await reader.readuntil(b"\n"):
                if self._client is not writer:
                    return
                await self._take(frame)
        except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # the client is gone, or is none
        finally:
            self._detach(writer)
            writer.close()

    def _attach(self, writer: asyncio.StreamWriter, token: int) -> None:
        if self._client is not None:
            self._client.write(b'R{"reason": "replaced"}\n')
            self._client.close()
        self._client, self._token = writer, token
        if self._patience is not None:
            self._patience.cancel()
        for line in self._backlog.lines():
            writer.write(b"L" + line)
        if self._ending is not None:
            writer.write(b"E" + self._ending)
        self._room.set()

    def _detach(self, writer: asyncio.StreamWriter) -> None:
        if self._client is not writer:
            return
        self._client = None
        if self._ending is not None or not self._outlives:
            self.over.set()
        else:
            self._wait_for_client(self.spec.orphan_seconds)

    def _wait_for_client(self, seconds: float) -> None:
        self._patience = asyncio.get_running_loop().call_later(seconds, self.over.set)

    async def _take(self, frame: bytes) -> None:
        kind, line = frame[:1], frame[1:]
        if kind == b"K":
            self._outlives = True
        elif kind == b"C":
            self.over.set()
        elif kind == b"S" and self._backlog.may_say(line) and self.process.stdin is not None:
            with contextlib.suppress(OSError):  # it no longer reads; its end is told by its stdout
                self.process.stdin.write(line)
                await self.process.stdin.drain()


def _token(frame: bytes) -> int | None:
    try:
        said: Any = json.loads(frame[1:])
        token = said["token"]
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
    return token if frame[:1] == b"A" and type(token) is int and token >= 0 else None


async def run(path: str, spec: Spec, ready: Any) -> None:
    """Start the child, listen on `path`, call `ready` with the child's pid, and keep until it is over.

    Raises OSError if the child cannot be started.
    """
    process = await child.start(spec.line, env=spec.env, cwd=spec.cwd, limit=spec.limit)
    keeper = Keeper(spec, process)
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, keeper.over.set)
    # A terminal that closes is not our end. Set after the child's start, which must not inherit it.
    for number in (signal.SIGHUP, signal.SIGINT):
        loop.add_signal_handler(number, lambda: None)
    os.umask(0o177)
    server = await asyncio.start_unix_server(keeper.serve, path, limit=MAX_FRAME_BYTES)
    try:
        ready(process.pid)
        await keeper.keep()
    finally:
        child.signal_group(process, signal.SIGKILL)
        server.close()
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
