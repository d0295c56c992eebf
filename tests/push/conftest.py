"""Sockets of pages on the loop of a test."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest_asyncio
from channels.layers import channel_layers
from channels.testing import WebsocketCommunicator
from django.test import Client

from runs import consumers, db, push
from tests.push.sockets import Open


@pytest_asyncio.fixture
async def one_loop() -> AsyncIterator[None]:
    """Hints go to this test's loop, and no connection of a writer thread outlives it."""
    push.connect(asyncio.get_running_loop())
    channel_layers.backends.clear()
    yield
    await asyncio.to_thread(db.close_threads)


@pytest_asyncio.fixture
async def open_socket(one_loop: None) -> AsyncIterator[Open]:
    """Connect as `user`, past the routes but not past the sign-in, which the test of the whole stack shows."""
    opened: list[WebsocketCommunicator] = []

    async def connect(user: Any, query: str = "") -> WebsocketCommunicator:
        socket = WebsocketCommunicator(consumers.HintConsumer.as_asgi(), f"/ws/hints/{query}")
        socket.scope["user"], socket.scope["session"] = user, await db.write(_session_of, user)
        opened.append(socket)
        accepted, _ = await socket.connect(timeout=5)
        assert accepted
        return socket

    yield connect
    for socket in opened:
        await socket.disconnect()


def _session_of(user: Any) -> Any:
    """What the cookie of a browser in which this person signed in stands for."""
    client = Client()
    if user.is_authenticated:
        client.force_login(user)
    return client.session
