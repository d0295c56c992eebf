"""What other processes say through PostgreSQL reaches the pages of this one: all of it, in its order."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping

import pytest
from channels.layers import InMemoryChannelLayer

from runs import notices, push

MANY = 3 * push.WAIT_AT_MOST


async def test_many_hints_at_once_all_reach_a_page_and_one_that_cannot_be_read_stops_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    layer = InMemoryChannelLayer()
    page = await layer.new_channel()
    await layer.group_add(push.inbox_group(1), page)

    async def listen(handlers: Mapping[str, Callable[[str], None]], _missed: Callable[[], None]) -> None:
        for number in range(MANY):
            hint = {"type": "run", "run_id": number, "status": "running", "seq": 1}
            notices._handle(handlers[notices.HINTS], json.dumps([[push.inbox_group(1)], hint]))
            notices._handle(handlers[notices.HINTS], "no hint")
        await asyncio.Event().wait()

    monkeypatch.setattr(push, "get_channel_layer", lambda: layer)
    monkeypatch.setattr(notices, "listen", listen)
    relaying = asyncio.create_task(push.relay())
    try:
        async with asyncio.timeout(30):
            heard = [(await layer.receive(page))["hint"]["run_id"] for _ in range(MANY)]
    finally:
        relaying.cancel()
    assert heard == list(range(MANY))
