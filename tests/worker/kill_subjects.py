"""Every kind of server that a worker may die on, each with a tool that asks once and one that is at work for a while.

They count what they do themselves, in files; server-everything, which nobody here wrote, is made to by a preload.
"""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.mcp.bindings import LEGACY, PATIENCE, ROOT, STATE_KEY, effects_in, free_port, listens, wait_for
from tests.npm_servers.conftest import LOOPBACK
from tests.requirements import node_path, npm_script, peer_python

COUNTING = ROOT / "tests" / "npm_servers" / "counting.cjs"
START_PATIENCE = 60.0
"""Seconds that all of these servers together may take to listen."""

Tool = tuple[str, dict[str, Any]]


@dataclass
class Count:
    """What a server has written into its file since this was made."""

    file: Path
    before: int = 0

    def __post_init__(self) -> None:
        self.before = len(effects_in(self.file))

    def of(self, what: str, tag: str | None = None) -> Callable[[], int]:
        """How often it has done this by now."""
        wanted = {"what": what} if tag is None else {"what": what, "tag": tag}
        return lambda: sum(wanted.items() <= entry.items() for entry in effects_in(self.file)[self.before :])

    def answered(self) -> Callable[[], int]:
        """How many questions were answered. Over HTTP an answer may arrive once more, because nobody can know whether
        the one of a dead worker did; a second answer to the same request means nothing in JSON-RPC."""
        return lambda: len(
            {entry["id"] for entry in effects_in(self.file)[self.before :] if entry["what"] == "answer"}
        )

    def received(self, method: str | None) -> Callable[[], int]:
        """How many messages of a method the raw server took in; None: answers to its questions."""
        return lambda: sum(
            entry["message"].get("method") == method for entry in effects_in(self.file)[self.before :]
        )


def most(*counts: Callable[[], int]) -> Callable[[], int]:
    """The highest of several counts: a call that began twice counts, and so does an answer that came twice."""
    return lambda: max(count() for count in counts)


@dataclass(frozen=True, kw_only=True)
class Subject:
    """One kind of server: its row, its tools, and how often it acted according to itself."""

    name: str
    server: dict[str, Any] = field(default_factory=dict)
    """Fields of its row; none for local tools."""
    asks: Tool
    acted: Callable[[], int]
    """How often `asks` acted on an answer, or began to where a call lasts until its question is answered."""
    works: Tool
    began: Callable[[], int]
    """How often `works` set to work."""
    works_at: dict[str, Any] = field(default_factory=dict)
    """The row of the server that offers `works`, if it is another one."""
    questions: int = 1
    """How many rounds `asks` takes."""


class HttpServers:
    """Servers over HTTP, which outlive workers: each counts in a file of its name, and may be killed and started."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.running: dict[str, subprocess.Popen[bytes]] = {}
        self.ports = {
            name: free_port() for name in ("playground", "no_events", "everything", "tasks", "peer")
        }

    def url(self, name: str) -> str:
        return f"http://127.0.0.1:{self.ports[name]}/mcp"

    def count(self, name: str) -> Count:
        return Count(self.folder / name)

    def start(self, *names: str) -> None:
        """Start these servers at once, and wait until all listen."""
        for name in names:
            command, env = self._command(name)
            env = {**os.environ, **env, "M3_EFFECTS": str(self.folder / name)}
            quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
            self.running[name] = subprocess.Popen(command, cwd=ROOT, env=env, **quiet)
        for name in names:
            wait_for(
                lambda name=name: listens(self.ports[name]), f"{name} to listen", patience=START_PATIENCE
            )

    def kill(self, *names: str) -> None:
        for name in names:
            process = self.running.pop(name)
            process.kill()
            process.wait(PATIENCE)

    def _command(self, name: str) -> tuple[list[str], dict[str, str]]:
        """How to start it, and its environment."""
        port = str(self.ports[name])
        if name == "everything":
            script = npm_script("@modelcontextprotocol/server-everything")
            preloads = ["--require", str(LOOPBACK), "--require", str(COUNTING)]
            return [node_path(), *preloads, script, "streamableHttp"], {"PORT": port}
        if name == "peer":
            return [peer_python("fastmcp_tasks"), str(ROOT / "tests/peers/fastmcp_tasks_server.py"), port], {}
        module = "tasks_server" if name == "tasks" else "playground"
        env = {
            "playground": {"M3_STATE_KEY": STATE_KEY},
            "no_events": {"M3_NO_EVENTS": "1"},
            "tasks": {"M3_TASKS": str(self.folder / "tasks.json")},
        }
        return [sys.executable, "-m", f"tests.servers.{module}", "--http", port], env[name]


@pytest.fixture(scope="module")
def http(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpServers]:
    """The servers over HTTP, none of them started yet."""
    servers = HttpServers(tmp_path_factory.mktemp("http"))
    yield servers
    servers.kill(*list(servers.running))


def stdio_entries(folder: Path) -> dict[str, dict[str, Any]]:
    """What the host's list says of the servers over stdio; each counts in `folder`."""
    tools = folder / "old-tools.json"
    tools.write_text(json.dumps([{"name": "asks_in_turn", "inputSchema": {"type": "object"}}]))
    everything = npm_script("@modelcontextprotocol/server-everything")
    commands = {
        "shipping": [sys.executable, "-m", "m3web.demo_servers.shipping"],
        "playground": [sys.executable, "-m", "tests.servers.playground"],
        "old": [sys.executable, str(ROOT / "tests/servers/raw.py"), "legacy", f"tools={tools}"],
        "everything": [node_path(), "--require", str(COUNTING), everything, "stdio"],
    }
    env = {"M3_SHIPPING_STATE_KEY": STATE_KEY, "M3_STATE_KEY": STATE_KEY}
    return {
        name: {
            "command": command,
            "args": args,
            "cwd": str(ROOT),
            "env": {**env, "M3_EFFECTS": str(folder / f"{name}-stdio")},
        }
        for name, (command, *args) in commands.items()
    }


