"""A stream goes on only while its reader would be let in (`runs.api.stream`)."""

from __future__ import annotations

import asyncio
import datetime as dt
import json
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from typing import Any

import pytest
import pytest_asyncio
from channels.layers import channel_layers
from django.utils import timezone

from runs import closing, db, events, keys, push
from runs.access import Actor
from runs.api import stream
from runs.api.frames import KEEPALIVE
from runs.api.stream import stream_response
from runs.models import Account, ApiKey, Membership, Role, Run, User

MakeRun = Callable[..., Run]
Acting = Callable[[User], Actor]
Change = Callable[[Actor], Any]
Lines = AsyncIterator[bytes]

pytestmark = pytest.mark.django_db(transaction=True)


@pytest_asyncio.fixture(autouse=True)
async def one_loop() -> AsyncIterator[None]:
    """Hints go to this test's loop, and no connection of a writer thread outlives it."""
    push.connect(asyncio.get_running_loop())
    channel_layers.backends.clear()
    yield
    await asyncio.to_thread(db.close_threads)


async def joined(run: Run, actor: Actor) -> Lines:
    """A stream of which everything was read that there is."""
    response = await db.read(stream_response, actor, run, whole=True)
    lines: Lines = response.streaming_content
    for type_ in ("metadata", "replay_complete"):
        assert json.loads((await line(lines)).removeprefix(b"data: "))["type"] == type_
    return lines


async def line(lines: Lines) -> bytes:
    return await asyncio.wait_for(anext(lines), 10)


async def rest(lines: Lines) -> list[bytes]:
    async def read() -> list[bytes]:
        return [one async for one in lines if one != KEEPALIVE]

    return await asyncio.wait_for(read(), 10)


def say(run: Run) -> None:
    events.record(Run.objects.get(pk=run.pk), "agent.say", {"step": 1, "text": "A secret."})


def of_key(account: Account) -> Actor:
    return keys.actor_of(keys.issue(account, "program", role=Role.VIEWER).key)


def revoke(actor: Actor) -> None:
    keys.invalidate(ApiKey.objects.get(user=actor.user))


def expire(actor: Actor) -> None:
    ApiKey.objects.filter(user=actor.user).update(expires_at=timezone.now() - dt.timedelta(seconds=1))


def close(actor: Actor) -> None:
    closing.close(actor.account.pk, alone=True)


def remove(actor: Actor) -> None:
    Membership.objects.filter(user=actor.user).delete()


def deactivate(actor: Actor) -> None:
    User.objects.filter(pk=actor.user.pk).update(is_active=False)


def change_account(actor: Actor) -> None:
    Membership.objects.filter(user=actor.user).update(account=Account.objects.create(name="New", slug="new"))


@pytest.mark.parametrize(
    ("by_key", "change"),
    [
        (True, revoke),
        (True, expire),
        (True, close),
        (False, remove),
        (False, deactivate),
        (False, change_account),
        (False, close),
    ],
)
async def test_whoever_would_not_be_let_in_any_more_reads_nothing_that_happens_after_it_is_looked_up(
    make_run: MakeRun, account: Account, vera: User, acting: Acting, monkeypatch: pytest.MonkeyPatch,
    by_key: bool, change: Change,
) -> None:  # fmt: skip
    run = await db.write(make_run)
    actor = await (db.write(of_key, account) if by_key else db.read(acting, vera))
    async with aclosing(await joined(run, actor)) as lines:  # type: ignore[type-var]  # a generator
        monkeypatch.setattr(stream, "RIGHT_SECONDS", 0)
        await db.write(change, actor)
        await db.write(say, run)
        assert await rest(lines) == []


async def test_a_silent_stream_ends_instead_of_being_kept_alive(
    make_run: MakeRun, account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream, "KEEPALIVE_SECONDS", 0.03)
    run, actor = await db.write(make_run), await db.write(of_key, account)
    async with aclosing(await joined(run, actor)) as lines:  # type: ignore[type-var]  # a generator
        assert await line(lines) == KEEPALIVE
        await db.write(revoke, actor)
        with pytest.raises(StopAsyncIteration):
            await line(lines)


async def test_readers_who_may_still_read_are_looked_up_together_and_read_on(
    make_run: MakeRun, vera: User, acting: Acting, monkeypatch: pytest.MonkeyPatch
) -> None:
    lookups = count_lookups(monkeypatch)
    run, actor = await db.write(make_run), await db.read(acting, vera)
    readers = [await joined(run, actor) for _ in range(10)]
    monkeypatch.setattr(stream, "RIGHT_SECONDS", 0)
    waiting = [asyncio.ensure_future(text_of(lines)) for lines in readers]
    await db.write(say, run)

    assert await asyncio.gather(*waiting) == ["A secret."] * 10
    assert 1 <= len(lookups) < 20
    for lines in readers:
        await lines.aclose()  # type: ignore[attr-defined]  # a generator


async def test_a_reader_is_not_looked_up_for_every_event(
    make_run: MakeRun, account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    lookups = count_lookups(monkeypatch)
    run, actor = await db.write(make_run), await db.write(of_key, account)
    async with aclosing(await joined(run, actor)) as lines:  # type: ignore[type-var]  # a generator
        for _ in range(5):
            await db.write(say, run)
            assert await text_of(lines) == "A secret."
    assert not lookups


def test_a_right_is_looked_up_every_few_seconds() -> None:
    assert 1 <= stream.RIGHT_SECONDS <= stream.LOOK_SECONDS


def count_lookups(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Those who are looked up from now on."""
    real, seen = keys.still_acts, []

    def counted(*who: int) -> bool:
        seen.append(who)
        return real(*who)

    monkeypatch.setattr(keys, "still_acts", counted)
    return seen


async def text_of(lines: Lines) -> str:
    """The next text, read to its end."""
    text = ""
    while b"text-end" not in (found := await line(lines)):
        text += json.loads(found.removeprefix(b"data: ")).get("delta", "")
    return text
