"""Driving runs as tasks: places, signals, and the way to stop. No database: what drives one run is played here."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from django.db import OperationalError

from runs.engines import driver as driver_module
from runs.engines.driver import Driver
from runs.errors import SessionBusyError


class Advance:
    """Stands in for `advance`: each run goes on until the test lets it end, or is told to do something else."""

    def __init__(self) -> None:
        self.began: list[int] = []
        self.going: dict[int, asyncio.Event] = {}
        self.waits: dict[int, Callable[[], None]] = {}
        self.busy: set[int] = set()
        self.cancelled: list[int] = []
        self.fails_to_give_back = False

    async def __call__(
        self, run_id: int, *, stopping: asyncio.Event, waits: Callable[[], None], **rest: Any
    ) -> None:
        self.began.append(run_id)
        self.waits[run_id] = waits
        if run_id in self.busy:
            raise SessionBusyError("another worker drives it")
        self.going[run_id] = asyncio.Event()
        try:
            await self.going[run_id].wait()
        except asyncio.CancelledError:
            self.cancelled.append(run_id)
            if self.fails_to_give_back:
                raise OperationalError("the database is away") from None
            raise


@pytest.fixture
def advance(monkeypatch: pytest.MonkeyPatch) -> Advance:
    played = Advance()
    monkeypatch.setattr(driver_module, "advance", played)
    monkeypatch.setattr(driver_module.db, "read", nothing)
    return played


@pytest.fixture
def words(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """What the driver writes."""
    said: list[tuple[Any, ...]] = []

    async def write(_boundary: Any, *args: Any) -> None:
        said.append(args)

    monkeypatch.setattr(driver_module.db, "write", write)
    return said


async def nothing(*_: Any) -> None:
    return None


async def settle() -> None:
    """Let every task go as far as it can."""
    for _ in range(20):
        await asyncio.sleep(0)


async def test_a_run_takes_a_place_until_it_is_given_back_or_waits_for_a_person(advance: Advance) -> None:
    driver = Driver(gate=None, places=3)  # type: ignore[arg-type]
    first, second = driver.kick(1), driver.kick(2)
    await settle()
    assert driver.free == 1

    advance.waits[1]()
    assert (driver.free, first.rests.is_set(), 1 in driver.active) == (2, True, True)

    advance.going[2].set()
    await settle()
    assert (driver.free, second.rests.is_set(), 2 in driver.active) == (3, True, False)
    await driver.stop()


async def test_a_kick_of_a_run_that_is_driven_is_a_signal_and_no_second_driver(advance: Advance) -> None:
    driver = Driver(gate=None, places=3)  # type: ignore[arg-type]
    driven = driver.kick(1)
    await settle()

    assert driver.kick(1) is driven
    assert driven.signal.is_set()

    advance.going[1].set()
    await settle()
    assert advance.began == [1, 1], "a kick that nobody looked at any more starts the run anew"
    await driver.stop()


async def test_whoever_finds_a_run_busy_tells_its_driver_and_does_not_try_again(
    advance: Advance, words: list[tuple[Any, ...]]
) -> None:
    advance.busy.add(7)
    driver = Driver(gate=None, places=3)  # type: ignore[arg-type]
    driven = driver.kick(7)
    await settle()

    assert words == [("m3_wakes", "7")]
    assert (advance.began, driven.rests.is_set(), driver.active) == ([7], True, {})


async def test_a_word_about_a_run_of_somebody_else_starts_nothing(advance: Advance) -> None:
    driver = Driver(gate=None, places=3)  # type: ignore[arg-type]
    mine = driver.kick(1)
    await settle()

    driver.tell(1)
    driver.tell(2)
    await settle()

    assert (mine.signal.is_set(), list(driver.active)) == (True, [1])
    mine.signal.clear()
    await driver.stop()


@pytest.mark.parametrize("fails", [False, True])
async def test_a_driver_that_stops_knows_whether_all_was_given_back(advance: Advance, fails: bool) -> None:
    driver = Driver(gate=None, places=3)  # type: ignore[arg-type]
    driver.kick(1)
    await settle()

    advance.fails_to_give_back = fails
    await driver.stop()
    assert driver.all_given_back is not fails


async def test_a_driver_that_stops_cuts_what_takes_too_long_and_knows_what_it_left(advance: Advance) -> None:
    driver = Driver(gate=None, places=3)  # type: ignore[arg-type]
    driver.kick(1)
    driver.kick(2)
    await settle()

    stopping = asyncio.ensure_future(driver.stop(within=0.05))
    await settle()
    assert driver.kick(3).rests.is_set(), "nothing new is started"
    advance.going[1].set()
    await stopping

    assert (advance.began, advance.cancelled) == ([1, 2], [2])
    assert driver.left == {1, 2, 3}
