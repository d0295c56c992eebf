"""What a test reads from a socket of a page that lives on its own loop; `conftest` opens them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from channels.testing import WebsocketCommunicator

Open = Callable[..., Awaitable[WebsocketCommunicator]]

QUIET = 0.1
"""Seconds in which nothing may arrive; a hint on this loop takes about one hundredth of it."""


async def received(socket: WebsocketCommunicator) -> Any:
    return await socket.receive_json_from(timeout=5)


async def closed_with(socket: WebsocketCommunicator) -> int:
    message = await socket.receive_output(timeout=5)
    assert message["type"] == "websocket.close"
    return int(message["code"])
