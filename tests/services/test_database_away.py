"""A request that finds no database server, or loses it on the way, is told so: what it sent may be sent again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NoReturn

import psycopg
import pytest
from django.db import OperationalError, connection
from django.test import Client
from psycopg import errors

from runs import commands, races
from runs.models import Run, User

pytestmark = pytest.mark.django_db


def failure(cause: Exception) -> OperationalError:
    error = OperationalError(str(cause))
    error.__cause__ = cause
    return error


@pytest.fixture
def away(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """From the middle of the request on there is no database."""

    def fail(*_: object, **__: object) -> NoReturn:
        raise failure(psycopg.OperationalError("server closed the connection unexpectedly"))

    def cancel(*_: object, **__: object) -> NoReturn:
        connection.execute_wrappers.append(fail)
        fail()

    monkeypatch.setattr(commands, "cancel_run", cancel)
    yield
    connection.execute_wrappers.clear()


@pytest.mark.usefixtures("away")
def test_a_call_of_the_api_is_answered_with_503_and_what_to_do(
    client_for: Callable[[User], Client], alice: User, make_run: Callable[..., Run]
) -> None:
    answer = client_for(alice).post(f"/api/v2/runs/{make_run().pk}/cancel", content_type="application/json")

    error = answer.json()["error"]
    assert (answer.status_code, answer["Retry-After"], error["error_code"]) == (503, "1", "database_away")
    assert "send it again under the same key" in error["message"]


@pytest.mark.usefixtures("away")
@pytest.mark.parametrize("headers", [{}, {"HX-Request": "true"}])
def test_a_page_says_it_without_asking_the_database_who_looks(
    client_for: Callable[[User], Client],
    alice: User,
    make_run: Callable[..., Run],
    headers: dict[str, str],
) -> None:
    run, client = make_run(), client_for(alice)

    answer = client.post(f"/runs/{run.pk}/cancel", headers=headers)

    assert (answer.status_code, answer["Retry-After"]) == (503, "1")
    assert "The database does not answer at the moment." in answer.content.decode()


@pytest.mark.parametrize(
    ("cause", "away"),
    [
        (psycopg.OperationalError("timeout expired"), True),
        (errors.AdminShutdown("57P01"), True),
        (errors.ConnectionFailure("08006"), True),
        (errors.QueryCanceled("57014"), False),
        (errors.DiskFull("53100"), False),
        (ValueError("no driver's"), False),
    ],
)
def test_what_a_server_refuses_in_words_is_not_its_absence(cause: Exception, away: bool) -> None:
    assert races.away(failure(cause)) is away
    assert not races.away(cause)
