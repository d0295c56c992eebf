"""What a reader of a stream does while nothing happens, and what it leaves behind (`runs.api.stream`)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from typing import Any

import pytest
import pytest_asyncio
from channels.layers import channel_layers, get_channel_layer

from runs import control, db, events, push
from runs.access import Actor
from runs.api import looking, stream
from runs.api.stream import stream_response
from runs.errors import NotFound
from runs.models import Round, Run, User
from runs.round_rows import Decider
from runs.rounds import answer
from tests.api.conftest import ALLOW

MakeRun = Callable[..., Run]
MakeRound = Callable[..., Round]
Acting = Callable[[User], Actor]
Lines = AsyncIterator[bytes]

pytestmark = pytest.mark.django_db(transaction=True)


@pytest_asyncio.fixture(autouse=True)
async def one_loop() -> AsyncIterator[None]:
    """Hints go to this test's loop, and no connection of a writer thread outlives it."""
    push.connect(asyncio.get_running_loop())
    channel_layers.backends.clear()
    yield
    await asyncio.to_thread(db.close_threads)


async def opened(run: Run, actor: Actor, **options: Any) -> Any:
    response = await db.read(stream_response, actor, run, **options)
    return response.streaming_content


async def next_line(lines: Lines) -> bytes:
    return await asyncio.wait_for(anext(lines), 10)


async def frame(lines: Lines) -> Any:
    return json.loads((await next_line(lines)).removeprefix(b"data: "))


async def at_work(make_run: MakeRun, lines_of: Callable[[Run], Any]) -> tuple[Run, Lines]:
    """A run of which everything was read that there is."""
    run = await db.write(make_run)
    lines = await lines_of(run)
    assert (await frame(lines))["type"] == "metadata"
    assert (await frame(lines))["type"] == "replay_complete"
    return run, lines


@pytest.fixture
def reading(alice: User, acting: Acting) -> Callable[[Run], Any]:
    actor = acting(alice)
    return lambda run: opened(run, actor, whole=True)


