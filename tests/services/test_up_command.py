"""`manage.py up` as a process of its own: how it starts, what it refuses, how it stops."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import sqlite3
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest
from django.core.management.base import CommandError

from m3web.preparing import interruptible
from m3web.serving import check_port, endpoint
from tests.mcp.bindings import PATIENCE, ROOT, free_port, listens, wait_for

STOPPED_WITHIN = 10.0
"""Seconds from Ctrl-C to the end; what is usual is below one."""

QUIET = {"M3_LOG_LEVEL": "WARNING", "M3_KEEPER_ORPHAN_SECONDS": "120"}
"""Say little, and leave no process behind for longer than these tests."""


class Up:
    """One `manage.py up` on a data folder."""

    def __init__(self, data_dir: Path, *args: str, port: int | None = None, **env: str) -> None:
        self.data_dir, self.port = data_dir, port or free_port()
        self.output = data_dir / f"output-{self.port}"
        ours = ("M3_", "DATABASE_", "REDIS_")
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
        with self.output.open("wb") as file:
            self.process = subprocess.Popen(
                [sys.executable, "manage.py", "up", "--port", str(self.port), *args],
                cwd=ROOT,
                env={**inherited, "M3_DATA_DIR": str(data_dir), **QUIET, **env},
                stdout=file,
                stderr=subprocess.STDOUT,
            )

    def text(self) -> str:
        return self.output.read_text()

    def ready(self, patience: float = PATIENCE) -> Up:
        def up_or_over() -> bool:
            return listens(self.port) or self.process.poll() is not None

        wait_for(up_or_over, "the product to listen", patience=patience)
        assert self.process.poll() is None, self.text()
        return self

    def ended(self) -> int:
        return self.process.wait(PATIENCE)

    def interrupt(self) -> int:
        """End it as Ctrl-C does; gives its exit code."""
        self.process.send_signal(signal.SIGINT)
        return self.ended()

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def client(self) -> httpx2.Client:
        return httpx2.Client(base_url=f"http://127.0.0.1:{self.port}", timeout=20)


def sign_in(client: httpx2.Client, name: str, password: str) -> bool:
    page = client.get("/login").text
    (token,) = re.findall(r'name="csrfmiddlewaretoken" value="(\w+)"', page)[:1]
    form = {"username": name, "password": password, "csrfmiddlewaretoken": token}
    return client.post("/login", data=form).status_code == 302


def children(pid: int) -> dict[int, str]:
    """The processes below `pid`, with their command lines."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            parents[int(entry.name)] = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
        except OSError:
            continue  # it ended while we looked
    below = {pid}
    while found := {child for child, parent in parents.items() if parent in below} - below:
        below |= found
    return {child: command_of(child) for child in below - {pid}}


def cpu_seconds(pid: int) -> float:
    """What a process has used of the CPU so far, its children not counted."""
    user, system = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def command_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")
    except OSError:
        return ""


@dataclass
class Story:
    """A first start, a Ctrl-C while a server's session is open, and a second start that goes on running."""

    first_output: str
    logins: dict[str, str]
    session: dict[int, str]
    exit_code: int
    seconds_to_stop: float
    first_text_at_end: str
    work_of_first_start: float
    work_of_second_start: float
    """Seconds of CPU until it listened: unlike the time on the clock, the same on a busy machine."""
    up: Up


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("up")


@pytest.fixture(scope="module")
def story(data_dir: Path) -> Iterator[Story]:
    with ExitStack() as stack:
        first = Up(data_dir, M3_DEMO="1")
        stack.callback(first.kill)
        first.ready()
        work_of_first = cpu_seconds(first.process.pid)
        wait_for(lambda: "Stop with Ctrl-C" in first.text(), "the greeting")
        greeting = first.text()
        logins = json.loads((data_dir / "demo_logins.json").read_text())
        session = hold_a_session(first, logins["alice"])
        before = time.monotonic()
        code = first.interrupt()
        stopped = time.monotonic()
        second = Up(data_dir, M3_DEMO="1")
        stack.callback(second.kill)
        second.ready()
        yield Story(
            first_output=greeting,
            logins=logins,
            session=session,
            exit_code=code,
            seconds_to_stop=stopped - before,
            first_text_at_end=first.text(),
            work_of_first_start=work_of_first,
            work_of_second_start=cpu_seconds(second.process.pid),
            up=second,
        )


