"""Two machines that can reach each other's servers: it does not matter at which of them anything happens."""

from __future__ import annotations

import pytest

from tests.fleet.machines import Fleet

pytestmark = pytest.mark.timeout(600)  # the machines start within the first test


def test_a_pause_of_a_run_started_at_one_machine_is_seen_and_answered_at_the_other(fleet: Fleet) -> None:
    with fleet.b.page(fleet.b.sign_in()) as page:
        started = fleet.start(fleet.a, "asks")
        hint = page.until(type="pause", run_id=started.run, status="pending")

        answer = fleet.answer(fleet.b, started.detail(fleet.b, hint["pause_id"]))

        assert answer.status_code == 200, answer.text
        page.until(type="run", run_id=started.run, status="finished")
    assert started.ended() == ("completed", None)
    assert fleet.effects("label", started.tag) == 1


def test_a_run_goes_on_wherever_a_worker_is_at_work(fleet: Fleet) -> None:
    for frozen in (fleet.a, fleet.b):
        started = fleet.start(fleet.a, "asks")
        pause = started.pause(fleet.a)

        with frozen.worker_frozen():
            assert fleet.answer(fleet.a, pause).status_code == 200
            assert started.ended() == ("completed", None)

        assert fleet.effects("label", started.tag) == 1
