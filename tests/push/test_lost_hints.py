"""A process that did not hear hints for a while has its pages look again, once it hears."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from runs import push

PATIENCE = 20.0
PAGES = ("page one", "page two")


class Air:
    """A channel layer whose messages can be lost, or refused."""

    def __init__(self) -> None:
        self.groups: dict[str, set[str]] = {"inbox.1": set(PAGES), "runs.1": {PAGES[0]}}
        self.lost: Exception | bool = False
        self.queues: dict[str, asyncio.Queue[Any]] = {}
        self.sent: list[str] = []

    async def new_channel(self) -> str:
        self.queues["itself"] = asyncio.Queue()
        return "itself"

    async def send(self, channel: str, message: dict[str, Any]) -> None:
        self.sent.append(channel)
        if isinstance(self.lost, Exception):
            raise self.lost
        if not self.lost:
            self.queues.setdefault(channel, asyncio.Queue()).put_nowait(message)

    async def receive(self, channel: str) -> Any:
        return await self.queues[channel].get()

    async def told(self, page: str) -> Any:
        async with asyncio.timeout(PATIENCE):
            return await self.queues.setdefault(page, asyncio.Queue()).get()


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


async def until(caplog: pytest.LogCaptureFixture, words: str) -> None:
    async with asyncio.timeout(PATIENCE):
        while words not in caplog.text:
            await asyncio.sleep(0.005)


@pytest.mark.parametrize("lost", [True, OSError("no route")])
async def test_every_page_looks_again_after_a_break_and_the_log_says_why(
    air: Air, lost: Exception | bool, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "runs.push")
    air.lost = lost
    await until(caplog, "hints do not get through (" + ("TimeoutError" if lost is True else "no route"))
    assert air.queues.get(PAGES[0]) is None

    air.lost = False

    assert [await air.told(page) for page in PAGES] == [{"type": "look.again"}] * 2
    await until(caplog, "hints get through again")
    assert caplog.text.count("do not get through") == 1


async def test_as_long_as_hints_are_heard_no_page_looks_again(air: Air) -> None:
    async with asyncio.timeout(PATIENCE):
        while air.sent.count("itself") < 5:
            await asyncio.sleep(0.005)

    assert set(air.sent) == {"itself"}


async def test_where_nobody_listens_nothing_is_said(air: Air) -> None:
    async with asyncio.timeout(PATIENCE):
        while not air.sent:
            await asyncio.sleep(0.005)
    air.groups.clear()
    await asyncio.sleep(0)
    said = len(air.sent)

    for _ in range(20):
        await asyncio.sleep(push.LISTENED_EVERY)

    assert len(air.sent) <= said + 1


async def test_a_hint_that_cannot_be_sent_is_dropped_in_time(
    air: Air, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def group_send(group: str, message: dict[str, Any]) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(air, "group_send", group_send, raising=False)
    hint = push.RunHint(type="run", run_id=1, status="finished", seq=1)

    async with asyncio.timeout(PATIENCE):
        await push._group_send(("inbox.1", "runs.1"), hint)
