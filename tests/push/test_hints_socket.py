"""The one socket of a page: who is let in, what arrives, and what is ignored (`runs.consumers`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from channels.layers import get_channel_layer
from channels.testing import WebsocketCommunicator
from django.conf import LazySettings
from django.contrib.auth.models import AnonymousUser
from django.test import Client
from django.urls import reverse

from m3web.asgi import application
from runs import consumers, control, db, push
from runs.models import Account, Role, Round, Run, User
from runs.round_rows import Decider
from runs.rounds import answer
from tests.people import person
from tests.push.sockets import QUIET, Open, closed_with, received

MakeRound = Callable[..., Round]
MakeRun = Callable[..., Run]

ALLOW = {"approval": {"action": "accept", "content": {"decision": "allow"}}}

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("one_loop")]


async def test_the_first_word_is_how_many_pauses_wait_in_the_account(
    open_socket: Open, make_round: MakeRound, alice: User, otto: User
) -> None:
    await db.write(lambda: [make_round(), make_round()])

    ours, theirs = await open_socket(alice), await open_socket(otto)

    assert await received(ours) == {"type": "hello", "pending_count": 2}
    assert await received(theirs) == {"type": "hello", "pending_count": 0}


async def test_a_new_pause_is_announced_to_its_account_and_to_no_other(
    open_socket: Open, make_round: MakeRound, alice: User, vera: User, otto: User
) -> None:
    sockets = [await open_socket(user) for user in (alice, vera, otto)]
    for socket in sockets:
        await received(socket)

    round_ = await db.write(make_round)

    for socket in sockets[:2]:
        hints = [await received(socket) for _ in range(3)]
        assert {
            "type": "pause", "pause_id": round_.pk, "run_id": round_.run_id,
            "status": "pending", "version": 1, "pending_count": 1,
        } in hints  # fmt: skip
    assert await sockets[2].receive_nothing(timeout=QUIET)


async def test_a_decided_pause_is_announced_with_its_next_version(
    open_socket: Open, make_round: MakeRound, alice: User, bob: User
) -> None:
    round_ = await db.write(make_round)
    socket = await open_socket(alice)
    await received(socket)

    decider = Decider(user=bob, via="page")
    await db.write(answer, round_.pk, ALLOW, decider=decider, idempotency_key="k")

    (pause,) = [hint for hint in [await received(socket), await received(socket)] if hint["type"] == "pause"]
    assert (pause["pause_id"], pause["status"], pause["version"]) == (round_.pk, "response_validated", 2)
    assert pause["pending_count"] == 0


async def test_a_socket_of_one_run_hears_of_it_and_of_the_account(
    open_socket: Open, make_run: MakeRun, alice: User
) -> None:
    run = await db.write(make_run)
    socket = await open_socket(alice, f"?run={run.pk}")
    await received(socket)

    await db.write(control.cancel, run.pk, decider=Decider(user=alice, via="page"))

    hints = [await received(socket), await received(socket)]  # by way of the run and of the account's runs
    assert hints == [{"type": "run", "run_id": run.pk, "status": "finished", "seq": 2}] * 2


async def test_nobody_hears_of_a_change_that_was_rolled_back(
    open_socket: Open, make_round: MakeRound, alice: User
) -> None:
    socket = await open_socket(alice)
    await received(socket)

    def undone() -> None:
        make_round()
        raise RuntimeError

    with pytest.raises(RuntimeError):
        await db.write(undone)
    assert await socket.receive_nothing(timeout=QUIET)


async def test_a_visitor_without_a_login_is_told_so(open_socket: Open) -> None:
    assert await closed_with(await open_socket(AnonymousUser())) == 4401


@pytest.mark.parametrize("wanted", ["theirs", "x", "9" * 40, "%00", "-1"])
async def test_a_run_that_is_not_of_the_account_is_refused(
    open_socket: Open, make_run: MakeRun, otto: User, wanted: str
) -> None:
    run = await db.write(make_run)
    number = run.pk if wanted == "theirs" else wanted

    assert await closed_with(await open_socket(otto, f"?run={number}")) == 4404


async def test_somebody_without_an_account_is_refused(open_socket: Open) -> None:
    newcomer = await db.write(User.objects.create_user, "newcomer")

    assert await closed_with(await open_socket(newcomer)) == 4404


async def test_a_ping_is_answered_and_everything_else_a_page_says_is_ignored(
    open_socket: Open, alice: User
) -> None:
    socket = await open_socket(alice)
    await received(socket)

    for frame in ("", "{", "[]", "null", '"ping"', '{"type": "decide"}', '{"type": ["ping"]}', "[" * 100_000):
        await socket.send_input({"type": "websocket.receive", "text": frame})
    await socket.send_input({"type": "websocket.receive", "bytes": b"\x00\xff"})
    await socket.send_to(text_data='{"type": "ping"}')

    assert await received(socket) == {"type": "pong"}
    assert await socket.receive_nothing(timeout=QUIET)


async def test_a_page_that_left_is_in_no_group_any_more(
    open_socket: Open, make_run: MakeRun, alice: User
) -> None:
    run = await db.write(make_run)
    socket = await open_socket(alice, f"?run={run.pk}")
    await received(socket)
    layer: Any = get_channel_layer()
    account = run.account_id
    joined = {name.rpartition("__group__")[2] for name in layer.groups}  # Redis knows them by a longer name
    assert joined == {push.inbox_group(account), push.runs_group(account), push.run_group(run.pk)}

    await socket.disconnect()

    assert layer.groups == {}


async def test_a_page_that_comes_back_learns_what_it_missed(
    open_socket: Open, make_round: MakeRound, alice: User
) -> None:
    first = await open_socket(alice)
    await received(first)
    await first.disconnect()
    await db.write(make_round)

    assert await received(await open_socket(alice)) == {"type": "hello", "pending_count": 1}


async def test_a_pause_that_opens_while_a_page_connects_is_counted_or_announced(
    open_socket: Open, make_round: MakeRound, alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The worst instant: after the account is known, before the groups are joined."""
    find = consumers._subscription

    def find_then_open(*args: Any) -> Any:
        found = find(*args)
        make_round()
        return found

    monkeypatch.setattr(consumers, "_subscription", find_then_open)

    assert (await received(await open_socket(alice)))["pending_count"] == 1


