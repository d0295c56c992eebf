"""A store on a file of its own: same models and services, another database, nothing mixed up."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from django.db import transaction

from runs import database, db, engines, push
from runs.models import Account


@pytest.fixture
def file(tmp_path: Path, db: None) -> Path:
    path = tmp_path / "other.sqlite"
    database.prepare_file(path)
    return path


@pytest.fixture
def other(file: Path) -> Iterator[database.Database]:
    store = database.Database(file)
    yield store
    store.close()


def names() -> list[str]:
    return list(Account.objects.order_by("slug").values_list("slug", flat=True))


def test_a_thread_reads_and_writes_the_file_only_as_long_as_it_is_told_to(file: Path) -> None:
    with database.file_connection(file), transaction.atomic():
        Account.objects.create(name="There", slug="there")
    assert names() == []
    with database.file_connection(file):
        assert names() == ["there"]


def test_preparing_a_file_twice_keeps_what_is_in_it(file: Path) -> None:
    with database.file_connection(file):
        Account.objects.create(name="There", slug="there")
    database.prepare_file(file)
    with database.file_connection(file):
        assert names() == ["there"]


def test_two_that_prepare_one_file_at_once_both_succeed(tmp_path: Path, db: None) -> None:
    path = tmp_path / "shared.sqlite"
    with ThreadPoolExecutor(2) as pool:
        for waiting in [pool.submit(database.prepare_file, path) for _ in range(2)]:
            waiting.result(timeout=60)
    with database.file_connection(path):
        assert names() == []


async def test_what_a_coroutine_starts_works_for_its_own_store(other: database.Database) -> None:
    def create() -> str:
        Account.objects.create(name="There", slug="there")
        return database.current().file.name if database.current().file else ""

    with database.using(other):
        task = asyncio.create_task(db.write(create))
    assert await task == "other.sqlite"
    with database.using(other):
        assert await db.read(names) == ["there"]


async def test_wakes_and_hints_of_another_store_do_not_reach_the_installation(
    other: database.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard: list[object] = []
    monkeypatch.setattr(push, "_send", lambda *hint: heard.append(hint))

    class Loud:
        def enqueue(self, run_id: int) -> None:
            heard.append(run_id)

    def change() -> None:
        engines.enqueue(1)
        push.after_commit(("run.1",), {"type": "run", "run_id": 1, "status": "queued", "seq": 1})

    engines.use(Loud())
    with database.using(other):
        await db.write(change)
    assert heard == []