def hold_a_session(up: Up, password: str) -> dict[int, str]:
    """Start a refund, whose server asks in the middle of its call, and return its process once it waits."""
    with up.client() as client:
        assert sign_in(client, "alice", password)
        body = {
            "agent_id": agent_named(up.data_dir, "Customer success"),
            "message": "refund the lamp",
            "permission_mode": "autonomous",
            "human_in_the_loop": True,
        }
        answer = client.post(
            "/api/v2/runs/", json=body, headers={"X-CSRFToken": str(client.cookies["csrftoken"])}
        )
        assert answer.status_code == 201, answer.text
    held = "select count(*) from runs_round where held and status = 'pending'"
    wait_for(lambda: query(up.data_dir, held)[0][0], "a held session")
    return children(up.process.pid)


def agent_named(data_dir: Path, name: str) -> int:
    return int(query(data_dir, "select id from runs_agent where name = ?", name)[0][0])


def query(data_dir: Path, sql: str, *values: Any) -> list[tuple[Any, ...]]:
    connection = sqlite3.connect(data_dir / "m3web.sqlite3", timeout=20)
    try:
        return connection.execute(sql, values).fetchall()
    finally:
        connection.commit()
        connection.close()


def test_the_first_start_says_where_it_is_and_who_can_sign_in(story: Story) -> None:
    assert "M3 Web is up: http://127.0.0.1:" in story.first_output
    for name, password in story.logins.items():
        assert re.search(rf"{name} +(operator|admin|viewer) +{re.escape(password)}\n", story.first_output)


def test_only_its_owner_can_read_the_logins_and_the_secrets(story: Story, data_dir: Path) -> None:
    for name in ("demo_logins.json", "secret_key", "encryption_salt", "shipping_state_key"):
        assert stat.S_IMODE((data_dir / name).stat().st_mode) == 0o600


def test_ctrl_c_ends_it_cleanly_within_seconds(story: Story) -> None:
    assert (story.exit_code, story.first_text_at_end) == (0, story.first_output)
    assert story.seconds_to_stop < STOPPED_WITHIN


def test_ctrl_c_leaves_the_session_in_which_a_person_is_asked_and_no_other_process(
    story: Story, data_dir: Path
) -> None:
    kept = ("runs.keeper", "m3web.demo_servers.desk")
    alive = {pid: command for pid, command in story.session.items() if command and command_of(pid) == command}
    assert sorted(word for word in kept for command in alive.values() if word in command) == sorted(kept)
    assert len(alive) == 2
    ((status, held),) = query(data_dir, "select status, held from runs_round where held")
    assert (status, bool(held)) == ("pending", True), "the second start went on with it"


def test_a_second_start_is_quicker_and_keeps_the_logins(story: Story, data_dir: Path) -> None:
    assert story.work_of_second_start < story.work_of_first_start * 0.8
    assert json.loads((data_dir / "demo_logins.json").read_text()) == story.logins
    with story.up.client() as client:
        assert sign_in(client, "bob", story.logins["bob"])


def test_a_port_in_use_is_one_clear_line(story: Story, tmp_path: Path) -> None:
    refused = Up(tmp_path, port=story.up.port)

    assert refused.ended() == 1
    said = re.fullmatch(
        rf"CommandError: Cannot listen on 127\.0\.0\.1:{story.up.port} \(Address already in use\)\. "
        r"Choose another port: make up PORT=(\d+)\n",
        refused.text(),
    )
    assert said, refused.text()


def test_a_second_instance_on_the_same_data_is_refused(story: Story, data_dir: Path) -> None:
    refused = Up(data_dir, M3_DEMO="1")

    assert refused.ended() == 1
    assert refused.text() == (
        "CommandError: Another process already works on m3web.sqlite3. Stop it first, or set M3_DATA_DIR.\n"
    )


def test_demo_mode_listens_on_loopback_only(tmp_path: Path) -> None:
    refused = Up(tmp_path, "--host", "0.0.0.0", M3_DEMO="1")

    assert refused.ended() == 1
    assert "Demo mode listens on loopback only" in refused.text()
    assert not (tmp_path / "demo_logins.json").exists()


def test_ctrl_c_while_it_prepares_is_no_traceback(tmp_path: Path) -> None:
    up = Up(tmp_path, M3_DEMO="1")
    wait_for((tmp_path / "m3web.sqlite3.lock").exists, "the database to be owned")

    assert up.interrupt() == 130
    assert up.text() == "CommandError: Stopped before it was up.\n"


def test_the_port_that_is_proposed_is_free_and_named_as_the_command_takes_it() -> None:
    with ExitStack() as stack:
        first, second = (stack.enter_context(socket.socket()) for _ in range(2))
        port = two_in_a_row(first, second)
        with pytest.raises(CommandError) as refused:
            check_port("127.0.0.1", port, "--port {}")
        proposed = re.search(r"Choose another port: --port (\d+)$", str(refused.value))
        assert proposed
        assert int(proposed[1]) not in (port, port + 1)
        check_port("127.0.0.1", int(proposed[1]), "--port {}")


