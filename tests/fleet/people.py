"""People who start runs and answer what is asked, wherever they get through, and try again until they do."""

from __future__ import annotations

import random
import time
import uuid
from collections.abc import Callable
from typing import Any

import httpx2

from tests.fleet.machines import PATIENCE, Fleet, Machine, Started, agreed

GIVES_UP = 15.0
"""Seconds after which a person tries the other machine; a machine without its database says so in ten."""


class People:
    """They choose the machine by chance; whatever they send again carries the key that it had."""

    def __init__(self, fleet: Fleet, chance: random.Random) -> None:
        self.fleet, self.chance = fleet, chance
        self.refused = 0
        """How often they did not get through."""

    def start(self, agent: str, mode: str) -> Started:
        """A run, started once however often that had to be sent."""
        tag = uuid.uuid4().hex[:12]
        body = {"agent_id": self.fleet.agents[agent], "message": tag, "permission_mode": mode}
        more = {
            "json": {**body, "human_in_the_loop": True, "stream": False},
            "headers": {"Idempotency-Key": tag},
        }
        until = time.monotonic() + PATIENCE
        while (answer := self._get_through("POST", "runs/", **more)) is None:
            assert time.monotonic() < until, f"nobody could start a run: {self.fleet.a.story()}"
        return Started(self.fleet, int(answer["id"]), tag)

    def answer_until(self, over: Callable[[], Any], what: str, patience: float = PATIENCE) -> None:
        """Answer whatever is asked until something is so."""
        until = time.monotonic() + patience
        while not over():
            assert time.monotonic() < until, f"waited {patience} s for {what}: {self.fleet.b.story()}"
            self._answer_all()

    def answer_for(self, seconds: float) -> None:
        """Answer whatever is asked for so long."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            self._answer_all()

    def _answer_all(self) -> None:
        waiting = self._get_through("GET", "rounds/", params={"status": "pending", "limit": 100})
        for line in waiting["data"] if waiting else ():
            pause = self._get_through("GET", f"rounds/{line['id']}")
            if pause is not None and pause["status"] == "pending":
                body = {"responses": agreed(pause), "idempotency_key": f"key of {pause['id']}"}
                self._get_through("POST", f"rounds/{pause['id']}/respond", json=body)

    def _get_through(self, method: str, path: str, **more: Any) -> dict[str, Any] | None:
        """What a machine says; None if it is gone, without its database, or somebody was quicker."""
        machine: Machine = self.chance.choice((self.fleet.a, self.fleet.b))
        try:
            answer = machine.request(method, path, self.fleet.key, timeout=GIVES_UP, **more)
        except httpx2.TransportError:
            self.refused += 1
            return None
        assert answer.status_code in (200, 201, 409, 503), answer.text
        if answer.status_code >= 400:
            self.refused += 1
            return None
        said: dict[str, Any] = answer.json()
        return said
