"""Redis alone is out of reach. Nothing but the speed of pages depends on it."""

from __future__ import annotations

import time

import pytest

from tests.fleet.machines import Fleet

AT_ONCE = 20.0
"""Seconds for a decision on a busy test machine: nothing in it waits for Redis."""

pytestmark = pytest.mark.timeout(600)  # the machines start within the first test


def test_without_redis_decisions_and_runs_go_on_and_pages_hear_again_when_it_is_back(fleet: Fleet) -> None:
    with fleet.a.page(fleet.a.sign_in()) as page, fleet.b.page(fleet.b.sign_in()) as other:
        for machine in (fleet.a, fleet.b):
            machine.hears(True)
        for machine in (fleet.a, fleet.b):
            fleet.network.cut(machine.name, to=fleet.redis)
        for machine in (fleet.a, fleet.b):
            machine.hears(False)

        started = fleet.start(fleet.a, "asks")
        pause = started.pause(fleet.b)
        before = time.monotonic()
        assert fleet.answer(fleet.b, pause).status_code == 200
        assert time.monotonic() - before < AT_ONCE
        assert started.ended() == ("completed", None)
        waiting = fleet.start(fleet.a, "asks")
        waiting.pause(fleet.a)

        heard = [len(each.told) for each in (page, other)]
        for machine in (fleet.a, fleet.b):
            fleet.network.heal(machine.name)
        for each, since in zip((page, other), heard, strict=True):
            assert each.until(type="hello", since=since)["pending_count"] >= 1
        later = fleet.start(fleet.a, "asks")
        for each in (page, other):
            each.until(type="pause", run_id=later.run, status="pending")
        for run in (waiting, later):
            assert fleet.answer(fleet.b, run.pause(fleet.b)).status_code == 200
            assert run.ended() == ("completed", None)
            assert fleet.effects("label", run.tag) == 1
