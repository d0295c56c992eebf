"""What watches a process from outside is told whether it serves, and whether it can do its work."""

from __future__ import annotations

import pytest
from django.db import DatabaseError
from django.test import Client

from m3web import health


def test_a_process_that_serves_says_so_without_asking_the_database(client: Client) -> None:
    answer = client.get("/healthz")  # a test without the fixture `db` may not touch it

    assert (answer.status_code, answer.json()) == (200, {"status": "ok"})
    assert "no-store" in answer.headers["Cache-Control"]


@pytest.mark.django_db
def test_a_process_with_its_database_is_ready(client: Client) -> None:
    answer = client.get("/readyz")

    assert (answer.status_code, answer.json()) == (200, {"status": "ok", "database": "ok"})


def test_a_process_without_its_database_is_not_ready_and_names_it(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone() -> None:
        raise DatabaseError("password in here")

    monkeypatch.setattr(health, "_ask_database", gone)

    answer = client.get("/readyz")

    assert answer.status_code == 503
    assert answer.json() == {"status": "unavailable", "database": "does not answer"}


def test_nothing_can_be_sent_there(client: Client) -> None:
    assert [client.post(path).status_code for path in ("/healthz", "/readyz")] == [405, 405]
