"""What a server returned is stored once, whatever becomes of the connection to the database (`runs.worker.in_hand`)."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.conf import LazySettings
from django.db import OperationalError

from runs import db, lease
from runs.errors import LeaseLost
from runs.lease import Lease
from runs.models import Round, Run
from runs.worker import call_journal, in_hand, leg_rows, passes
from runs.worker.in_hand import Grip
from tests.mcp.bindings import effects_in
from tests.worker.conftest import PATIENCE, Desk

Boundary = Callable[..., None]


class Away(Exception):
    """As the driver says it of a server that is not there."""

    __module__ = "psycopg"


def away() -> OperationalError:
    error = OperationalError("the connection was lost")
    error.__cause__ = Away()
    return error


class Breaking:
    """A boundary whose connection breaks, the first `times` it is used, `after` its commit or before it."""

    def __init__(self, boundary: Boundary, *, times: int, after: bool) -> None:
        self.boundary, self.times, self.after, self.used = boundary, times, after, 0

    async def write(self, job: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """In place of `db.write`."""
        if not self._is_it(job):
            return await db.write(job, *args, **kwargs)
        self.used += 1
        broken = self.used <= self.times
        if broken and not self.after:
            raise away()
        done = await db.write(job, *args, **kwargs)
        if broken:
            raise away()
        return done

    async def read(self, query: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        return await db.read(query, *args, **kwargs)

    def _is_it(self, job: Any) -> bool:
        """Whether this is the boundary, or the boundary once more."""
        inner = getattr(job, "args", ())[:1]
        return getattr(job, "func", job) is self.boundary or any(self._is_it(each) for each in inner)


@pytest.fixture
def breaking(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Breaking]:
    monkeypatch.setattr(in_hand, "PAUSE", 0.01)

    def breaks(boundary: Boundary, **how: Any) -> Breaking:
        link = Breaking(boundary, **how)
        monkeypatch.setattr(in_hand, "db", link)
        return link

    return breaks


async def one_effect(desk_: Desk, run: Run, playground_effects: Any, value: str) -> None:
    """The run ended with what its only call returned; that was told once, and nobody was asked."""
    assert (await desk_.finished(run)).output == "done"
    types = await db.read(lambda: list(run.events.values_list("type", flat=True)))
    assert types.count("tool_call.result") == 1
    assert types.count("tool_call.sent") == 1
    assert not await db.read(Round.objects.filter(run=run).exists)
    assert len([effect for effect in effects_in(playground_effects) if effect.get("value") == value]) == 1


@pytest.mark.parametrize("boundary", [call_journal.received, call_journal.complete])
@pytest.mark.parametrize(("times", "after"), [(3, False), (1, True), (3, True)])
async def test_a_result_whose_commit_was_or_may_have_been_lost_is_stored_once(
    desk_: Desk, breaking: Callable[..., Breaking], playground_effects: Any, boundary: Boundary, times: int, after: bool
) -> None:  # fmt: skip
    link = breaking(boundary, times=times, after=after)
    value = f"{boundary.__name__} {times} {after}"
    run = await desk_.start(
        [{"call": "playground:echo", "args": {"value": value}, "as": "r"}, {"finish": "{{ r.status }}"}],
        server="playground",
    )
    await one_effect(desk_, run, playground_effects, value)
    assert link.used == times + 1


async def test_an_error_of_a_server_is_kept_in_hand_like_a_result(
    desk_: Desk, breaking: Callable[..., Breaking]
) -> None:
    link = breaking(call_journal.failed, times=2, after=True)
    run = await desk_.start(
        [{"prompt": "playground:unheard of", "args": {}, "as": "r"}, {"finish": "{{ r.status }}"}],
        server="playground",
    )
    assert (await desk_.finished(run)).output == "failed"
    types = await db.read(lambda: list(run.events.values_list("type", flat=True)))
    assert types.count("tool_call.failed") == 1
    assert link.used == 3


async def test_a_person_is_asked_once_although_the_commit_of_the_question_may_have_been_lost(
    desk_: Desk, breaking: Callable[..., Breaking]
) -> None:
    link = breaking(call_journal.input_required, times=2, after=True)
    run = await desk_.start([{"call": "playground:no_state", "args": {}, "as": "r"}], server="playground")
    (round_,) = await desk_.pending(run)
    await desk_.accept(round_, name="Ada")
    await desk_.finished(run)
    assert link.used == 3
    assert await db.read(Round.objects.filter(run=run).count) == 1


async def test_a_call_is_not_cut_because_nobody_can_look_at_its_run_for_a_while(
    desk_: Desk, breaking: Callable[..., Breaking], playground_effects: Any, tmp_path: Path
) -> None:
    link = breaking(passes.go_on, times=3, after=False)
    until, tag = tmp_path / "until", "not cut"
    run = await desk_.start(
        [
            {"call": "playground:haul", "args": {"until": str(until), "tag": tag}, "as": "r"},
            {"finish": "{{ r.status }}"},
        ],
        server="playground",
    )
    await desk_.eventually(lambda: link.used > 3, "a look that succeeds", run)
    until.touch()
    assert (await desk_.finished(run)).output == "done"
    done = [effect["what"] for effect in effects_in(playground_effects) if effect.get("tag") == tag]
    assert done == ["haul began", "haul"]


async def test_a_note_of_progress_that_is_lost_stops_no_call(
    desk_: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried = []

    def lost(*about: Any) -> None:
        tried.append(about)
        raise away()

    monkeypatch.setattr(leg_rows, "store_progress", lost)
    run = await desk_.start(
        [{"call": "playground:counts", "args": {}, "as": "r"}, {"finish": "{{ r.status }}"}],
        server="playground",
    )
    assert (await desk_.finished(run)).output == "done"
    assert tried


# --- when to give up -------------------------------------------------------------------------------------------


class Gone:
    """A database that is away: it refuses, or is silent to whoever asks whether it is back."""

    def __init__(self, *, silent: bool = False, error: Callable[[], Exception] = away) -> None:
        self.silent, self.error, self.tried = silent, error, asyncio.Event()

    async def write(self, *_: Any) -> None:
        self.tried.set()
        raise self.error()

    async def read(self, *_: Any) -> None:
        if self.silent:
            await asyncio.Event().wait()
        raise away()


HELD = Lease(run_id=1, owner="a worker", token=1, seen=1)


def kept(grip: Grip) -> asyncio.Future[None]:
    """What is tried, ended by the test if it does not end by itself."""
    return asyncio.ensure_future(asyncio.wait_for(grip.store(call_journal.received, 1, {}), PATIENCE))


@pytest.mark.parametrize("silent", [False, True])
async def test_nothing_is_tried_any_more_once_the_lease_may_have_run_out(
    settings: LazySettings, monkeypatch: pytest.MonkeyPatch, silent: bool
) -> None:
    settings.M3 = dataclasses.replace(settings.M3, lease_seconds=0.3)
    monkeypatch.setattr(in_hand, "PAUSE", 0.01)
    monkeypatch.setattr(in_hand, "db", Gone(silent=silent))
    with pytest.raises(OperationalError):
        await kept(Grip(HELD, asyncio.Event()))


@pytest.mark.parametrize(("silent", "pause"), [(False, 0.01), (False, PATIENCE), (True, 0.01)])
async def test_a_worker_that_is_told_to_stop_waits_for_no_database(
    settings: LazySettings, monkeypatch: pytest.MonkeyPatch, silent: bool, pause: float
) -> None:
    settings.M3 = dataclasses.replace(settings.M3, lease_seconds=10 * PATIENCE)
    monkeypatch.setattr(in_hand, "PAUSE", pause)
    gone, stopping = Gone(silent=silent), asyncio.Event()
    monkeypatch.setattr(in_hand, "db", gone)
    keeping = kept(Grip(HELD, stopping))
    await asyncio.wait_for(gone.tried.wait(), PATIENCE)

    stopping.set()

    with pytest.raises(OperationalError):
        await keeping


async def test_what_is_no_absence_of_the_database_is_not_waited_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(in_hand, "PAUSE", 10 * PATIENCE)
    monkeypatch.setattr(in_hand, "db", Gone(error=lambda: OperationalError("the disk is full")))
    with pytest.raises(OperationalError, match="full"):
        await kept(Grip(HELD, asyncio.Event()))


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("engine_threads")
async def test_a_run_that_was_taken_meanwhile_is_let_go_at_once(
    make_run: Callable[..., Run], breaking: Callable[..., Breaking]
) -> None:
    run = await db.write(make_run)
    held = await db.write(lease.claim, run.pk, "a worker")
    assert held is not None
    link = breaking(call_journal.received, times=1, after=False)
    await db.write(lease.revoke, run.pk)
    with pytest.raises(LeaseLost):
        await Grip(held, asyncio.Event()).store(call_journal.received, 1, {})
    assert link.used == 2
