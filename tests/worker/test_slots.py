"""Slots for work on servers: one that was given back while a person thought is never given up twice."""

from __future__ import annotations

import asyncio

import pytest

from runs.worker.prompts import Slot


async def test_a_call_that_waits_for_a_person_makes_room_and_takes_a_slot_again_afterwards() -> None:
    legs = asyncio.Semaphore(1)
    slot = Slot(legs)
    async with slot:
        assert legs.locked()
        slot.leave()
        assert not legs.locked()
        await slot.take()
        assert legs.locked()
    assert not legs.locked()


async def test_a_call_that_is_cancelled_while_it_waits_for_a_slot_gives_up_none() -> None:
    legs = asyncio.Semaphore(1)
    slot = Slot(legs)

    async def work() -> None:
        async with slot:
            slot.leave()
            await legs.acquire()  # another call takes the room
            await slot.take()

    waiting = asyncio.create_task(work())
    while not legs.locked():
        await asyncio.sleep(0)
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert legs.locked(), "the slot belongs to another call"
    legs.release()
    async with Slot(legs):
        assert legs.locked()
    assert not legs.locked()