async def test_a_silent_stream_is_kept_alive_by_comments(
    make_run: MakeRun, reading: Callable[[Run], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream, "LOOK_SECONDS", 0.01)
    monkeypatch.setattr(stream, "KEEPALIVE_SECONDS", 0.03)
    _, lines = await at_work(make_run, reading)
    async with aclosing(lines):
        assert [await next_line(lines) for _ in range(2)] == [b": keepalive\n\n"] * 2


def test_comments_come_before_a_client_would_give_up() -> None:
    assert stream.KEEPALIVE_SECONDS <= 15
    assert stream.LOOK_SECONDS < stream.KEEPALIVE_SECONDS


def say(run: Run, text: str) -> None:
    events.record(Run.objects.get(pk=run.pk), "agent.say", {"step": 1, "text": text})


async def test_a_hint_wakes_a_reader_long_before_it_looks_by_itself(
    make_run: MakeRun, reading: Callable[[Run], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream, "LOOK_SECONDS", 3600)
    run, lines = await at_work(make_run, reading)
    async with aclosing(lines):
        waiting = asyncio.ensure_future(frame(lines))
        await db.write(say, run, "Here.")
        assert (await waiting)["type"] == "text-start"
        assert (await frame(lines))["delta"] == "Here."


async def test_what_no_hint_told_of_is_found_all_the_same(
    make_run: MakeRun, reading: Callable[[Run], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream, "LOOK_SECONDS", 0.05)
    monkeypatch.setattr(push, "after_commit", lambda *_: None)
    run, lines = await at_work(make_run, reading)
    async with aclosing(lines):
        await db.write(say, run, "Here.")
        assert (await frame(lines))["type"] == "text-start"


async def test_a_channel_layer_that_fails_costs_a_reader_nothing_but_time(
    make_run: MakeRun, reading: Callable[[Run], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fails(*_: Any) -> None:
        raise ConnectionError

    monkeypatch.setattr(stream, "LOOK_SECONDS", 0.05)
    monkeypatch.setattr(get_channel_layer(), "group_add", fails)
    run, lines = await at_work(make_run, reading)
    async with aclosing(lines):
        await db.write(say, run, "Here.")
        assert (await frame(lines))["type"] == "text-start"


async def test_a_reader_that_left_is_in_no_group_any_more(
    make_run: MakeRun, reading: Callable[[Run], Any]
) -> None:
    _, lines = await at_work(make_run, reading)
    layer: Any = get_channel_layer()
    async with aclosing(lines):
        waiting = asyncio.ensure_future(next_line(lines))
        await asyncio.sleep(0)
        assert len(layer.groups) == 1
        assert [task for task in asyncio.all_tasks() if "_Ear" in repr(task)]
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
    assert layer.groups == {}
    assert not [task for task in asyncio.all_tasks() if "_Ear" in repr(task)]


async def test_every_pause_that_is_open_is_named_last_whatever_was_said_after_it_opened(
    make_run: MakeRun, make_round: MakeRound, reading: Callable[[Run], Any], alice: User
) -> None:
    """A client takes text, or the decision of another pause, as a sign that nothing is open (m8tes-http 6)."""
    run = await db.write(make_run)
    first, second = [await db.write(lambda: make_round(run=run)) for _ in range(2)]
    decider = Decider(user=alice, via="page")
    await db.write(answer, second.pk, ALLOW, decider=decider, idempotency_key="k")
    await db.write(_close_step_of, second)
    await db.write(say, run, "Meanwhile.")

    lines = await reading(run)
    seen = [json.loads(line.removeprefix(b"data: ")) async for line in lines]

    assert [frame["type"] for frame in seen[-2:]] == ["replay_complete", "awaiting_approval"]
    assert seen[-1]["request_id"] == first.pk


async def test_a_run_in_which_a_call_is_under_way_beside_a_pause_is_read_on(
    make_run: MakeRun, make_round: MakeRound, reading: Callable[[Run], Any], alice: User
) -> None:
    run = await db.write(make_run)
    waiting, answered = [await db.write(lambda: make_round(run=run)) for _ in range(2)]
    decider = Decider(user=alice, via="page")
    await db.write(answer, answered.pk, ALLOW, decider=decider, idempotency_key="k")

    lines = await reading(run)
    async with aclosing(lines):
        while (await frame(lines))["type"] != "replay_complete":
            pass
        await db.write(_close_step_of, answered)
        await db.write(say, run, "Done with that.")
        seen = [json.loads(line.removeprefix(b"data: ")) async for line in lines]
    assert [frame["type"] for frame in seen] == ["text-start", "text-delta", "text-end", "awaiting_approval"]
    assert seen[-1]["request_id"] == waiting.pk


def _close_step_of(round_: Round) -> None:
    step = round_.own_step
    step.result = {"status": "done", "result": None, "error": None}
    step.save(update_fields=["result"])


async def test_the_end_of_an_earlier_turn_is_not_the_end_of_the_stream(
    make_run: MakeRun, reading: Callable[[Run], Any], alice: User
) -> None:
    run = await db.write(make_run)
    await db.write(control.cancel, run.pk, decider=Decider(user=alice, via="page"))
    await db.write(control.reply, run.pk, "again")

    lines = await reading(run)
    async with aclosing(lines):
        assert [(await frame(lines))["type"] for _ in range(2)] == ["metadata", "replay_complete"]
        await db.write(control.cancel, run.pk, decider=Decider(user=alice, via="page"))
        assert [json.loads(line.removeprefix(b"data: ")) async for line in lines] == [
            {"type": "cancelled", "run_id": run.pk}
        ]


async def test_nobody_is_given_the_stream_of_another_account(
    make_run: MakeRun, otto: User, acting: Acting
) -> None:
    run = await db.write(make_run)
    actor = await db.read(acting, otto)
    with pytest.raises(NotFound):
        await opened(run, actor)


async def test_readers_whom_one_hint_wakes_look_once_for_all(
    make_run: MakeRun, reading: Callable[[Run], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = 0
    real = looking._look

    def counted(*asked: Any) -> looking.Look:
        nonlocal looks
        looks += 1
        return real(*asked)

    monkeypatch.setattr(stream, "LOOK_SECONDS", 3600)
    run, first = await at_work(make_run, reading)
    others = [await reading(run) for _ in range(9)]
    for lines in others:
        assert [(await frame(lines))["type"] for _ in range(2)] == ["metadata", "replay_complete"]
    monkeypatch.setattr(looking, "_look", counted)

    waiting = [asyncio.ensure_future(frame(lines)) for lines in (first, *others)]
    await db.write(say, run, "Here.")

    assert [frame["type"] for frame in await asyncio.gather(*waiting)] == ["text-start"] * 10
    assert looks < 5  # one, or two where the hint came in two turns of the loop
    for lines in (first, *others):
        await lines.aclose()  # type: ignore[attr-defined]  # a generator


async def test_a_look_that_has_begun_is_not_shared_with_who_asks_later(make_run: MakeRun) -> None:
    run = await db.write(make_run)
    before = await looking.look(run.pk, 0)
    asked = asyncio.ensure_future(looking.look(run.pk, 0))
    for _ in range(3):
        await asyncio.sleep(0)
    await db.write(say, run, "Here.")

    assert len((await looking.look(run.pk, 0)).happenings) == len(before.happenings) + 1
    await asked
