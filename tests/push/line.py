"""A WebSocket as a page opens it, over a real connection: just enough of RFC 6455 to read what a server says."""

from __future__ import annotations

import base64
import json
import os
import socket
import time
from typing import Any, Self

_TEXT, _CLOSE, _PING, _PONG = 1, 8, 9, 10
"""Kinds of frames (RFC 6455, section 11.8)."""


class Line:
    """The hints that one page gets. Use as a context manager."""

    code: int | None = None
    """The code with which the server closed."""

    def __init__(self, port: int, cookie: str, *, host: str = "127.0.0.1", patience: float = 30.0) -> None:
        self.patience = patience
        self.connection = socket.create_connection((host, port), timeout=patience)
        key = base64.b64encode(os.urandom(16)).decode()
        self.connection.sendall(
            (
                "GET /ws/hints/ HTTP/1.1\r\n"
                f"Host: {host}:{port}\r\nOrigin: http://{host}:{port}\r\nCookie: {cookie}\r\n"
                "Upgrade: websocket\r\nConnection: Upgrade\r\n"
                f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n"
            ).encode()
        )
        self.stream = self.connection.makefile("rb")
        assert b" 101 " in self.stream.readline()
        while self.stream.readline() not in (b"\r\n", b""):
            pass

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stream.close()
        self.connection.close()

    def hang_up(self) -> None:
        """End the connection at once; whoever reads from it is told."""
        self.connection.shutdown(socket.SHUT_RDWR)

    def read(self) -> Any:
        """The next message; what the server asks meanwhile is answered, as browsers do.

        TimeoutError if none comes, ConnectionError once the server has closed.
        """
        while True:
            opcode, length = self.stream.read(1)[0] & 0x0F, self.stream.read(1)[0]
            if length > 125:
                length = int.from_bytes(self.stream.read(2 if length == 126 else 8), "big")
            payload = self.stream.read(length)
            if opcode == _TEXT:
                return json.loads(payload)
            if opcode == _CLOSE:
                self.code = int.from_bytes(payload[:2])
                raise ConnectionError(f"closed with {self.code}")
            if opcode == _PING:
                unmasked = bytes([0x80 | _PONG, 0x80 | length, 0, 0, 0, 0])
                self.connection.sendall(unmasked + payload)

    def until(self, **wanted: Any) -> Any:
        """The first message that has these values."""
        end = time.monotonic() + self.patience
        while time.monotonic() < end:
            message = self.read()
            if wanted.items() <= message.items():
                return message
        raise AssertionError(f"waited {self.patience} s for {wanted}")
