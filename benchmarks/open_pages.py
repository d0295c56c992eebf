"""Inbox pages without a browser: each keeps a socket for hints and a connection for the one GET that a hint leads to.

Plain sockets, because a client library would cost more than what is measured. Times are milliseconds of one clock.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import random
import time
from collections.abc import Callable
from typing import Any, Self

COLLECTS = 0.03
"""Seconds in which an inbox collects hints of one pause (static/m3web/inbox.js)."""

SPREAD = 0.5
"""Seconds over which all inboxes fetch their counts anew when a pause is over; the row has gone by then."""

_TEXT, _PING, _PONG = 1, 9, 10
"""Kinds of frames (RFC 6455, section 11.8)."""


def now() -> float:
    return time.perf_counter() * 1000


class Socket:
    """One WebSocket; `heard` is called with each text and the time."""

    def __init__(self, port: int, path: str, cookie: str, heard: Callable[[str, float], None]) -> None:
        self.port, self.path, self.cookie, self.heard = port, path, cookie, heard
        self.greeted = asyncio.Event()
        """Set with the first text, after which nothing is missed."""

    async def open(self) -> Self:
        self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self.port)
        key = base64.b64encode(os.urandom(16)).decode()
        origin = f"http://127.0.0.1:{self.port}"
        self._writer.write(
            (
                f"GET {self.path} HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\nOrigin: {origin}\r\n"
                f"Cookie: {self.cookie}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n"
            ).encode()
        )
        head = await self._reader.readuntil(b"\r\n\r\n")
        if b" 101 " not in head:
            raise RuntimeError(f"no socket: {head!r}")
        self._reading = asyncio.ensure_future(self._read())
        await self.greeted.wait()
        return self

    def say(self, text: str) -> None:
        self._write(_TEXT, text.encode())

    def close(self) -> None:
        self._reading.cancel()
        self._writer.close()

    async def _read(self) -> None:
        while True:
            first, length = await self._reader.readexactly(2)
            if length > 125:
                length = int.from_bytes(await self._reader.readexactly(2 if length == 126 else 8), "big")
            payload = await self._reader.readexactly(length)
            if first & 0x0F == _TEXT:
                self.heard(payload.decode(), now())
                self.greeted.set()
            elif first & 0x0F == _PING:
                self._write(_PONG, payload)

    def _write(self, kind: int, payload: bytes) -> None:
        """A client masks what it sends; with zeros, which changes nothing."""
        size = len(payload)
        length = bytes([0x80 | size]) if size < 126 else bytes([0x80 | 126]) + size.to_bytes(2, "big")
        self._writer.write(bytes([0x80 | kind]) + length + b"\0\0\0\0" + payload)


class Page:
    """An open inbox. After `watch` it notes when it was told that the pause is over, and when it had the counts."""

    def __init__(self, port: int, cookie: str) -> None:
        self.port, self.cookie = port, cookie
        self.socket = Socket(port, "/ws/hints/", cookie, self._heard)
        self._due: asyncio.TimerHandle | None = None
        self._fetching: set[asyncio.Task[None]] = set()
        self._line = asyncio.Lock()

    async def open(self) -> Self:
        await self.socket.open()
        self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self.port)
        return self

    def watch(self, pause: str) -> None:
        self.pause, self.hinted, self.gets = pause, 0.0, 0
        self.counted: asyncio.Future[float] = asyncio.get_running_loop().create_future()

    def close(self) -> None:
        self.socket.close()
        self._writer.close()

    def _heard(self, text: str, at: float) -> None:
        hint: dict[str, Any] = json.loads(text)
        if hint["type"] != "pause" or hint["pause_id"] != self.pause:
            return
        over = hint["status"] != "pending"
        if over and not self.hinted:
            self.hinted = at
        if self._due is not None:
            self._due.cancel()
        self._due = asyncio.get_running_loop().call_later(
            COLLECTS + (random.random() * SPREAD if over else 0.0), self._look
        )

    def _look(self) -> None:
        task = asyncio.ensure_future(self._fetch(self.pause))
        self._fetching.add(task)
        task.add_done_callback(self._fetching.discard)

    async def _fetch(self, pause: str) -> None:
        async with self._line:
            self._writer.write(
                (
                    f"GET /rounds/{pause}/row HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\n"
                    f"HX-Request: true\r\nCookie: {self.cookie}\r\n\r\n"
                ).encode()
            )
            head = await self._reader.readuntil(b"\r\n\r\n")
            if not head.startswith(b"HTTP/1.1 200"):
                raise RuntimeError(f"the row was refused: {head!r}")
            _, told, length = head.lower().partition(b"content-length:")
            if told:
                body = await self._reader.readexactly(int(length.split()[0]))
            else:
                body = await self._reader.readuntil(b"0\r\n\r\n")
        if pause == self.pause:
            self.gets += 1
            if self.hinted and b"data-row" not in body and not self.counted.done():
                self.counted.set_result(now())