def subjects(folder: Path, http: HttpServers) -> list[Subject]:
    """All kinds, counting from now on. A file named `until` in `folder` ends the work of those that look for one."""
    until = {"until": str(folder / "until")}
    return [
        *_modern(folder, http, until),
        *_older(folder, http, until),
        *_everything(folder, http),
        *_tasks(http, until),
        *_local(folder, until),
    ]


def _modern(folder: Path, http: HttpServers, until: dict[str, str]) -> list[Subject]:
    shipping, playground = Count(folder / "shipping-stdio"), Count(folder / "playground-stdio")
    over_http = http.count("playground")
    return [
        Subject(
            name="modern stdio",
            server={"transport": "stdio", "entry": "shipping"},
            asks=("book_shipment", {"item": "lamp"}),
            acted=shipping.of("book_shipment"),
            works_at={"transport": "stdio", "entry": "playground"},
            works=("haul", {**until, "tag": "modern"}),
            began=playground.of("haul began"),
        ),
        Subject(
            name="modern http",
            server={"transport": "http", "url": http.url("playground")},
            asks=("sign", {}),
            acted=over_http.of("sign"),
            works=("haul", {**until, "tag": "modern"}),
            began=over_http.of("haul began", "modern"),
        ),
    ]


def _older(folder: Path, http: HttpServers, until: dict[str, str]) -> list[Subject]:
    kept, there, forgetful = Count(folder / "old-stdio"), http.count("playground"), http.count("no_events")
    over_http = Subject(
        name="legacy http",
        server={"transport": "http", "url": http.url("playground"), "negotiated": LEGACY},
        asks=("ask_in_turn", {"times": 1}),
        acted=most(there.of("ask_in_turn began"), there.of("ask_in_turn")),
        works=("haul", {**until, "tag": "legacy"}),
        began=there.of("haul began", "legacy"),
    )
    return [
        Subject(
            name="legacy stdio",
            server={"transport": "stdio", "entry": "old"},
            asks=("asks_in_turn", {"times": 1}),
            acted=most(kept.received("tools/call"), kept.received(None)),
            works=("asks_in_turn", {"times": 0, "then": 2}),
            began=kept.received("tools/call"),
        ),
        over_http,
        dataclasses.replace(
            over_http,
            name="legacy http, no events",
            server={"transport": "http", "url": http.url("no_events"), "negotiated": LEGACY},
            acted=most(forgetful.of("ask_in_turn began"), forgetful.of("ask_in_turn")),
            began=forgetful.of("haul began"),
        ),
    ]


def _everything(folder: Path, http: HttpServers) -> list[Subject]:
    def subject(over: str, count: Count, **server: Any) -> Subject:
        return Subject(
            name=f"everything {over}",
            server=server,
            asks=("trigger-elicitation-request", {}),
            acted=most(count.of("call"), count.answered()),
            works=("trigger-long-running-operation", {"duration": 3, "steps": 3}),
            began=count.of("call"),
        )

    stdio = Count(folder / "everything-stdio")
    return [
        subject("stdio", stdio, transport="stdio", entry="everything"),
        subject("http", http.count("everything"), transport="http", url=http.url("everything")),
    ]


def _tasks(http: HttpServers, until: dict[str, str]) -> list[Subject]:
    ours, peer = http.count("tasks"), http.count("peer")
    return [
        Subject(
            name="tasks",
            server={"transport": "http", "url": http.url("tasks")},
            asks=("asks_once", {}),
            acted=most(ours.of("begun"), ours.of("update")),
            works=("report", {"seconds": 3.0}),
            began=ours.of("begun"),
        ),
        Subject(
            name="fastmcp-tasks",
            server={"transport": "http", "url": http.url("peer")},
            asks=("travel", {"to": "Rome"}),
            acted=peer.of("travel"),
            works=("report", until),
            began=peer.of("report"),
            questions=2,
        ),
    ]


def _local(folder: Path, until: dict[str, str]) -> list[Subject]:
    count = Count(folder / "local")

    def subject(name: str, suffix: str) -> Subject:
        return Subject(
            name=name,
            asks=(f"sign{suffix}", {"tag": name}),
            acted=count.of("sign", name),
            works=(f"haul{suffix}", {**until, "tag": name}),
            began=count.of("haul began", name),
        )

    return [subject("local", ""), subject("local, replay", "_again")]
