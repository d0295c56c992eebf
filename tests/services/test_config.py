"""Every variable of the environment: what it takes, what it refuses, and what is said then (`m3web.config`)."""

from __future__ import annotations

import json
import multiprocessing
import stat
import sys
from collections.abc import Callable
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any

import pytest

from m3web import config
from m3web.config import Config

Load = Callable[..., Config]

ENTRY = {
    "command": "mcp-files",
    "args": ["--root", "/srv"],
    "env": {"TOKEN": "env:FILES_TOKEN"},
    "cwd": "/srv",
    "variables": ["FOLDER"],
}


@pytest.fixture
def load(tmp_path: Path) -> Load:
    """The configuration that an environment gives, in a data folder of its own."""

    def read(**source: str) -> Config:
        return config.load(tmp_path / "base", {"M3_DATA_DIR": str(tmp_path / "data"), **source})

    return read


@pytest.mark.parametrize("chosen", [True, False], ids=["chosen", "default"])
def test_a_data_folder_that_is_made_is_its_owners_alone(tmp_path: Path, chosen: bool) -> None:
    source = {"M3_DATA_DIR": str(tmp_path / "data")} if chosen else {}
    made = config.load(tmp_path / "base", source).data_dir
    assert made == tmp_path / ("data" if chosen else "base/var")
    assert stat.S_IMODE(made.stat().st_mode) == 0o700


def test_an_empty_environment_is_a_closed_installation_on_sqlite(load: Load, tmp_path: Path) -> None:
    found = load()

    assert found.problems == []
    assert (found.demo, found.debug, found.https, found.allow_private_urls) == (False, False, False, False)
    assert found.stdio_servers == {}
    assert found.allowed_hosts == ["127.0.0.1", "localhost", "[::1]", "::1"]
    assert found.database == {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": str(tmp_path / "data" / "m3web.sqlite3"),
    }


GOOD: list[tuple[str, str, str, Any]] = [
    ("M3_DEBUG", "on", "debug", True),
    ("M3_DEBUG", "No", "debug", False),
    ("M3_HTTPS", " TRUE ", "https", True),
    ("M3_SECRET_KEY", "k" * 32, "secret_key", "k" * 32),
    (
        "M3_ALLOWED_HOSTS",
        "m3.example.com, .example.org,",
        "allowed_hosts",
        ["m3.example.com", ".example.org"],
    ),
    ("M3_TRUSTED_ORIGINS", "https://m3.example.com", "trusted_origins", ["https://m3.example.com"]),
    ("M3_ALLOW_PRIVATE_URLS", "1", "allow_private_urls", True),
    ("M3_LEASE_SECONDS", "12.5", "lease_seconds", 12.5),
    ("M3_SWEEP_SECONDS", "1", "sweep_seconds", 1.0),
    ("M3_CALL_TIMEOUT_SECONDS", "600", "call_timeout_seconds", 600.0),
    ("M3_KEEPER_ORPHAN_SECONDS", "604800", "keeper_orphan_seconds", 604_800.0),
    ("M3_HOST_GONE_SECONDS", "90", "host_gone_seconds", 90.0),
    ("M3_SILENCE_SECONDS", "12", "silence_seconds", 12),
    ("M3_TASK_TIMEOUT_SECONDS", "600", "task_timeout_seconds", 600.0),
    ("M3_QUESTION_SECONDS", "60", "question_seconds", 60.0),
    ("M3_WORKER_CONCURRENCY", "4", "worker_concurrency", 4),
    ("M3_MAX_BODY_BYTES", "2000000", "max_body_bytes", 2_000_000),
    ("M3_LOG_LEVEL", "debug", "log_level", "DEBUG"),
    ("M3_STDIO_SERVERS", json.dumps({"files": ENTRY}), "stdio_servers", {"files": ENTRY}),
    ("M3_DEBUG", "", "debug", False),
]


@pytest.mark.parametrize(("variable", "text", "name", "value"), GOOD)
def test_a_good_value_is_taken(load: Load, variable: str, text: str, name: str, value: Any) -> None:
    found = load(**{variable: text})

    assert (getattr(found, name), found.problems) == (value, [])


