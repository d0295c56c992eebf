"""A page's socket goes on only while its person may look (`runs.consumers`)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from channels.layers import get_channel_layer
from django.contrib.sessions.models import Session
from django.contrib.staticfiles import finders
from django.db import OperationalError

from runs import closing, consumers, control, db, keys, push
from runs.models import Account, Membership, Round, Run, User
from runs.round_rows import Decider
from tests.push.sockets import QUIET, Open, closed_with, received

MakeRound = Callable[..., Round]
MakeRun = Callable[..., Run]

pytestmark = pytest.mark.django_db(transaction=True)


def log_out(user: User) -> None:
    Session.objects.all().delete()  # one by one it is what `logout` does with a session


def change_password(user: User) -> None:
    """A login that was made with the old one ends."""
    user.set_password("another horse battery staple")
    user.save()


def leave(user: User) -> None:
    Membership.objects.filter(user=user).delete()


def deactivate(user: User) -> None:
    User.objects.filter(pk=user.pk).update(is_active=False)


def close_account(user: User) -> None:
    closing.close(Membership.objects.get(user=user).account_id, alone=True)


ENDS = pytest.mark.parametrize("end", [log_out, change_password, leave, deactivate, close_account])


@pytest.fixture
def looked_up_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if the bound had passed before everything that happens."""
    monkeypatch.setattr(consumers, "RIGHT_SECONDS", 0)
    monkeypatch.setattr(consumers, "RIGHT_SECONDS_AT_A_PING", 0)


@ENDS
@pytest.mark.usefixtures("looked_up_each_time")
async def test_whoever_may_not_look_any_more_hears_no_hint_but_is_told_that_they_are_signed_out(
    open_socket: Open, make_round: MakeRound, alice: User, end: Callable[[User], None]
) -> None:
    round_ = await db.write(make_round)
    socket = await open_socket(alice)
    await received(socket)

    await db.write(end, alice)
    await db.write(control.cancel, round_.run_id, decider=Decider(user=None, via="worker"))

    assert await closed_with(socket) == 4401
    assert await socket.receive_nothing(timeout=QUIET)


@ENDS
@pytest.mark.usefixtures("looked_up_each_time")
async def test_an_idle_page_learns_of_it_by_its_ping(
    open_socket: Open, alice: User, end: Callable[[User], None]
) -> None:
    socket = await open_socket(alice)
    await received(socket)
    await socket.send_to(text_data='{"type": "ping"}')
    assert await received(socket) == {"type": "pong"}

    await db.write(end, alice)
    await socket.send_to(text_data='{"type": "ping"}')

    assert await closed_with(socket) == 4401


@pytest.mark.usefixtures("looked_up_each_time")
async def test_a_page_that_is_to_look_again_is_not_told_how_many_pauses_wait_where_its_person_left(
    open_socket: Open, account: Account, alice: User
) -> None:
    socket = await open_socket(alice)
    await received(socket)

    await db.write(leave, alice)
    await say_to(account, {"type": "look.again"})

    assert await closed_with(socket) == 4401


@pytest.mark.usefixtures("looked_up_each_time")
async def test_a_hint_that_nobody_can_say_is_permitted_has_the_page_connect_anew(
    open_socket: Open, make_run: MakeRun, alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    socket = await open_socket(alice)
    await received(socket)

    monkeypatch.setattr(keys, "still_acts", away)
    await socket.send_to(text_data='{"type": "ping"}')
    assert await received(socket) == {"type": "pong"}  # which gives nothing away
    await db.write(make_run)

    assert await closed_with(socket) == 4503


async def test_a_person_is_not_looked_up_for_every_hint_or_ping(
    open_socket: Open, account: Account, alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(consumers, "_may_look", lambda *_: False)  # a look would close the socket
    socket = await open_socket(alice)
    await received(socket)

    for number in range(20):
        await say_to(account, {"type": "hint", "hint": {"number": number}})
        assert await received(socket) == {"number": number}
        await socket.send_to(text_data='{"type": "ping"}')
        assert await received(socket) == {"type": "pong"}


async def test_a_person_is_looked_up_again_only_when_the_bound_has_passed_once_more(
    open_socket: Open, account: Account, alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, real, looks = [1000.0], consumers._may_look, []

    def counted(*about: Any) -> bool:
        looks.append(now[0])
        return real(*about)

    monkeypatch.setattr(consumers, "_may_look", counted)
    monkeypatch.setattr(consumers, "time", SimpleNamespace(monotonic=lambda: now[0]))
    socket = await open_socket(alice)
    await received(socket)

    for second in range(100):
        now[0] = 1001.0 + second
        await say_to(account, {"type": "hint", "hint": {"second": second}})
        assert await received(socket) == {"second": second}

    assert looks == [1030.0, 1060.0, 1090.0]


def test_the_bounds_are_those_that_pages_ping_by() -> None:
    """The page pings every 20 s: each time it is looked up, and never is a look older than 30 s believed."""
    assert consumers.RIGHT_SECONDS_AT_A_PING < 20 < consumers.RIGHT_SECONDS == 30
    script = finders.find("m3web/hints.js")
    assert "const PING_EVERY = 20000;" in Path(str(script)).read_text()


def away(*_: Any) -> bool:
    raise OperationalError("the database is away")


async def say_to(account: Account, message: dict[str, Any]) -> None:
    """To every page that hears of the account's pauses."""
    layer: Any = get_channel_layer()
    await layer.group_send(push.inbox_group(account.pk), message)
