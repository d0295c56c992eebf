"""Sending over real connections: signed, retried, never redirected, and nobody waits for a slow one (m8tes-http 7)."""

from __future__ import annotations

import asyncio
import datetime as dt
import socket
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
import pytest_asyncio

from runs import db
from runs.access import Actor
from runs.models import Run, User, WebhookDelivery, WebhookEndpoint
from runs.webhooks import deliveries, endpoints, sender
from runs.webhooks.deliveries import Answer, Attempt
from runs.webhooks.sender import Sender, send
from tests.services.receiver import Receiver, is_signed, receiver

Hook = Callable[[Receiver], WebhookEndpoint]
MakeRun = Callable[..., Run]

pytestmark = pytest.mark.django_db(transaction=True)


@pytest_asyncio.fixture(autouse=True)
async def threads() -> AsyncIterator[None]:
    yield
    await asyncio.to_thread(db.close_threads)


@pytest.fixture(autouse=True)
def quickly(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.M3.allow_private_urls = True
    settings.M3.sweep_seconds = 0.2
    monkeypatch.setattr(deliveries, "FIRST_PAUSE", dt.timedelta(milliseconds=20))


@pytest.fixture
def hook(ada: User, acting: Callable[[User], Actor]) -> Hook:
    actor = acting(ada)
    return lambda there: endpoints.create(actor, there.url, ["run.started"])


@pytest_asyncio.fixture
async def sending() -> AsyncIterator[None]:
    task = asyncio.create_task(Sender().serve())
    yield
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def until(condition: Callable[[], Any], what: str) -> Any:
    async with asyncio.timeout(20):
        while not (found := await db.read(condition)):
            await asyncio.sleep(0.02)
    assert found, what
    return found


def ended(number: int = 1) -> list[WebhookDelivery]:
    rows = list(WebhookDelivery.objects.order_by("pk"))
    return rows if len(rows) == number and all(row.status != "pending" for row in rows) else []


async def test_what_arrives_is_signed_with_the_endpoints_secret(
    sending: None, hook: Hook, make_run: MakeRun
) -> None:
    with receiver(200) as there:
        made = await db.write(hook, there)
        await db.write(make_run)
        (row,) = await until(ended, "the delivery")
    (got,) = there.got
    assert is_signed(got, made.secret)
    assert not is_signed(got, "x" + made.secret[1:])
    assert (got.headers["Content-Type"], got.headers["Webhook-Id"]) == ("application/json", row.event_id)
    assert got.message["type"] == "run.started"
    assert got.body == row.body.encode()
    assert (row.status, row.response_status_code, row.response_body, row.attempts) == (
        "success",
        200,
        "ok",
        1,
    )


async def test_what_fails_is_sent_again_the_same(sending: None, hook: Hook, make_run: MakeRun) -> None:
    with receiver(500, 404, 202) as there:
        await db.write(hook, there)
        await db.write(make_run)
        (row,) = await until(ended, "the delivery")
    assert (row.status, row.attempts, row.response_status_code) == ("success", 3, 202)
    assert len({(got.body, got.headers["Webhook-Id"]) for got in there.got}) == 1


async def test_after_the_last_attempt_it_has_failed(sending: None, hook: Hook, make_run: MakeRun) -> None:
    with receiver((503, {}, b"out of order")) as there:
        await db.write(hook, there)
        await db.write(make_run)
        (row,) = await until(ended, "the delivery")
    assert (row.status, row.attempts, row.response_body) == ("failed", 3, "out of order")
    assert len(there.got) == 3


async def test_nothing_that_listens_is_a_failure_in_words(
    sending: None, hook: Hook, make_run: MakeRun
) -> None:
    with receiver() as gone:
        pass
    await db.write(hook, gone)
    await db.write(make_run)
    (row,) = await until(ended, "the delivery")
    assert (row.status, row.response_status_code) == ("failed", None)
    assert "ConnectError" in row.response_body


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_redirect_is_not_followed(status: int) -> None:
    with receiver() as elsewhere, receiver((status, {"Location": elsewhere.url}, b"")) as there:
        answer = await send(attempt(there.url))
    assert (answer.ok, answer.status) == (False, status)
    assert (len(there.got), elsewhere.got) == (1, [])


@pytest.mark.parametrize(
    ("host", "leads_to"),
    [("127.0.0.1", "loopback"), ("rebound.example", "loopback"), ("metadata.example", "metadata")],
)
async def test_an_address_is_checked_again_when_it_is_called(
    settings: Any, monkeypatch: pytest.MonkeyPatch, host: str, leads_to: str
) -> None:
    """A name may lead elsewhere by then than when it was registered."""
    settings.M3.allow_private_urls = False
    known = {"rebound.example": "127.0.0.1", "metadata.example": "169.254.169.254"}

    def getaddrinfo(name: str, port: int, *_: Any, **__: Any) -> list[Any]:
        return [(socket.AF_INET, 0, 0, "", (known[name], port))]

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    with receiver() as there:
        port = there.url.rsplit(":", 1)[1]
        answer = await send(attempt(f"https://{host}:{port}"))
    assert (answer.ok, answer.status, there.got) == (False, None, [])
    assert leads_to in answer.text


@pytest.mark.parametrize("host", ["☃.example", "999.1.1.1", "a..b"])
async def test_a_host_that_cannot_be_called_is_a_failure_in_words(host: str) -> None:
    """One that was registered when less was checked."""
    answer = await send(attempt(f"https://{host}/x"))
    assert (answer.ok, answer.status) == (False, None)
    assert host in answer.text


async def test_an_endpoint_that_does_not_answer_in_time_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sender, "ATTEMPT_SECONDS", 0.2)
    with receiver() as there:
        there.hold.clear()
        answer = await send(attempt(there.url))
    assert (answer.ok, answer.status) == (False, None)
    assert "No answer within 0.2 seconds" in answer.text


