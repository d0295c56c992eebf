"""Who loses a race for the same rows begins anew, or is told to try again; nothing of the lost try is left behind."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

import pytest
from django.db import DatabaseError, IntegrityError, connection, transaction
from django.test import Client

from runs import commands, db
from runs.models import Agent, EndUser, Run, User
from tests.services.holding import PATIENCE, somebody_else

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("engine_threads")]
on_a_server = pytest.mark.skipif(
    connection.vendor != "postgresql", reason="on SQLite writers take turns, so no boundary ever loses"
)


def fail_with(code: str) -> NoReturn:
    """Let the server end the transaction with this SQLSTATE."""
    with connection.cursor() as cursor:
        cursor.execute(f"DO $$ BEGIN RAISE EXCEPTION 'lost' USING ERRCODE = '{code}'; END $$")
    raise AssertionError("the server did not refuse")


def take(run: Run) -> None:
    Run.objects.select_for_update().get(pk=run.pk)


@on_a_server
async def test_a_boundary_that_a_deadlock_ends_is_begun_anew_and_only_its_second_try_counts(
    make_two_runs: tuple[Run, Run],
) -> None:
    first, second = make_two_runs
    together, tried, heard = threading.Barrier(2), [], []

    def other_way_round() -> None:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SET LOCAL deadlock_timeout = '20s'")  # so that it is never the one that is ended
            take(second)
            together.wait(PATIENCE)
            take(first)

    def boundary() -> int:
        tried.append(len(tried))
        number = tried[-1]
        Run.objects.filter(pk=first.pk).update(error=f"try {number}")
        transaction.on_commit(lambda: heard.append(number))
        if number == 0:
            together.wait(PATIENCE)
        take(second)
        return number

    with somebody_else(other_way_round):
        assert await db.write(boundary) == 1

    assert (tried, heard) == ([0, 1], [1])
    assert await db.read(lambda: Run.objects.get(pk=first.pk).error) == "try 1"


@pytest.fixture
def make_two_runs(make_run: Callable[..., Run]) -> tuple[Run, Run]:
    return make_run(), make_run()


@on_a_server
@pytest.mark.parametrize("code", ["40P01", "40001", "23503", "23505"])
async def test_a_boundary_that_loses_every_time_is_given_up(code: str) -> None:
    tried = []

    def boundary() -> None:
        tried.append(True)
        fail_with(code)

    with pytest.raises(DatabaseError):
        await db.write(boundary)

    assert len(tried) == db.TRIES


@on_a_server
@pytest.mark.parametrize("code", ["23514", "57014", "22001"])
async def test_what_would_fail_again_is_tried_once(code: str) -> None:
    tried = []

    def boundary() -> None:
        tried.append(True)
        fail_with(code)

    with pytest.raises(DatabaseError):
        await db.write(boundary)

    assert len(tried) == 1


@on_a_server
async def test_a_boundary_that_makes_what_somebody_else_makes_finds_it_the_second_time(
    agent: Agent,
) -> None:
    account, together = agent.account, threading.Barrier(2)
    tried = []

    def theirs() -> None:
        with transaction.atomic():
            EndUser.objects.create(account=account, user_id="cust_1", name="theirs")
            together.wait(PATIENCE)

    def boundary() -> str:
        found = EndUser.objects.filter(account=account, user_id="cust_1").first()
        tried.append(found)
        if found is None:
            together.wait(PATIENCE)
            found = EndUser.objects.create(account=account, user_id="cust_1", name="ours")
        return found.name

    with somebody_else(theirs):
        assert await db.write(boundary) == "theirs"
    assert len(tried) == 2


async def test_a_boundary_breaks_off_at_any_other_error(agent: Agent) -> None:
    tried = []

    def boundary() -> None:
        tried.append(True)
        Run.objects.filter(pk=0).update(status="finished")
        raise ValueError("not the database's")

    with pytest.raises(ValueError, match="not the database's"):
        await db.write(boundary)

    assert len(tried) == 1


@pytest.fixture
def loses(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Whoever cancels a run loses the race for it."""
    if connection.vendor == "postgresql":
        monkeypatch.setattr(commands, "cancel_run", lambda *_args, **_more: fail_with("40P01"))
        yield
        return
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA busy_timeout = 1")
    writer = sqlite3.connect(str(connection.settings_dict["NAME"]), isolation_level=None)
    writer.execute("BEGIN IMMEDIATE")
    yield
    writer.execute("ROLLBACK")
    writer.close()
    connection.close()


def test_a_page_that_loses_says_try_again(
    client_for: Callable[[User], Client], alice: User, make_run: Callable[..., Run], request: Any
) -> None:
    run, client = make_run(), client_for(alice)
    request.getfixturevalue("loses")

    answer = client.post(f"/runs/{run.pk}/cancel")

    assert (answer.status_code, answer["Retry-After"]) == (503, "1")
    assert "nothing of this was stored. Try again." in answer.content.decode()


def test_a_call_of_the_api_that_loses_says_try_again(
    client_for: Callable[[User], Client], alice: User, make_run: Callable[..., Run], request: Any
) -> None:
    run, client = make_run(), client_for(alice)
    request.getfixturevalue("loses")

    answer = client.post(f"/api/v2/runs/{run.pk}/cancel", content_type="application/json")

    error = answer.json()["error"]
    assert (answer.status_code, answer["Retry-After"], error["error_code"]) == (503, "1", "try_again")
    assert error["message"].endswith("Try again.")


@on_a_server
def test_what_would_fail_again_is_a_failure_of_ours(
    client_for: Callable[[User], Client],
    alice: User,
    make_run: Callable[..., Run],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(commands, "cancel_run", lambda *_args, **_more: fail_with("23514"))
    run, client = make_run(), client_for(alice)

    with pytest.raises(IntegrityError):
        client.post(f"/runs/{run.pk}/cancel")
    assert client.post(f"/api/v2/runs/{run.pk}/cancel", content_type="application/json").status_code == 500
