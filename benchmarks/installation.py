"""The product as it is used: `manage.py up` on data of its own, and somebody who talks to its HTTP API."""

from __future__ import annotations

import datetime as dt
import json
import os
import sqlite3
import subprocess
import sys
import uuid
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2

from benchmarks.processes import PATIENCE, ROOT, free_port, listening, wait_for


@dataclass(frozen=True)
class Event:
    """Something that the product wrote down, `at` milliseconds since 1970: in the transaction, before its commit."""

    seq: int
    at: float


def own_environment(inherited: Mapping[str, str], data_dir: Path) -> dict[str, str]:
    """An environment in which the product knows `data_dir` and nothing of the caller's own installation."""
    kept = {
        name: value
        for name, value in inherited.items()
        if not name.startswith("M3_") and name not in ("DATABASE_URL", "REDIS_URL", "DJANGO_SETTINGS_MODULE")
    }
    return {**kept, "M3_DATA_DIR": str(data_dir), "M3_LOG_LEVEL": "WARNING"}


class Installation:
    """Prepared data in a folder, and its process while `up()` is entered."""

    def __init__(self, data_dir: Path, **stores: str) -> None:
        """`stores` are variables of the product, such as DATABASE_URL; without any it is SQLite."""
        self.data_dir, self.port, self.pid = data_dir, free_port(), 0
        self.env = own_environment(os.environ, data_dir) | stores
        self.known: dict[str, Any] = self.program("benchmarks.prepare")

    def program(self, module: str, *args: object) -> Any:
        """Run one of our programs on the data to its end; gives the JSON that it prints."""
        command = [sys.executable, "-m", module, *map(str, args)]
        done = subprocess.run(
            command, cwd=ROOT, env=self.env, stdout=subprocess.PIPE, timeout=PATIENCE * 3, check=True
        )
        return json.loads(done.stdout)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @contextmanager
    def up(self) -> Iterator[Api]:
        """Start it; gives a signed-in caller of its API. May be entered again on the same data."""
        args = ["manage.py", "up", "--port", str(self.port)]
        with (
            listening(args, self.port, self.data_dir / "log", self.env) as process,
            httpx2.Client(base_url=self.url, timeout=PATIENCE) as client,
        ):
            self.pid = process.pid
            yield Api(self, client, pid=process.pid)

    def rows(self, query: str, *params: Any) -> list[tuple[Any, ...]]:
        """Look into the database as another reader would; nothing of the product's process is involved."""
        with closing(self.reader()) as reader:
            return reader.execute(query, params).fetchall()

    def reader(self) -> sqlite3.Connection:
        address = f"file:{self.data_dir / 'm3web.sqlite3'}?mode=ro"
        return sqlite3.connect(address, uri=True, isolation_level=None)


class Api:
    """A person's session on the JSON API, over one connection that stays open."""

    def __init__(self, installation: Installation, client: httpx2.Client, *, pid: int) -> None:
        """`pid` is the process at the other end."""
        self.installation, self.client, self.pid = installation, client, pid
        known = installation.known
        client.get("/login").raise_for_status()
        login = {
            "username": known["username"],
            "password": known["password"],
            "csrfmiddlewaretoken": client.cookies["csrftoken"],
        }
        client.post("/login", data=login)
        if "sessionid" not in client.cookies:
            raise RuntimeError("the login of the prepared installation was refused")
        client.headers["X-CSRFToken"] = client.cookies["csrftoken"]

    @property
    def session(self) -> str:
        """The value of the session cookie, for a browser that is to be the same person."""
        return str(self.client.cookies["sessionid"])

    def start(self, agent: str) -> int:
        """Start a run of one of the prepared agents; gives its id."""
        body = {
            "agent_id": self.installation.known["agents"][agent],
            "message": "Go on.",
            "human_in_the_loop": True,
        }
        return int(self._send("POST", "runs/", body)["id"])

    def pause_of(self, run: int) -> str:
        """The id of the pause that the run waits in, once it is there."""
        found = wait_for(lambda: self._send("GET", f"rounds/?run={run}")["data"], f"run {run} to pause")
        return str(found[0]["id"])

    def answer(self, pause: str) -> None:
        """Choose the first option of the agent's question."""
        responses = {"q0": {"action": "accept", "content": {"selected": [0]}}}
        body = {"responses": responses, "idempotency_key": uuid.uuid4().hex}
        self._send("POST", f"rounds/{pause}/respond", body)

    def wait_until_ended(self, run: int) -> None:
        wait_for(lambda: self._send("GET", f"runs/{run}")["status"] == "completed", f"run {run} to end")

    def recorded(self, run: int) -> dict[str, Event]:
        """The events of a run by type; no type comes twice in a run of these agents."""
        events = self._send("GET", f"runs/{run}/events?limit=100")["data"]
        return {event["type"]: Event(event["seq"], _milliseconds(event["at"])) for event in events}

    def _send(self, method: str, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        response = self.client.request(method, f"/api/v2/{path}", json=body)
        response.raise_for_status()
        answer: dict[str, Any] = response.json()
        return answer


def _milliseconds(at: str) -> float:
    return dt.datetime.fromisoformat(at).timestamp() * 1000
