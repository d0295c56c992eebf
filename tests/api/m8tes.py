"""The m8tes SDK, unmodified and in an environment of its own, in front of a live demo installation."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2

from tests.api.live import ASK, PATIENCE, START
from tests.mcp.bindings import ROOT, wait_for
from tests.requirements import PEERS, own_database, peer_python
from tests.services.test_up_command import Up, query

SCRIPTS = PEERS / "m8tes_scripts"


class Sdk:
    """Plays scripts of tests/peers/m8tes_scripts with a client of the SDK."""

    def __init__(self, up: Up, environment: dict[str, str]) -> None:
        self.up, self.environment, self.python = up, environment, peer_python("m8tes")
        self.base_url = f"http://127.0.0.1:{up.port}/api/v2"
        self.key = (up.data_dir / "demo_api_key").read_text().strip()

    def play(self, script: str, *, with_key: str | None = None, **arguments: Any) -> Any:
        """What the function `script`, as `module.function`, returns for these arguments."""
        module, _, function = script.partition(".")
        command = [str(SCRIPTS / "play.py"), module, function, json.dumps(arguments)]
        return json.loads(self.run(command, with_key).splitlines()[-1])

    def run(self, command: list[str], key: str | None = None) -> str:
        """What the SDK's Python prints for a program; it reads address and key as the SDK does."""
        environment = {
            "PATH": os.environ["PATH"],
            "M8TES_BASE_URL": self.base_url,
            "M8TES_API_KEY": key or self.key,
        }
        done = subprocess.run(
            [self.python, *command],
            cwd=self.up.data_dir,
            env=environment,
            capture_output=True,
            text=True,
            timeout=START,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def reading_key(self) -> str:
        """A new key that only reads, made on the host."""
        command = [sys.executable, "manage.py", "apikey", "create", "reader", "--role", "viewer"]
        ours = {"PATH": os.environ["PATH"], "M3_DATA_DIR": str(self.up.data_dir)}
        done = subprocess.run(
            command,
            cwd=ROOT,
            env={**self.environment, **ours},
            capture_output=True,
            text=True,
            timeout=START,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def http(self) -> httpx2.Client:
        """The same API without the SDK: for what the SDK has no call for, and to look at what it left behind."""
        return httpx2.Client(
            base_url=f"{self.base_url}/", headers={"Authorization": f"Bearer {self.key}"}, timeout=PATIENCE
        )

    def get(self, path: str, **query: Any) -> Any:
        with self.http() as client:
            answer = client.get(path, params=query)
            assert answer.status_code == 200, answer.text
            return answer.json()

    def post(self, path: str, body: Any) -> Any:
        with self.http() as client:
            answer = client.post(path, json=body)
            assert answer.status_code in (200, 201), answer.text
            return answer.json()

    def agent(self, name: str, *servers: str, mode: str = "approval", **definition: Any) -> int:
        """A new agent that plays this, as an embedder makes one."""
        body = {
            "name": name,
            "servers": servers,
            "default_permission_mode": mode,
            "definition": definition,
        }
        return int(self.post("agents/", body)["id"])

    def start(self, agent_id: int, message: str = "go", **more: Any) -> int:
        body = {"agent_id": agent_id, "message": message, "human_in_the_loop": True, "stream": False, **more}
        return int(self.post("runs/", body)["id"])

    def parked(self, agent_id: int, message: str = "go", **more: Any) -> int:
        """A new run, once it waits for a person."""
        run_id = self.start(agent_id, message, **more)
        self.awaits(run_id, "awaiting_approval")
        return run_id

    def next_run_is(self, run_id: int) -> None:
        """Let the next run have this number, in the product's own database."""
        if url := self.environment.get("DATABASE_URL"):
            import psycopg

            with psycopg.connect(url) as postgres:
                postgres.execute("SELECT setval(pg_get_serial_sequence('runs_run', 'id'), %s)", [run_id - 1])
        else:
            query(self.up.data_dir, "update sqlite_sequence set seq = ? where name = 'runs_run'", run_id - 1)

    def awaits(self, run_id: int, status: str) -> None:
        wait_for(lambda: self.get(f"runs/{run_id}")["status"] == status, f"run {run_id} to be {status}")


@contextlib.contextmanager
def demo(folder: Path, **more: str) -> Iterator[Sdk]:
    peer_python("m8tes")  # skips before anything is started
    with own_database() as database:
        environment = {"M3_DEMO": "1", **database, **more}
        up = Up(folder, **environment)
        try:
            up.ready(START)
            yield Sdk(up, environment)
        finally:
            up.kill()


MAIL = {"call": "desk:send_email", "args": {"to": "a@northwind.example", "subject": "Hi", "body": "…"}}


def usual_agents(sdk: Sdk) -> dict[str, int]:
    """Agents by what they do; the one that ships is the demo's."""
    return {
        "mails": sdk.agent("Mails", "desk", steps=[{**MAIL, "as": "m"}, {"finish": "{{ m.status }}"}]),
        "asks": sdk.agent("Asks", steps=[ASK, {"finish": 'For {{ a.answers."Which segment?" }}.'}]),
        "talks": sdk.agent(
            "Talks", mode="autonomous", steps=[{"say": "Hällo\u2028there."}, {"finish": "Bye."}]
        ),
        "fails": sdk.agent("Fails", mode="autonomous", steps=[{"fail": "The printer is on fire."}]),
        "ships": 2,
    }


def ended(sdk: Sdk, agents: dict[str, int]) -> int:
    """A run that is over."""
    run = sdk.start(agents["talks"])
    sdk.awaits(run, "completed")
    return run
