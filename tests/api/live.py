"""The product in a process of its own with agents that tests wrote, and readers of its streams."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

import httpx2

from tests.mcp.bindings import ROOT
from tests.requirements import own_database
from tests.services.test_up_command import Up

PATIENCE = 30.0
"""Seconds in which anything that is awaited here must come, on a busy machine."""

START = 120.0
"""Seconds of a first start on a busy machine."""

QUESTION = {
    "question": "Which segment?",
    "header": "Segment",
    "multiSelect": False,
    "options": [{"label": "enterprise"}, {"label": "mid-market"}],
}
ASK = {"ask": {"questions": [QUESTION]}, "as": "a"}

_SETUP = """
import json
from runs import keys
from runs.models import Account, Agent, Role
agents = json.loads({agents!r})
account = Account.objects.create(name="Acme", slug="acme")
for name, definition in agents.items():
    Agent.objects.create(account=account, name=name, definition=definition)
print(keys.issue(account, "tests", role=Role.ADMIN).secret)
other = Account.objects.create(name="Globex", slug="globex")
print(keys.issue(other, "tests", role=Role.ADMIN).secret)
"""


class Live:
    """One installation with an account, an admin's key, and agents by name."""

    def __init__(self, up: Up, environment: dict[str, str], agents: dict[str, Any]) -> None:
        self.up = up
        setup = _SETUP.format(agents=json.dumps(agents))
        self.key, self.other_key = _shell(up, environment, setup).split()[-2:]

    def client(self, key: str | None = None) -> httpx2.Client:
        return httpx2.Client(
            base_url=f"http://127.0.0.1:{self.up.port}/api/v2/",
            headers={"Authorization": f"Bearer {key or self.key}"},
            timeout=PATIENCE,
        )

    def agents(self) -> dict[str, int]:
        with self.client() as client:
            return {agent["name"]: agent["id"] for agent in client.get("agents/").json()["data"]}

    def start(self, agent: str, **more: Any) -> int:
        """A run of the agent with this name, people switched on."""
        body = {"agent_id": self.agents()[agent], "message": "go", "human_in_the_loop": True, "stream": False}
        with self.client() as client:
            answer = client.post("runs/", json={**body, **more})
            assert answer.status_code == 201, answer.text
            return int(answer.json()["id"])

    def read(self, run: int, key: str | None = None) -> Reader:
        return Reader(self.client(key), "GET", f"runs/{run}/stream")

    def answer(self, run: int, text: str = "enterprise") -> None:
        with self.client() as client:
            (waiting,) = client.get("rounds/", params={"run": run}).json()["data"]
            chosen = [option["label"] for option in QUESTION["options"]].index(text)  # type: ignore[index, attr-defined]
            body = {"responses": {"q0": {"action": "accept", "content": {"selected": [chosen]}}}}
            answer = client.post(
                f"rounds/{waiting['id']}/respond", json={**body, "idempotency_key": waiting["id"]}
            )
            assert answer.status_code == 200, answer.text


class Reader:
    """One open stream. Use as a context manager, or the connection stays open."""

    def __init__(self, client: httpx2.Client, method: str, path: str, **more: Any) -> None:
        self.client = client
        self._stack = contextlib.ExitStack()
        self.response = self._stack.enter_context(client.stream(method, path, **more))
        self._lines = self.response.iter_lines()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._stack.close()
        self.client.close()

    def frames(self) -> Iterator[dict[str, Any]]:
        """The rest of the stream."""
        for line in self._lines:
            if line.startswith("data: "):
                yield json.loads(line.removeprefix("data: "))

    def until(self, type_: str) -> list[dict[str, Any]]:
        """The frames up to the first one of this type."""
        seen = []
        for frame in self.frames():
            seen.append(frame)
            if frame["type"] == type_:
                return seen
        raise AssertionError(f"the stream ended without {type_}: {seen}")

    def comment(self) -> str:
        """The next comment."""
        return next(line for line in self._lines if line.startswith(":"))


def types(frames: list[dict[str, Any]]) -> list[str]:
    return [frame["type"] for frame in frames]


@contextlib.contextmanager
def live(folder: Path, agents: dict[str, Any], **more: str) -> Iterator[Live]:
    with own_database() as database:
        environment = {**database, **more}
        up = Up(folder, **environment)
        try:
            up.ready(START)
            yield Live(up, environment, agents)
        finally:
            up.kill()


def _shell(up: Up, environment: dict[str, str], code: str) -> str:
    command = [sys.executable, "manage.py", "shell", "--no-imports", "-c", code]
    variables = {"M3_DATA_DIR": str(up.data_dir), "PATH": "/usr/bin:/bin", **environment}
    done = subprocess.run(command, cwd=ROOT, env=variables, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout
