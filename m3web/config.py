"""Settings from the environment, typed. A bad value never crashes the start: it becomes a system check that says
what was read, what is expected and where to change it (see `m3web.checks`)."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

import environ

from m3web import stores

T = TypeVar("T")

NOTHING: dict[str, Any] = {}
LEAST_CONNECTIONS = 6
"""Connections to PostgreSQL of one process: a writer and four readers for the worker, and one for the pages."""

LOOPBACK_HOSTS = ("127.0.0.1", "localhost", "[::1]", "::1")


@dataclass
class Problem:
    """One environment variable that could not be used; the default stands in for it until it is fixed."""

    variable: str
    message: str


@dataclass
class Config:
    """Everything that an installation can change. See the settings table in the README."""

    data_dir: Path
    debug: bool
    demo: bool
    secret_key: str
    encryption_salt: str
    allowed_hosts: list[str]
    trusted_origins: list[str]
    https: bool
    database: dict[str, Any]
    database_connections: int
    redis_url: str
    stdio_servers: dict[str, dict[str, Any]]
    allow_private_urls: bool
    lease_seconds: float
    sweep_seconds: float
    tool_list_seconds: float
    call_timeout_seconds: float
    keeper_orphan_seconds: float
    host_gone_seconds: float
    task_timeout_seconds: float
    question_seconds: float
    worker_concurrency: int
    max_body_bytes: int
    log_level: str
    problems: list[Problem] = field(default_factory=list)


class _Reader:
    def __init__(self, source: Mapping[str, str]) -> None:
        self.source = source
        self.problems: list[Problem] = []

    def get(
        self, name: str, default: T, parse: Callable[[str], T], expected: str, *, secret: bool = False
    ) -> T:
        """The parsed variable, or `default` if it is unset or unusable. A `secret` one is never quoted, neither
        here nor by its parser's errors: what the checks say is printed and logged."""
        raw = self.source.get(name, "").strip()
        if not raw:
            return default
        try:
            return parse(raw)
        except (ValueError, TypeError, KeyError, OSError, RecursionError) as error:
            given = name if secret else f"{name}={raw[:80]!r}"
            self.problems.append(Problem(name, f"{given} cannot be used ({error}). Expected {expected}."))
            return default


def _boolean(raw: str) -> bool:
    words = {
        "1": True,
        "true": True,
        "yes": True,
        "on": True,
        "0": False,
        "false": False,
        "no": False,
        "off": False,
    }
    if raw.lower() not in words:
        raise ValueError("not a yes/no value")
    return words[raw.lower()]


def _positive(raw: str) -> float:
    value = float(raw)
    if not 0 < value < 1e6:
        raise ValueError("not a positive number below 1,000,000")
    return value


def _whole(raw: str) -> int:
    value = int(raw)
    if not 0 < value < 1_000_000_000:
        raise ValueError("not a whole number from 1 to 999,999,999")
    return value


def _words(raw: str) -> list[str]:
    words = [word.strip() for word in raw.split(",") if word.strip()]
    if not words:
        raise ValueError("nothing between the commas")
    return words


def _hosts(raw: str) -> list[str]:
    hosts = _words(raw)
    for host in hosts:
        if "/" in host or any(character.isspace() for character in host):
            raise ValueError(f"{host!r} is not a host name")
    return hosts


def _origins(raw: str) -> list[str]:
    origins = _words(raw)
    for origin in origins:
        parts = urlsplit(origin)
        if parts.scheme not in {"http", "https"} or not parts.netloc or parts.path or parts.query:
            raise ValueError(f"{origin!r} is not a scheme with a host and nothing after it")
    return origins


def _folder(raw: str) -> Path:
    """A folder that can be written to; made for its owner alone if it is not there."""
    folder = Path(raw).expanduser().resolve()
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not os.access(folder, os.W_OK | os.X_OK):
        raise PermissionError("it cannot be written to")
    return folder


def _secret(raw: str) -> str:
    if len(raw) < 32:
        raise ValueError("shorter than 32 characters")
    return raw


def _log_level(raw: str) -> str:
    if raw.upper() not in {"DEBUG", "INFO", "WARNING", "ERROR"}:
        raise ValueError("not a log level")
    return raw.upper()