BAD = [
    ("M3_DEBUG", "maybe"),
    ("M3_DEMO", "2"),
    ("M3_HTTPS", "https"),
    ("M3_ALLOW_PRIVATE_URLS", "some"),
    ("M3_SECRET_KEY", "short"),
    ("M3_ALLOWED_HOSTS", "https://m3.example.com"),
    ("M3_ALLOWED_HOSTS", "one two"),
    ("M3_ALLOWED_HOSTS", ","),
    ("M3_TRUSTED_ORIGINS", "m3.example.com"),
    ("M3_TRUSTED_ORIGINS", "https://m3.example.com/path"),
    ("M3_TRUSTED_ORIGINS", "https://"),
    ("M3_SILENCE_SECONDS", "2"),
    ("M3_SILENCE_SECONDS", "4000"),
    ("M3_LEASE_SECONDS", "soon"),
    ("M3_LEASE_SECONDS", "0"),
    ("M3_LEASE_SECONDS", "-1"),
    ("M3_LEASE_SECONDS", "nan"),
    ("M3_SWEEP_SECONDS", "inf"),
    ("M3_CALL_TIMEOUT_SECONDS", "1000000"),
    ("M3_WORKER_CONCURRENCY", "0"),
    ("M3_WORKER_CONCURRENCY", "0.5"),
    ("M3_WORKER_CONCURRENCY", "many"),
    ("M3_MAX_BODY_BYTES", "0.5"),
    ("M3_MAX_BODY_BYTES", "1MB"),
    ("M3_LOG_LEVEL", "loud"),
    ("DATABASE_URL", "mysql://root@host/name"),
    ("DATABASE_URL", "sqlite://:memory:"),
    ("DATABASE_URL", "sqlite:///"),
    ("DATABASE_URL", "postgres://host"),
    ("M3_STDIO_SERVERS", "{"),
    ("M3_STDIO_SERVERS", "[]"),
    ("M3_STDIO_SERVERS", "[" * 100_000),
    ("M3_STDIO_SERVERS", "@/no/such/file.json"),
    ("M3_DATA_DIR", "/dev/null/data"),
]


@pytest.mark.parametrize(("variable", "text"), BAD)
def test_a_bad_value_is_one_problem_and_the_default_stands_in(load: Load, variable: str, text: str) -> None:
    found, usual = load(**{variable: text}), load()

    (problem,) = found.problems
    assert problem.variable == variable
    assert problem.message.startswith(variable)
    assert "Expected" in problem.message or "Use a longer one" in problem.message
    found.problems = []
    if variable != "M3_DATA_DIR":
        assert found == usual


@pytest.mark.parametrize(
    ("entry", "mistake"),
    [
        ({"files": "mcp-files"}, "entry 'files' needs a command"),
        ({"files": {"command": ""}}, "entry 'files' needs a command"),
        ({"a:b": ENTRY}, "entry 'a:b' needs a name without a colon"),
        ({"": ENTRY}, "entry '' needs a name"),
        ({"files": {**ENTRY, "args": "--root"}}, "needs a list of texts as args"),
        ({"files": {**ENTRY, "args": [1]}}, "needs a list of texts as args"),
        ({"files": {**ENTRY, "variables": "FOLDER"}}, "needs a list of texts as variables"),
        ({"files": {**ENTRY, "env": {"TOKEN": 1}}}, "needs an object of texts as env"),
        ({"files": {**ENTRY, "env": ["TOKEN"]}}, "needs an object of texts as env"),
        ({"files": {**ENTRY, "cwd": 1}}, "needs a text as cwd"),
        ({"files": {**ENTRY, "tasks": 1}}, "needs true or false as tasks"),
        ({"files": {**ENTRY, "arguments": []}}, "has an unknown key 'arguments'"),
    ],
)
def test_a_mistake_in_the_allow_list_names_the_entry(load: Load, entry: dict[str, Any], mistake: str) -> None:
    found = load(M3_STDIO_SERVERS=json.dumps(entry))

    assert mistake in found.problems[0].message
    assert found.stdio_servers == {}


