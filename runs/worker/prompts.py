"""Prompts on a session that stays open while a person thinks."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from runs import db
from runs.gate import Gate
from runs.lease import Lease
from runs.mcp_client import Answer, FormRequest, Refusal, UrlRequest
from runs.worker import leg_rows, replay
from runs.worker.in_hand import Grip
from runs.worker.requests_in import answer_of


class Slot:
    """A slot for work on servers that is given back while a person thinks, and given up once at most."""

    def __init__(self, legs: asyncio.Semaphore) -> None:
        self._legs, self._mine = legs, False

    async def __aenter__(self) -> None:
        await self.take()

    async def __aexit__(self, *_: object) -> None:
        self.leave()

    async def take(self) -> None:
        """Wait for a slot. Whoever is cancelled meanwhile has none."""
        await self._legs.acquire()
        self._mine = True

    def leave(self) -> None:
        if self._mine:
            self._mine = False
            self._legs.release()


@dataclass
class Held:
    """What the live sessions of one driven run share with its driver."""

    lease: Lease
    gate: Gate
    legs: asyncio.Semaphore
    """Slots for work on servers."""
    grip: Grip
    """What keeps the run in hand while its database is away."""
    waits: Callable[[], None] | None = None
    """Called when a live session of the run begins to wait for a person."""
    waiting: dict[str, asyncio.Future[Mapping[str, Any]]] = field(default_factory=dict)
    """Round id -> the future that a live session waits on."""


class Prompts:
    """The prompts of one call, as its session puts them."""

    def __init__(self, held: Held, step_id: int) -> None:
        self.held, self.lease, self.step_id = held, held.lease, step_id
        self.slot = Slot(held.legs)
        """Of the call; a call that waits for a person gives it back."""
        self.unanswerable: leg_rows.Unanswerable | None = None
        """Why a prompt found no answer; None if all did."""
        self.asked = False
        """Whether the session that is open has asked a person, or its question is being stored."""
        self._closed = False
        self._one_at_a_time = asyncio.Lock()
        self._delivered: set[str] = set()
        self._replayed = 0

    def new_attempt(self) -> None:
        """Another session: nobody was asked yet, and stored answers are served from the first one on."""
        self._replayed, self.asked = 0, False

    def close(self) -> None:
        """The sessions are about to be closed or left: what they ask from now on is shown to nobody."""
        self._closed = True

    async def answer(self, request: FormRequest | UrlRequest) -> Answer | Refusal:
        """Store the round, keep the session, wait for the answer.

        Two prompts of one call are asked one after the other, since an operation has one open round. In a call that
        is made again after a crash, stored answers come first (A4). A prompt that another worker was asked before
        keeps its round, and has its answer if it was given meanwhile.
        """
        async with self._one_at_a_time:
            stored = await db.write(replay.stored_answer, self.lease, self.step_id, request, self._replayed)
            if stored is not None:
                self._replayed += 1
                return answer_of(stored)
            if self._closed:
                await asyncio.get_running_loop().create_future()  # for the moment until the leg is cancelled
            # Known before anybody can be shown it: a stop meanwhile must not end the session that a pause waits on.
            self.asked = True
            opened = await db.write(leg_rows.open_held, self.lease, self.step_id, request, self._delivered)
            if isinstance(opened, leg_rows.Unanswerable):
                self.unanswerable = opened
                return Refusal(opened.reason)
            responses = opened.responses or await self._answered(opened.pk)
            await db.write(leg_rows.start_held_delivery, self.lease, opened.pk)
            self._delivered.add(opened.pk)
        return answer_of(next(iter(responses.values())))

    async def _answered(self, round_id: str) -> Mapping[str, Any]:
        """What a person says; meanwhile this call takes no slot of those that work."""
        answered: asyncio.Future[Mapping[str, Any]] = asyncio.get_running_loop().create_future()
        self.held.waiting[round_id] = answered
        self.slot.leave()
        if self.held.waits is not None:
            self.held.waits()
        try:
            return await answered
        finally:
            self.held.waiting.pop(round_id, None)
            await self.slot.take()
