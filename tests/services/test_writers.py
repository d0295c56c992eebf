"""Writes that belong together come in the order in which they were asked for; on a server others need not wait."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from functools import partial

import pytest
from django.db import connection

from runs import database, db

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("engine_threads")]

WITHIN = 10.0


async def in_lane(lane: int, write: Callable[[], object]) -> None:
    database.stand_in(lane)
    await db.write(write)


async def test_one_run_s_writes_are_done_one_after_the_other_in_their_order() -> None:
    done: list[int] = []
    free = threading.Event()

    def first() -> None:
        assert free.wait(WITHIN)
        done.append(0)

    waiting = [asyncio.create_task(in_lane(7, first))]
    await asyncio.sleep(0)  # it is asked for
    for number in range(1, 6):
        waiting.append(asyncio.create_task(in_lane(7, partial(done.append, number))))
        await asyncio.sleep(0)
    free.set()
    await asyncio.wait_for(asyncio.gather(*waiting), WITHIN)
    assert done == [0, 1, 2, 3, 4, 5]


async def test_tasks_that_a_run_starts_stand_in_its_line() -> None:
    names: list[str] = []

    async def child() -> None:
        await db.write(lambda: names.append(threading.current_thread().name))

    async def parent() -> None:
        database.stand_in(7)
        await db.write(lambda: names.append(threading.current_thread().name))
        await asyncio.create_task(child())

    await asyncio.wait_for(asyncio.create_task(parent()), WITHIN)
    assert names[0] == names[1]


@pytest.mark.skipif(connection.vendor != "postgresql", reason="SQLite takes one writer at a time")
async def test_on_a_server_the_write_of_another_run_does_not_wait() -> None:
    free = threading.Event()
    held = asyncio.create_task(in_lane(0, lambda: free.wait(WITHIN)))
    await asyncio.wait_for(asyncio.create_task(in_lane(1, lambda: None)), WITHIN)
    assert not held.done()
    free.set()
    await asyncio.wait_for(held, WITHIN)


@pytest.mark.skipif(connection.vendor == "postgresql", reason="PostgreSQL takes many writers")
async def test_a_file_has_one_writer_for_all() -> None:
    names: set[str] = set()
    for lane in range(4):
        task = asyncio.create_task(in_lane(lane, lambda: names.add(threading.current_thread().name)))
        await asyncio.wait_for(task, WITHIN)
    assert len(names) == 1