def test_the_allow_list_may_stand_in_a_file(load: Load, tmp_path: Path) -> None:
    file = tmp_path / "servers.json"
    file.write_text(json.dumps({"files": ENTRY}))

    assert load(M3_STDIO_SERVERS=f"@{file}").stdio_servers == {"files": ENTRY}


@pytest.mark.parametrize(
    ("variable", "text"),
    [
        ("DATABASE_URL", "postgers://m3:hunter2@db/m3"),
        ("DATABASE_URL", "postgres://m3:hunter2/x@db/m3"),
        ("M3_STDIO_SERVERS", '{"files": {"env": {"TOKEN": "hunter2"}}}'),
        ("M3_SECRET_KEY", "hunter2"),
    ],
)
def test_a_problem_never_quotes_a_secret(load: Load, variable: str, text: str) -> None:
    (problem,) = load(**{variable: text}).problems

    assert "hunter2" not in problem.message


def test_every_problem_is_reported_at_once(load: Load) -> None:
    found = load(M3_DEBUG="maybe", M3_LOG_LEVEL="loud", M3_SECRET_KEY="short")

    assert [problem.variable for problem in found.problems] == ["M3_SECRET_KEY", "M3_DEBUG", "M3_LOG_LEVEL"]


def test_demo_mode_brings_its_two_servers_and_may_call_this_machine(load: Load, tmp_path: Path) -> None:
    found = load(M3_DEMO="1")

    assert set(found.stdio_servers) == {"shipping", "desk"}
    assert found.allow_private_urls
    shipping = found.stdio_servers["shipping"]
    assert (shipping["command"], shipping["args"]) == (sys.executable, ["-m", "m3web.demo_servers.shipping"])
    assert (
        shipping["env"]["M3_SHIPPING_STATE_KEY"]
        == (tmp_path / "data" / "shipping_state_key").read_text().strip()
    )
    assert load(M3_DEMO="1").stdio_servers == found.stdio_servers


def test_the_hosts_own_entry_wins_over_the_demos(load: Load) -> None:
    found = load(M3_DEMO="1", M3_STDIO_SERVERS=json.dumps({"desk": ENTRY}))

    assert found.stdio_servers["desk"] == ENTRY
    assert "shipping" in found.stdio_servers


# --- secrets --------------------------------------------------------------------------------------------------


def test_a_secret_is_made_once_and_read_by_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "secret"

    assert config.secret_file(path, lambda: "first") == "first"
    assert config.secret_file(path, lambda: "second") == "first"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [entry.name for entry in path.parent.iterdir()] == ["secret"]


def test_a_failed_attempt_leaves_no_empty_secret_behind(tmp_path: Path) -> None:
    def fails() -> str:
        raise MemoryError

    with pytest.raises(MemoryError):
        config.secret_file(tmp_path / "secret", fails)
    assert list(tmp_path.iterdir()) == []
    assert config.secret_file(tmp_path / "secret", lambda: "made") == "made"


def test_whoever_looks_while_a_secret_is_being_made_never_sees_an_empty_one(tmp_path: Path) -> None:
    path = tmp_path / "secret"
    seen: list[str] = []

    def make() -> str:
        seen.append(config.secret_file(path, lambda: "the other's"))
        return "ours"

    assert config.secret_file(path, make) == "the other's"
    assert seen == ["the other's"]


def _make(path: Path, together: Barrier, name: str, found: Any) -> None:
    together.wait(20)
    found.put(config.secret_file(path, lambda: name))


def test_processes_that_start_at_once_agree_on_one_secret(tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork")
    together, found = context.Barrier(4), context.Queue()
    processes = [
        context.Process(target=_make, args=(tmp_path / "secret", together, f"secret {number}", found))
        for number in range(4)
    ]
    for process in processes:
        process.start()
    values = {found.get(timeout=20) for _ in processes}
    for process in processes:
        process.join(20)

    assert values == {(tmp_path / "secret").read_text().strip()}
