"""Two `manage.py up` on one PostgreSQL and one Redis: either serves every page, drives every run, and hears of both."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx2
import psycopg
import pytest

from tests.mcp.bindings import ROOT, wait_for
from tests.push.line import Line
from tests.requirements import new_postgres_database, postgres_url, redis_url
from tests.services.test_up_command import Up, sign_in

START = 120.0
"""Seconds for two first starts at once on a busy machine; the second one waits for the first one's migrations."""

PASSWORD = "correct-horse-battery"
PEOPLE = f"""
from runs.models import Account, Agent, Role
from tests.people import person
account = Account.objects.create(name="Acme", slug="acme")
alice = person("alice", account, Role.OPERATOR)
alice.set_password({PASSWORD!r})
alice.save()
question = {{"question": "Which?", "header": "Pick", "options": [{{"label": "one"}}, {{"label": "two"}}]}}
Agent.objects.create(account=account, name="asks", definition={{"steps": [
    {{"ask": {{"questions": [question]}}, "as": "a"}}, {{"finish": "asked"}}]}})
Agent.objects.create(account=account, name="sleeps", definition={{"steps": [{{"sleep": 1}}, {{"finish": "rested"}}]}})
"""


@dataclass
class Pair:
    """Both processes, and the database that they share."""

    one: Up
    two: Up
    database: str
    environment: dict[str, str]

    def query(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        with psycopg.connect(self.database) as connection:
            return connection.execute(sql, values).fetchall()

    def agent(self, name: str) -> int:
        return int(self.query("select id from runs_agent where name = %s", name)[0][0])


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    """Started at the same moment on an empty database, which both of them would bring up to date."""
    tmp_path = tmp_path_factory.mktemp("pair")
    with new_postgres_database() as url:
        yield from started(url, tmp_path)


def started(url: str, tmp_path: Path) -> Iterator[Pair]:
    environment = {
        "DATABASE_URL": url,
        "REDIS_URL": redis_url(),
        "M3_SECRET_KEY": "the same for both processes" * 2,
        "M3_ENCRYPTION_SALT": "the same salt for both of them" * 2,
        "M3_LEASE_SECONDS": "3",
        "M3_SWEEP_SECONDS": "0.5",
    }
    with ExitStack() as stack:
        both = []
        for name in ("one", "two"):
            (tmp_path / name).mkdir()
            both.append(Up(tmp_path / name, **environment))
            stack.callback(both[-1].kill)
        for up in both:
            up.ready(START)
        pair = Pair(both[0], both[1], url, environment)
        make_people(pair, tmp_path)
        yield pair


def make_people(pair: Pair, tmp_path: Path) -> None:
    """Alice, an agent that asks, and one that sleeps."""
    environment = {**pair.environment, "M3_DATA_DIR": str(tmp_path / "one"), "PATH": "/usr/bin:/bin"}
    command = [sys.executable, "manage.py", "shell", "--no-imports", "-c", PEOPLE]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


class Page:
    """Alice at one of the processes."""

    def __init__(self, up: Up) -> None:
        self.up, self.client = up, up.client()
        # A test before may have taken the database away, which each of its threads notices by itself.
        wait_for(lambda: sign_in(self.client, "alice", PASSWORD), "alice to sign in")

    def line(self) -> Line:
        return Line(self.up.port, f"sessionid={self.client.cookies['sessionid']}")

    def post(self, path: str, body: dict[str, Any]) -> Any:
        headers = {"X-CSRFToken": str(self.client.cookies["csrftoken"])}
        answer: httpx2.Response = self.client.post(path, json=body, headers=headers)
        assert answer.status_code in (200, 201), answer.text
        return answer.json()

    def start(self, agent: int) -> int:
        body = {"agent_id": agent, "message": "go", "permission_mode": "approval"}
        return int(self.post("/api/v2/runs/", body)["id"])

    def answer(self, round_id: str, responses: dict[str, Any]) -> Any:
        body = {"responses": responses, "idempotency_key": f"key of {round_id}"}
        return self.post(f"/api/v2/rounds/{round_id}/respond", body)


def test_what_happens_in_one_process_is_pushed_to_the_pages_of_the_other(pair: Pair) -> None:
    here, there = Page(pair.one), Page(pair.two)
    with here.line() as ours, there.line() as theirs:
        assert [line.read()["type"] for line in (ours, theirs)] == ["hello", "hello"]

        run = here.start(pair.agent("asks"))
        opened = [line.until(type="pause", run_id=run, status="pending") for line in (ours, theirs)]
        assert opened[0] == opened[1]
        choice = {"q0": {"action": "accept", "content": {"selected": [1]}}}
        there.answer(opened[0]["pause_id"], choice)

        for line in (ours, theirs):
            line.until(type="run", run_id=run, status="finished")


def test_a_database_server_that_was_away_ends_nothing(pair: Pair) -> None:
    here = Page(pair.one)
    name = urlsplit(pair.database).path[1:]
    with psycopg.connect(postgres_url(), autocommit=True) as admin:
        admin.execute(f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS false')
        admin.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", [name])
        wait_for(lambda: "does not answer" in pair.one.text() + pair.two.text(), "a worker to miss it")
        assert here.client.get("/runs").status_code == 503
        admin.execute(f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS true')
    wait_for(lambda: here.client.get("/runs").status_code == 200, "the pages to find it again")

    run = here.start(pair.agent("sleeps"))
    ended = "select outcome from runs_run where id = %s and status = 'finished'"
    assert wait_for(lambda: pair.query(ended, run), "the worker to go on") == [("completed",)]


def test_a_run_of_a_process_that_was_killed_goes_on_in_the_other(pair: Pair) -> None:
    here = Page(pair.one)
    run = here.start(pair.agent("sleeps"))
    driven = "select 1 from runs_step where run_id = %s"
    wait_for(lambda: pair.query(driven, run), "the run to be driven")

    pair.one.kill()

    ended = "select outcome, output from runs_run where id = %s and status = 'finished'"
    assert wait_for(lambda: pair.query(ended, run), "the other process to go on") == [("completed", "rested")]
    assert pair.two.interrupt() == 0
