"""A process that did not hear hints for a while has its pages connect anew, once it can."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
import pytest_asyncio

from runs import push

PATIENCE = 20.0
PAGES = ("page one", "page two")


class Air:
    """A channel layer whose messages can be lost, or refused."""

    def __init__(self) -> None:
        self.groups: dict[str, set[str]] = {"inbox.1": set(PAGES)}
        self.channels: dict[str, asyncio.Queue[Any]] = {page: asyncio.Queue() for page in PAGES}
        self.pages = dict(self.channels)
        self.lost: Exception | bool = False
        self.said = self.flushed = 0

    async def new_channel(self) -> str:
        self.channels["itself"] = asyncio.Queue()
        return "itself"

    def serialize(self, message: dict[str, Any]) -> dict[str, Any]:
        return message

    async def send(self, channel: str, message: dict[str, Any]) -> None:
        self.said += 1
        if isinstance(self.lost, Exception):
            raise self.lost
        if not self.lost:
            self.channels[channel].put_nowait(message)

    async def receive(self, channel: str) -> Any:
        return await self.channels[channel].get()

    async def flush(self) -> None:
        self.channels, self.groups, self.flushed = {}, {}, self.flushed + 1


async def told(air: Air) -> list[Any]:
    async with asyncio.timeout(PATIENCE):
        return [await queue.get() for queue in air.pages.values()]


@pytest_asyncio.fixture
async def air(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Air]:
    air = Air()
    monkeypatch.setattr(push, "get_channel_layer", lambda: air)
    monkeypatch.setattr(push, "LISTENED_EVERY", 0.005)
    monkeypatch.setattr(push, "SENT_WITHIN", 0.05)
    watching = asyncio.create_task(push.watch())
    yield air
    watching.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await watching


async def until(look: Callable[[], Any]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not look():
            await asyncio.sleep(0.005)


async def test_every_page_connects_anew_once_a_server_that_was_away_is_back(
    air: Air, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "runs.push")
    air.lost = OSError("no route")
    await until(lambda: "hints do not get through (no route)" in caplog.text and air.said > 5)
    assert [page.empty() for page in air.pages.values()] == [True, True]

    air.lost = False

    assert await told(air) == [{"type": "start.anew"}] * 2
    await until(lambda: air.flushed == 1)
    assert caplog.text.count("do not get through") == 1


async def test_every_page_connects_anew_when_a_server_takes_what_nobody_hears(air: Air) -> None:
    air.lost = True

    assert await told(air) == [{"type": "start.anew"}] * 2
    await until(lambda: air.flushed == 1)


async def test_as_long_as_hints_are_heard_no_page_is_troubled(air: Air) -> None:
    await until(lambda: air.said > 5)

    assert [page.empty() for page in air.pages.values()] == [True, True]
    assert air.flushed == 0


async def test_where_nobody_listens_nothing_is_said(air: Air) -> None:
    await until(lambda: air.said)
    air.groups.clear()
    said = air.said

    for _ in range(20):
        await asyncio.sleep(push.LISTENED_EVERY)

    assert air.said <= said + 1


async def test_of_many_hints_that_wait_for_a_silent_server_one_more_is_dropped(
    air: Air, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent, silent = [], asyncio.Event()

    async def group_send(group: str, message: dict[str, Any]) -> None:
        await silent.wait()
        sent.append(message["hint"]["seq"])

    monkeypatch.setattr(air, "group_send", group_send, raising=False)
    monkeypatch.setattr(push, "WAIT_AT_MOST", 3)
    hints = [push.RunHint(type="run", run_id=1, status="finished", seq=seq) for seq in range(5)]

    sending = [asyncio.create_task(push._group_send(("inbox.1",), hint)) for hint in hints]
    await until(lambda: sending[4].done())
    silent.set()
    await asyncio.gather(*sending)

    assert sent == [0, 1, 2]