def _stdio_servers(raw: str) -> dict[str, dict[str, Any]]:
    """The host-owned allow-list of stdio commands (design section 2): a JSON object, inline or as `@path`.

    `{"files": {"command": "mcp-files", "args": ["--root", "/srv"], "env": {"TOKEN": "env:FILES_TOKEN"},
    "variables": ["FOLDER"]}}`; `env:NAME` takes the value from this process, `variables` names what an admin
    may fill in on the page.
    """
    text = Path(raw[1:]).read_text() if raw.startswith("@") else raw
    loaded = json.loads(text)
    if not isinstance(loaded, dict):
        raise TypeError("not a JSON object")
    for name, entry in loaded.items():
        mistake = _entry_mistake(name, entry)
        if mistake:
            raise ValueError(f"entry {name!r} {mistake}")
    return loaded


def _entry_mistake(name: str, entry: Any) -> str | None:
    """What is wrong with one entry of the allow-list; a mistake found here is not found in the middle of a run."""
    if not name or ":" in name:
        return "needs a name without a colon"
    if not isinstance(entry, dict) or not isinstance(entry.get("command"), str) or not entry["command"]:
        return "needs a command"
    if unknown := set(entry) - {"command", "args", "env", "cwd", "variables", "tasks"}:
        return f"has an unknown key {min(unknown)!r}"
    if not isinstance(entry.get("tasks", False), bool):
        return "needs true or false as tasks"
    if not isinstance(entry.get("cwd", ""), str):
        return "needs a text as cwd"
    for key in ("args", "variables"):
        values = entry.get(key, [])
        if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
            return f"needs a list of texts as {key}"
    env = entry.get("env", {})
    if not isinstance(env, dict) or not all(isinstance(value, str) for value in env.values()):
        return "needs an object of texts as env"
    return None


def _database(raw: str) -> dict[str, Any]:
    scheme = urlsplit(raw).scheme
    if scheme not in {"sqlite", "postgres", "postgresql"}:
        raise ValueError("not a sqlite:// or postgres:// URL")
    if scheme != "sqlite" and stores.missing_for_postgres():
        raise ValueError(f"the packages for PostgreSQL are not installed; {stores.EXTRA} has them")
    try:
        database = dict(environ.Env.db_url_config(raw))
    except ValueError:
        raise ValueError("no URL can be read from it") from None  # the original may quote the password
    if database["NAME"] in {"", ":memory:"}:
        raise ValueError("it names no database; one in memory would be another one in every thread")
    return database


