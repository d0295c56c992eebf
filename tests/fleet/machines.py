"""Two machines with a web server and a worker each, on one PostgreSQL and one Redis of a third machine."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx2
import psycopg

from tests import stores
from tests.fleet.network import Namespace, Network
from tests.fleet.open_page import OpenPage
from tests.fleet.prepare import PASSWORD
from tests.mcp.bindings import ROOT, effects_in, listens, wait_for
from tests.push.line import Line
from tests.requirements import postgres_binaries, redis_binary
from tests.services.test_up_command import sign_in

PATIENCE = 120.0
"""Seconds that anything may take on a busy machine."""

PORT = 8000
LEASE, SILENCE, HOST_GONE = 4, 3, 12
"""Seconds: short, so that the tests are."""

DEAF, HEARS = "hints do not get through", "every page connects anew"
"""What a web server logs when it no longer hears hints, and when it does again."""

SETTINGS = {
    "M3_SECRET_KEY": "the same for every process" * 2,
    "M3_ENCRYPTION_SALT": "the same salt for all of them" * 2,
    "M3_LEASE_SECONDS": str(LEASE),
    "M3_SWEEP_SECONDS": "0.5",
    "M3_SILENCE_SECONDS": str(SILENCE),
    "M3_HOST_GONE_SECONDS": str(HOST_GONE),
    "M3_KEEPER_ORPHAN_SECONDS": "600",
    "M3_DATABASE_CONNECTIONS": "8",
}


class Machine:
    """One of the two: its network, its data folder, its processes."""

    def __init__(self, name: str, network: Network, folder: Path, environment: dict[str, str]) -> None:
        self.name = name
        self.namespace: Namespace = network.machines[name]
        (self.address,) = network.addresses[name]
        self.folder = folder / name
        self.folder.mkdir()
        ours = ("M3_", "DATABASE_", "REDIS_")
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
        self.environment = {**inherited, **environment, "M3_DATA_DIR": str(self.folder)}
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self.logs: list[Path] = []

    def run(self, *words: str) -> str:
        """Run a Python program to its end; gives what it prints."""
        with self.namespace.inside():
            done = subprocess.run(
                [sys.executable, *words],
                cwd=ROOT,
                env=self.environment,
                capture_output=True,
                text=True,
                check=False,
            )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def start(self) -> None:
        """Start what does not run, and what is frozen goes on."""
        for name, words in (("web", ["--host", self.address, "--port", str(PORT)]), ("worker", [])):
            process = self.processes.get(name)
            if process is not None and process.poll() is None:
                process.send_signal(signal.SIGCONT)
                continue
            self.logs.append(self.folder / f"{name}-{len(self.logs)}.log")
            command = [*stores.dying_with_us(), sys.executable, "manage.py", name, *words]
            with self.namespace.inside(), self.logs[-1].open("wb") as log:
                self.processes[name] = subprocess.Popen(
                    command, cwd=ROOT, env=self.environment, stdout=log, stderr=subprocess.STDOUT
                )

    def ready(self) -> None:
        """Wait until pages are served and runs are driven."""
        wait_for(self._is_up, f"machine {self.name} to be up", patience=PATIENCE)

    def _is_up(self) -> bool:
        for name, process in self.processes.items():
            assert process.poll() is None, f"{name} of {self.name} ended: {self.story()}"
        with self.namespace.inside():
            return listens(PORT, self.address) and "drives up to" in self._log_of("worker")

    def _log_of(self, name: str) -> str:
        return [log for log in self.logs if log.name.startswith(name)][-1].read_text()

    def kill(self) -> None:
        """`kill -9` of the web server and the worker. What they left behind, such as keepers of sessions, stays."""
        for process in self.processes.values():
            process.kill()
            process.wait()

    def power_off(self) -> None:
        """End everything on this machine at once."""
        self.namespace.power_off()
        for process in self.processes.values():
            process.wait()

    @contextlib.contextmanager
    def worker_frozen(self) -> Iterator[None]:
        """Its worker stands still meanwhile, so that others drive what is started."""
        worker = self.processes["worker"]
        worker.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            worker.send_signal(signal.SIGCONT)

    def story(self) -> str:
        """The ends of its logs, for a failing test's message."""
        return "\n".join(
            f"--- {log.parent.name} {log.name}\n{log.read_text()[-4000:]}" for log in self.logs[-4:]
        )

    # --- people there --------------------------------------------------------------------------------------

    def request(self, method: str, path: str, key: str, **more: Any) -> httpx2.Response:
        """One request to the API of this machine, from a machine beside it."""
        headers = {"Authorization": f"Bearer {key}", **more.pop("headers", {})}
        url = f"http://{self.address}:{PORT}/api/v2/{path}"
        with self.namespace.inside():
            return httpx2.request(method, url, headers=headers, **{"timeout": PATIENCE, **more})

    def look(self, path: str) -> httpx2.Response:
        """One look at a page of this machine, by somebody with a session."""
        with self.namespace.inside():
            return httpx2.get(
                f"http://{self.address}:{PORT}{path}", cookies={"sessionid": "0" * 32}, timeout=PATIENCE
            )

    def hears(self, wanted: bool) -> None:
        """Wait until its web server has noticed that hints get through, or that they do not. A page has to be open."""
        wait_for(
            lambda: self.noticed_that_it_hears() is wanted,
            f"{self.name} to hear: {wanted}",
            patience=PATIENCE,
        )

    def noticed_that_it_hears(self) -> bool:
        """What its web server last noticed of it. It looks only while a page is open."""
        log = self._log_of("web")
        return log.rfind(DEAF) <= log.rfind(HEARS)

    def sign_in(self) -> str:
        """Alice signs in here; gives her cookie."""
        with (
            self.namespace.inside(),
            httpx2.Client(base_url=f"http://{self.address}:{PORT}", timeout=60) as client,
        ):
            assert sign_in(client, "alice", PASSWORD)
            return f"sessionid={client.cookies['sessionid']}"

    def page(self, cookie: str) -> OpenPage:
        """A page that is open here."""

        def connect() -> Line:
            with self.namespace.inside():
                return Line(PORT, cookie, host=self.address, patience=PATIENCE)

        return OpenPage(connect, PATIENCE)