def two_in_a_row(first: socket.socket, second: socket.socket) -> int:
    """Take two ports next to each other; gives the lower one."""
    for port in range(20_000, 30_000, 2):
        try:
            first.bind(("127.0.0.1", port))
        except OSError:
            continue
        with suppress(OSError):
            second.bind(("127.0.0.1", port + 1))
        first.listen()
        return port
    raise AssertionError("no port is free")


def test_where_no_port_after_it_is_free_the_system_chooses_one() -> None:
    with socket.socket() as last:
        with suppress(OSError):  # then somebody else has it, which is as well
            last.bind(("127.0.0.1", 65_535))
        with pytest.raises(CommandError, match=r"--port (?!65535)\d+$"):
            check_port("127.0.0.1", 65_535, "--port {}")


@pytest.mark.parametrize("port", [0, -1, 65_536])
def test_a_number_that_is_no_port_is_refused_in_words(port: int) -> None:
    with pytest.raises(CommandError, match=f"{port} is no port. Choose one from 1 to 65535"):
        check_port("127.0.0.1", port, "--port {}")


def test_an_ipv6_address_is_one_word_of_the_endpoint() -> None:
    assert endpoint("::1", 8000) == r"tcp:8000:interface=\:\:1"
    assert endpoint("127.0.0.1", 8000) == "tcp:8000:interface=127.0.0.1"


def test_a_request_body_of_unknown_length_is_bounded(story: Story) -> None:
    def endless(pieces: int) -> Iterator[bytes]:
        for _ in range(pieces):
            yield b"x" * 100_000

    with story.up.client() as client:
        assert client.post("/api/v2/runs/", content=endless(3)).status_code == 401
        assert client.post("/api/v2/runs/", content=endless(30)).status_code == 413
        with pytest.raises(httpx2.TransportError):
            client.post("/api/v2/runs/", content=endless(400))


def test_a_chunked_body_within_the_limit_is_read_like_any_other(story: Story) -> None:
    with story.up.client() as client:
        assert sign_in(client, "alice", story.logins["alice"])
        headers = {"X-CSRFToken": str(client.cookies["csrftoken"]), "Content-Type": "application/json"}
        parts = iter([b'{"agent_id": 1, ', b'"message": ""}'])
        answer = client.post("/api/v2/runs/", content=parts, headers=headers)

    assert (answer.status_code, answer.json()["error"]["error_code"]) == (422, "invalid_argument")
    assert "A message has between 1" in answer.json()["error"]["message"]


def test_a_body_that_announces_too_much_is_refused_in_words(story: Story) -> None:
    with story.up.client() as client:
        page = client.post("/login", content=b"x" * 1_500_000)

    assert page.status_code == 413
    assert "The request is larger than 1,000,000 bytes." in page.text


@pytest.fixture
def copy(story: Story, data_dir: Path, tmp_path: Path) -> Path:
    """The demo's data as they are now, for a start without demo mode."""
    source, target = (sqlite3.connect(folder / "m3web.sqlite3") for folder in (data_dir, tmp_path))
    source.backup(target)
    source.close()
    target.close()
    for name in ("demo_logins.json", "secret_key", "encryption_salt"):
        (tmp_path / name).write_bytes((data_dir / name).read_bytes())
    return tmp_path


def test_without_demo_mode_nobody_can_use_a_demo_login_and_a_lost_worker_ends_it_with_an_error(
    story: Story, copy: Path
) -> None:
    up = Up(copy, "--host", "localhost", M3_SWEEP_SECONDS="0.1").ready()
    try:
        wait_for(lambda: "Stop with Ctrl-C" in up.text(), "the greeting")
        greeting = up.text()
        with up.client() as client:
            signed_in = sign_in(client, "ada", story.logins["ada"])
        query(copy, "alter table runs_run rename to gone")
        code = up.ended()
    finally:
        up.kill()

    assert f"M3 Web is up: http://localhost:{up.port}/" in greeting
    assert (signed_in, "logins" in greeting) == (False, False)
    assert code == 1
    assert "CommandError: The worker ended: OperationalError" in up.text()


def test_ctrl_c_counts_even_where_its_exception_is_swallowed() -> None:
    def swallowed() -> None:
        with interruptible(), suppress(BaseException):  # as a finaliser in some library might
            signal.raise_signal(signal.SIGINT)

    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(CommandError, match="Stopped before it was up"):
        swallowed()
    assert signal.getsignal(signal.SIGINT) is before