# --- the whole stack, as a browser meets it -------------------------------------------------------------------


def signed_in(settings: LazySettings) -> tuple[User, str]:
    alice = person("alice", Account.objects.create(name="Acme", slug="acme"), Role.OPERATOR)
    client = Client()
    client.force_login(alice)
    return alice, client.cookies[settings.SESSION_COOKIE_NAME].value


def through_the_stack(headers: dict[str, str]) -> WebsocketCommunicator:
    encoded = [(name.encode(), value.encode()) for name, value in headers.items()]
    return WebsocketCommunicator(application, "/ws/hints/", headers=encoded)


async def test_a_browser_with_a_session_is_let_in_from_our_own_pages(settings: LazySettings) -> None:
    _, session = await db.write(signed_in, settings)
    cookie = f"{settings.SESSION_COOKIE_NAME}={session}"
    socket = through_the_stack({"origin": "http://localhost:8000", "cookie": cookie})

    assert (await socket.connect(timeout=5))[0]
    assert await received(socket) == {"type": "hello", "pending_count": 0}
    await socket.disconnect()


async def test_a_browser_that_logs_out_on_one_page_is_signed_out_on_the_others(
    settings: LazySettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(consumers, "RIGHT_SECONDS_AT_A_PING", 0)
    _, session = await db.write(signed_in, settings)
    cookie = f"{settings.SESSION_COOKIE_NAME}={session}"
    socket = through_the_stack({"origin": "http://localhost:8000", "cookie": cookie})
    assert (await socket.connect(timeout=5))[0]
    await received(socket)
    await socket.send_to(text_data='{"type": "ping"}')
    assert await received(socket) == {"type": "pong"}

    def log_out() -> None:
        client = Client()
        client.cookies[settings.SESSION_COOKIE_NAME] = session
        assert client.post(reverse("logout")).status_code == 302

    await db.write(log_out)
    await socket.send_to(text_data='{"type": "ping"}')

    assert await closed_with(socket) == 4401


async def test_a_browser_without_a_session_is_signed_out() -> None:
    socket = through_the_stack({"origin": "http://localhost"})

    assert (await socket.connect(timeout=5))[0]
    assert await closed_with(socket) == 4401


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "", None])
async def test_no_other_site_opens_a_socket_with_somebodys_cookie(
    settings: LazySettings, origin: str | None
) -> None:
    _, session = await db.write(signed_in, settings)
    headers = {"cookie": f"{settings.SESSION_COOKIE_NAME}={session}"}
    socket = through_the_stack(headers if origin is None else {**headers, "origin": origin})

    accepted, _ = await socket.connect(timeout=5)

    assert not accepted
    await socket.disconnect()
