"""A machine that nobody can reach for a while: the line between it and the servers is cut, and healed again."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from runs.consumers import START_ANEW
from tests.fleet.machines import PATIENCE, Fleet, Machine, Started
from tests.fleet.network import Silence
from tests.fleet.open_page import OpenPage
from tests.mcp.bindings import wait_for

ANSWERED_WITHIN = 40.0
"""Seconds in which a machine says that it cannot reach the database: 10 for a connection, and a busy test machine."""

pytestmark = pytest.mark.timeout(600)  # the machines start within the first test


@pytest.mark.parametrize("how", list(Silence))
def test_the_other_machine_goes_on_with_a_call_and_what_the_cut_off_one_writes_late_is_refused(
    fleet: Fleet, tmp_path: Path, how: Silence
) -> None:
    until = tmp_path / "until"
    with fleet.b.worker_frozen():
        started = fleet.start(fleet.a, "hauls", until=str(until))
        started.is_under_way()
        fleet.network.cut("a", how)

    unknown = started.pause(fleet.b, "outcome")
    fleet.network.heal("a")
    until.touch()

    assert fleet.answer(fleet.b, unknown).status_code == 200
    assert started.ended() == ("completed", None)
    assert fleet.effects("haul began", started.tag) == 2, "once, and once more by permission"
    results = "select count(*) from runs_event where run_id = %s and type = 'tool_call.result'"
    assert fleet.query(results, started.run) == [(1,)]
    assert fleet.a.run("manage.py", "audit", "verify")


@pytest.mark.parametrize("how", list(Silence))
def test_a_decision_is_refused_in_time_while_the_line_is_cut_and_counts_once_when_it_is_sent_again(
    fleet: Fleet, how: Silence
) -> None:
    started = fleet.start(fleet.a, "asks")
    pause = started.pause(fleet.a)
    with fleet.a.page(fleet.a.sign_in()) as page:
        fleet.network.cut("a", how)
        before = time.monotonic()
        refused = fleet.answer(fleet.a, pause)
        took = time.monotonic() - before
        shown = fleet.a.look("/")

        assert (refused.status_code, refused.json()["error"]["error_code"]) == (503, "database_away")
        assert refused.headers["Retry-After"] == "1"
        assert took < ANSWERED_WITHIN
        assert shown.status_code == 503

        heard = len(page.told)
        fleet.network.heal("a")
        for _ in range(2):
            started.until(lambda: accepted(fleet, pause), "the decision to be taken")
        page.shows(lambda: completed(fleet, started), since=heard, type="run", run_id=started.run)
    assert started.ended() == ("completed", None)
    assert fleet.effects("label", started.tag) == 1
    answers = "select count(*) from runs_event where run_id = %s and type = 'question.response'"
    assert fleet.query(answers, started.run) == [(1,)]


@pytest.mark.parametrize("how", list(Silence))
def test_a_machine_that_was_cut_off_works_again_by_itself_and_its_open_pages_hear_again(
    fleet: Fleet, how: Silence
) -> None:
    with fleet.a.page(fleet.a.sign_in()) as page:
        fleet.a.hears(True)
        fleet.network.cut("a", how)
        missed = fleet.start(fleet.b, "asks")
        pause = missed.pause(fleet.b)
        wait_for(
            lambda: may_miss_hints(fleet.a, page), "the machine or its page to notice", patience=PATIENCE
        )
        wait_for(lambda: nothing_holds(fleet), "every connection to count as broken", patience=PATIENCE)
        heard = len(page.told)
        fleet.network.heal("a")

        assert page.until(type="hello", since=heard)["pending_count"] >= 1
        assert START_ANEW in page.closed_with
        assert fleet.answer(fleet.a, pause).status_code == 200
        with fleet.b.worker_frozen():
            heard = len(page.told)
            later = fleet.start(fleet.b, "asks")
            page.shows(lambda: later.pauses(fleet.a), since=heard, type="pause", run_id=later.run)
            assert fleet.answer(fleet.b, later.pause(fleet.b)).status_code == 200
            assert (missed.ended(), later.ended()) == (("completed", None),) * 2


def may_miss_hints(machine: Machine, page: OpenPage) -> bool:
    """Whether the machine has noticed that hints do not get through; or its page was told to connect anew already,
    because a last hint came when nobody could be asked any more whether it may be passed on."""
    return START_ANEW in page.closed_with or not machine.noticed_that_it_hears()


def nothing_holds(fleet: Fleet) -> bool:
    """Whether neither machine A nor PostgreSQL takes a connection between them for whole."""
    here = [fleet.a.namespace.connections(to) for to in (fleet.postgres, fleet.redis)]
    there = "select count(*) from pg_stat_activity where client_addr = %s"
    return here == [0, 0] and fleet.query(there, fleet.a.address) == [(0,)]


def completed(fleet: Fleet, started: Started) -> bool:
    """Whether machine A shows the run as completed."""
    shown = fleet.a.request("GET", f"runs/{started.run}", fleet.key)
    return shown.status_code == 200 and shown.json()["status"] == "completed"


def accepted(fleet: Fleet, pause: dict[str, Any]) -> bool:
    """Whether machine A takes the decision; it may not reach the database yet."""
    answer = fleet.answer(fleet.a, pause)
    assert answer.status_code in (200, 503), answer.text
    return answer.status_code == 200