def _redis(raw: str) -> str:
    try:
        parts = urlsplit(raw)
        usable = parts.scheme in {"redis", "rediss"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        raise ValueError("no URL can be read from it") from None  # the original may quote the password
    if not usable:
        raise ValueError("not a redis:// or rediss:// URL")
    if stores.missing_for_redis():
        raise ValueError(f"the package for Redis is not installed; {stores.EXTRA} has it")
    return raw


def _connections(raw: str) -> int:
    value = _whole(raw)
    if value < LEAST_CONNECTIONS:
        raise ValueError(f"the worker alone keeps {LEAST_CONNECTIONS - 1}")
    return value


def secret_file(path: Path, make: Callable[[], str]) -> str:
    """Read a secret kept in a file that only its owner can read, making it on first use.

    Two processes that start at once agree on one value: the file appears under its name complete, or not at all.
    """
    if path.exists():
        return path.read_text().strip()
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, draft = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")  # made with mode 0600
    try:
        with os.fdopen(handle, "w") as file:
            file.write(make() + "\n")
            file.flush()
            os.fsync(handle)
        with contextlib.suppress(FileExistsError):  # another process was first; its value counts
            os.link(draft, path)
    finally:
        os.unlink(draft)
    return path.read_text().strip()


def new_salt() -> str:
    """Salt of the field encryption key; kept beside the secret key, because losing either loses the headers."""
    return secrets.token_urlsafe(32)


def demo_servers(base_dir: Path, data_dir: Path) -> dict[str, dict[str, Any]]:
    """The two servers that ship with the product, as allow-list entries of a demo installation."""

    def entry(name: str, env: dict[str, str]) -> dict[str, Any]:
        module = f"m3web.demo_servers.{name}"
        return {"command": sys.executable, "args": ["-m", module], "cwd": str(base_dir), "env": env}

    state_key = secret_file(data_dir / "shipping_state_key", lambda: secrets.token_hex(32))
    return {
        "shipping": entry("shipping", {"M3_SHIPPING_STATE_KEY": state_key}),
        "desk": entry("desk", {"M3_DESK_DATA": str(data_dir / "desk.json")}),
    }


def load(base_dir: Path, source: Mapping[str, str] | None = None) -> Config:
    """Read the environment (or `source`) once; every mistake is collected in `Config.problems`."""
    read = _Reader(os.environ if source is None else source)
    data_dir = read.get("M3_DATA_DIR", base_dir / "var", _folder, "a folder that can be written to")
    data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)  # the default one, before anything is put into it
    demo = read.get("M3_DEMO", False, _boolean, "true or false")
    database = read.get(
        "DATABASE_URL",
        NOTHING,
        _database,
        "sqlite:////path/to/file or postgres://user@host/name",
        secret=True,
    )
    if not database:
        database = {"ENGINE": "django.db.backends.sqlite3", "NAME": str(data_dir / "m3web.sqlite3")}
    stdio_servers = read.get(
        "M3_STDIO_SERVERS", NOTHING, _stdio_servers, "a JSON object, or @file", secret=True
    )
    if demo:
        stdio_servers = demo_servers(base_dir, data_dir) | stdio_servers
    secret = read.get("M3_SECRET_KEY", "", _secret, "at least 32 characters", secret=True)
    salt = read.get("M3_ENCRYPTION_SALT", "", _secret, "at least 32 characters", secret=True)
    return Config(
        data_dir=data_dir,
        debug=read.get("M3_DEBUG", False, _boolean, "true or false"),
        demo=demo,
        secret_key=secret or secret_file(data_dir / "secret_key", lambda: secrets.token_urlsafe(48)),
        encryption_salt=salt or secret_file(data_dir / "encryption_salt", new_salt),
        allowed_hosts=read.get(
            "M3_ALLOWED_HOSTS", list(LOOPBACK_HOSTS), _hosts, "host names with commas between"
        ),
        trusted_origins=read.get(
            "M3_TRUSTED_ORIGINS", [], _origins, "origins such as https://m3.example.com"
        ),
        https=read.get("M3_HTTPS", False, _boolean, "true or false"),
        database=database,
        database_connections=read.get(
            "M3_DATABASE_CONNECTIONS", 20, _connections, f"a whole number from {LEAST_CONNECTIONS}"
        ),
        redis_url=read.get("REDIS_URL", "", _redis, "redis://host:6379/0", secret=True),
        stdio_servers=stdio_servers,
        allow_private_urls=read.get("M3_ALLOW_PRIVATE_URLS", demo, _boolean, "true or false"),
        lease_seconds=read.get("M3_LEASE_SECONDS", 30.0, _positive, "seconds"),
        sweep_seconds=read.get("M3_SWEEP_SECONDS", 2.0, _positive, "seconds"),
        tool_list_seconds=read.get("M3_TOOL_LIST_SECONDS", 60.0, _positive, "seconds"),
        call_timeout_seconds=read.get("M3_CALL_TIMEOUT_SECONDS", 120.0, _positive, "seconds"),
        keeper_orphan_seconds=read.get("M3_KEEPER_ORPHAN_SECONDS", 86_400.0, _positive, "seconds"),
        host_gone_seconds=read.get("M3_HOST_GONE_SECONDS", 120.0, _positive, "seconds"),
        task_timeout_seconds=read.get("M3_TASK_TIMEOUT_SECONDS", 86400.0, _positive, "seconds"),
        question_seconds=read.get("M3_QUESTION_SECONDS", 600.0, _positive, "seconds"),
        worker_concurrency=read.get("M3_WORKER_CONCURRENCY", 16, _whole, "a whole number"),
        max_body_bytes=read.get("M3_MAX_BODY_BYTES", 1_000_000, _whole, "bytes, a whole number"),
        log_level=read.get("M3_LOG_LEVEL", "INFO", _log_level, "DEBUG, INFO, WARNING or ERROR"),
        problems=read.problems,
    )