class Fleet:
    """Everything. Use as a context manager."""

    def __init__(self, folder: Path) -> None:
        self.folder, self._stack = folder, ExitStack()

    def __enter__(self) -> Fleet:
        with ExitStack() as stack:
            self.network = stack.enter_context(Network())
            data = self.network.join("data", addresses=2)
            self.postgres, self.redis = self.network.addresses["data"]
            with data.inside():
                server = stores.postgres(postgres_binaries(), address=self.postgres, trusted="10.77.0.0/16")
                self.database = stack.enter_context(server)
                redis = stack.enter_context(stores.redis(redis_binary(), address=self.redis))
            for name in ("a", "b"):
                self.network.join(name)
            environment = self._environment(redis)
            self.a, self.b = (Machine(name, self.network, self.folder, environment) for name in ("a", "b"))
            stack.callback(self._switch_off)
            prepared = json.loads(self.a.run("-m", "tests.fleet.prepare").splitlines()[-1])
            self.key, self.agents = prepared["key"], prepared["agents"]
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def _switch_off(self) -> None:
        for machine in (self.a, self.b):
            machine.power_off()

    def _environment(self, redis: str) -> dict[str, str]:
        def entry(*words: str) -> dict[str, Any]:
            script = str(ROOT / "tests" / "servers" / "parcels.py")
            effects = {"M3_EFFECTS": str(self.folder / "effects")}
            return {"command": sys.executable, "args": [script, *words], "env": effects}

        addresses = (*self.network.addresses["a"], *self.network.addresses["b"])
        return {
            **SETTINGS,
            "DATABASE_URL": self.database,
            "REDIS_URL": redis,
            "M3_ALLOWED_HOSTS": ",".join(addresses),
            "M3_STDIO_SERVERS": json.dumps({"parcels": entry("modern"), "old": entry("legacy")}),
        }

    def make_whole(self) -> None:
        """Every line heals, and everything runs."""
        for machine in (self.a, self.b):
            self.network.heal(machine.name)
            machine.start()
        for machine in (self.a, self.b):
            machine.ready()

    # --- what people do ------------------------------------------------------------------------------------

    def start(self, at: Machine, agent: str, *, mode: str = "autonomous", **metadata: Any) -> Started:
        """Start a run of this agent by the API of one machine."""
        tag = uuid.uuid4().hex[:12]
        body = {"agent_id": self.agents[agent], "message": tag, "permission_mode": mode, "metadata": metadata}
        more = {"human_in_the_loop": True, "stream": False}
        answer = at.request("POST", "runs/", self.key, json={**body, **more})
        assert answer.status_code == 201, answer.text
        return Started(self, int(answer.json()["id"]), tag)

    def answer(self, at: Machine, pause: dict[str, Any], **more: Any) -> httpx2.Response:
        """Agree to a pause by the API of one machine; sent again it is the same answer, under the same key."""
        body = {"responses": agreed(pause), "idempotency_key": f"key of {pause['id']}", **more}
        return at.request("POST", f"rounds/{pause['id']}/respond", self.key, json=body)

    # --- what is true --------------------------------------------------------------------------------------

    def query(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        """Ask the database, from its own machine."""
        data = self.network.machines["data"]
        with data.inside(), psycopg.connect(self.database) as connection:
            return connection.execute(sql, values).fetchall()

    def effects(self, what: str, tag: str) -> int:
        """How often the servers did this, as they counted it."""
        wanted = {"what": what, "tag": tag}
        return sum(wanted.items() <= entry.items() for entry in effects_in(self.folder / "effects"))


class Started:
    """A run, and the tag under which its server counts."""

    def __init__(self, fleet: Fleet, run: int, tag: str) -> None:
        self.fleet, self.run, self.tag = fleet, run, tag

    def pause(self, at: Machine, kind: str | None = None) -> dict[str, Any]:
        """What the run waits for, as one machine tells it, once it does."""

        def look() -> dict[str, Any] | None:
            wanted = [pause for pause in self.pauses(at) if kind in (None, pause["kind"])]
            return self.detail(at, wanted[0]["id"]) if wanted else None

        return self.until(look, f"{kind or 'a pause'} of run {self.run}")  # type: ignore[no-any-return]

    def pauses(self, at: Machine) -> list[dict[str, Any]]:
        """The lines of what the run waits for, as one machine shows them now."""
        query = {"run": self.run, "status": "pending"}
        shown = at.request("GET", "rounds/", self.fleet.key, params=query).json()
        return shown["data"]  # type: ignore[no-any-return]

    def detail(self, at: Machine, pause: str) -> dict[str, Any]:
        shown: dict[str, Any] = at.request("GET", f"rounds/{pause}", self.fleet.key).json()
        return shown

    def is_under_way(self) -> None:
        """Wait until the server is at work for this run."""
        self.until(lambda: self.fleet.effects("haul began", self.tag), "the server to be at work")

    def ended(self) -> tuple[str, str | None]:
        """Outcome and error code, once it has ended."""
        sql = "select outcome, error_code from runs_run where id = %s and status = 'finished'"
        ((outcome, code),) = self.until(lambda: self.fleet.query(sql, self.run), f"the end of run {self.run}")
        return outcome, code or None

    def until(self, look: Any, what: str) -> Any:
        try:
            return wait_for(look, what, patience=PATIENCE)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.story()}") from None

    def story(self) -> str:
        """What happened, for a failing test's message."""
        sql = "select seq, type, payload from runs_event where run_id = %s order by seq"
        lines = [" ".join(map(str, row)) for row in self.fleet.query(sql, self.run)]
        return "\n".join([*lines, self.fleet.a.story(), self.fleet.b.story()])


CONTENT: dict[str, dict[str, Any]] = {
    "approval": {"decision": "allow"},
    "outcome": {"decision": "run_again"},
    "question": {"selected": [0]},
    "elicitation": {"street": "Quay 1", "city": "Bergen"},
}


def agreed(pause: dict[str, Any]) -> dict[str, Any]:
    """Yes to all that a pause asks."""
    content = CONTENT[pause["kind"]]
    return {key: {"action": "accept", "content": content} for key in pause["requests"]}
