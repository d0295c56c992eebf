"""PostgreSQL goes away under a web process and a worker, and comes back: both go on, and pages hear of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from tests.engines.fleet import Fleet
from tests.engines.own_postgres import OwnPostgres
from tests.people import PASSWORD
from tests.push.line import Line
from tests.services.test_up_command import sign_in


@pytest.fixture
def fleet(tmp_path: Path, server: OwnPostgres, playground: str, effects: Path) -> Iterator[Fleet]:
    # No sweep that could hide a queue that stays away.
    settings = {"M3_LEASE_SECONDS": "30", "M3_SWEEP_SECONDS": "100000"}
    fleet = Fleet(tmp_path, "procrastinate", server.url, playground, effects, settings)
    yield fleet
    fleet.stop()


def test_web_and_worker_go_on_when_the_database_server_comes_back(fleet: Fleet, server: OwnPostgres) -> None:
    worker, web = fleet.worker(), fleet.web()
    assert web.port is not None
    office = fleet.office()
    office.ask("people", playground=fleet.playground)
    with httpx2.Client(base_url=f"http://127.0.0.1:{web.port}", timeout=60) as page:
        assert sign_in(page, "alice", PASSWORD)
        with Line(web.port, f"sessionid={page.cookies['sessionid']}", patience=60) as line:
            assert line.read()["type"] == "hello"
            run = office.ask("start", agent="says")
            line.until(type="run", run_id=run, status="finished")  # told by the worker, and there is no Redis
            assert page.get("/readyz").status_code == 200

            server.stop()
            fleet.eventually(lambda: page.get("/readyz").status_code == 503, "the web to miss it")
            assert page.get("/healthz").status_code == 200
            server.start()

            line.until(type="hello")  # hints may have been lost: the page looks anew
            fleet.eventually(lambda: page.get("/readyz").status_code == 200, "the web to be ready")
            run = office.ask("start", agent="says")
            line.until(type="run", run_id=run, status="finished")
    assert (worker.process.poll(), web.process.poll()) == (None, None)
    fleet.eventually(lambda: not fleet.jobs(), "the queue to be worked off")