async def test_of_a_large_answer_the_beginning_is_read() -> None:
    with receiver((200, {}, b"x" * 3_000_000)) as there:
        answer = await send(attempt(there.url))
    assert answer.ok
    assert len(answer.text) <= 4 * deliveries.MAX_ANSWER


async def test_a_compressed_answer_counts_by_its_status_and_is_not_unpacked() -> None:
    with receiver(
        (200, {"Content-Encoding": "gzip"}, b"\x1f\x8b"), (500, {"Content-Encoding": "gzip"}, b"")
    ) as there:
        good, bad = [await send(attempt(there.url)) for _ in range(2)]
    assert (good.ok, bad.ok, bad.status) == (True, False, 500)


async def test_a_slow_endpoint_holds_up_nobody_else(sending: None, hook: Hook, make_run: MakeRun) -> None:
    with receiver() as slow, receiver() as quick:
        slow.hold.clear()
        await db.write(hook, slow)
        await db.write(hook, quick)
        for _ in range(3):
            await db.write(make_run)
        await until(lambda: len(quick.got) == 3, "the quick one")
        assert len(slow.got) == 1, "of a slow one, one at a time"
        slow.hold.set()
        await until(lambda: ended(6), "the slow one")


async def test_what_was_written_while_nobody_sent_is_sent_later(hook: Hook, make_run: MakeRun) -> None:
    with receiver() as there:
        await db.write(hook, there)
        await db.write(make_run)
        task = asyncio.create_task(Sender().serve())
        (row,) = await until(ended, "the delivery")
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    assert row.status == "success"


async def test_a_sender_that_stops_leaves_what_is_under_way_to_the_next(
    hook: Hook, make_run: MakeRun
) -> None:
    with receiver() as there:
        there.hold.clear()
        await db.write(hook, there)
        await db.write(make_run)
        task = asyncio.create_task(Sender().serve())
        await until(lambda: there.got, "the first attempt")
        task.cancel()
        await asyncio.wait([task], timeout=5)
        assert task.done()
    row = await db.read(WebhookDelivery.objects.get)
    assert (row.status, row.attempts) == ("pending", 1)


async def test_a_defect_of_one_delivery_does_not_end_the_others(
    sending: None, hook: Hook, make_run: MakeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = sender.send

    async def breaks_once(given: Attempt) -> Answer:
        monkeypatch.setattr(sender, "send", real)
        raise RuntimeError

    monkeypatch.setattr(sender, "send", breaks_once)
    with receiver() as there:
        await db.write(hook, there)
        await db.write(make_run)
        await db.write(make_run)
        await until(lambda: len(there.got) == 1, "the second one")


def attempt(url: str) -> Attempt:
    return Attempt(delivery_id=1, endpoint_id=1, url=url, secret="s", event_id="evt_1", body="{}", number=1)
