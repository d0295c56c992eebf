"""Settings from the environment, typed. A bad value never crashes the start: it becomes a system check that says
what was read, what is expected and where to change it (see `m3web.checks`)."""

from __future__ import annotations

import contextlib
import os
import secrets
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from m3web import config_values as values
from m3web import stores

T = TypeVar("T")

NOTHING: dict[str, Any] = {}
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
    engine: str
    """What wakes workers: "in_process", or "procrastinate" on PostgreSQL."""
    redis_url: str
    silence_seconds: int
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
    stop_seconds: float
    webhook_log_days: int
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


def _engine_for(read: _Reader, database: Mapping[str, Any]) -> str:
    """Where a server keeps the data, procrastinate is the engine unless something else is said."""
    postgres = not database["ENGINE"].endswith("sqlite3")
    usual = "procrastinate" if postgres else "in_process"
    if postgres and stores.missing_for_procrastinate():
        usual = "in_process"
        if not read.source.get("M3_ENGINE", "").strip():
            lack = f"The package procrastinate is not installed; {stores.EXTRA} has it."
            read.problems.append(Problem("M3_ENGINE", f"{lack} Or set M3_ENGINE=in_process."))
    return read.get(
        "M3_ENGINE",
        usual,
        partial(values.engine, postgres=postgres),
        "in_process, or procrastinate on PostgreSQL",
    )


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
    data_dir = read.get("M3_DATA_DIR", base_dir / "var", values.folder, "a folder that can be written to")
    data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)  # the default one, before anything is put into it
    demo = read.get("M3_DEMO", False, values.boolean, "true or false")
    database = read.get(
        "DATABASE_URL",
        NOTHING,
        values.database,
        "sqlite:////path/to/file or postgres://user@host/name",
        secret=True,
    )
    if not database:
        database = {"ENGINE": "django.db.backends.sqlite3", "NAME": str(data_dir / "m3web.sqlite3")}
    stdio_servers = read.get(
        "M3_STDIO_SERVERS", NOTHING, values.stdio_servers, "a JSON object, or @file", secret=True
    )
    if demo:
        stdio_servers = demo_servers(base_dir, data_dir) | stdio_servers
    secret = read.get("M3_SECRET_KEY", "", values.secret, "at least 32 characters", secret=True)
    salt = read.get("M3_ENCRYPTION_SALT", "", values.secret, "at least 32 characters", secret=True)
    return Config(
        data_dir=data_dir,
        debug=read.get("M3_DEBUG", False, values.boolean, "true or false"),
        demo=demo,
        secret_key=secret or secret_file(data_dir / "secret_key", lambda: secrets.token_urlsafe(48)),
        encryption_salt=salt or secret_file(data_dir / "encryption_salt", new_salt),
        allowed_hosts=read.get(
            "M3_ALLOWED_HOSTS", list(LOOPBACK_HOSTS), values.hosts, "host names with commas between"
        ),
        trusted_origins=read.get(
            "M3_TRUSTED_ORIGINS", [], values.origins, "origins such as https://m3.example.com"
        ),
        https=read.get("M3_HTTPS", False, values.boolean, "true or false"),
        database=database,
        database_connections=read.get(
            "M3_DATABASE_CONNECTIONS",
            20,
            values.connections,
            f"a whole number from {values.LEAST_CONNECTIONS}",
        ),
        engine=_engine_for(read, database),
        redis_url=read.get("REDIS_URL", "", values.redis, "redis://host:6379/0", secret=True),
        silence_seconds=read.get("M3_SILENCE_SECONDS", 30, values.silence, "whole seconds, from 3"),
        stdio_servers=stdio_servers,
        allow_private_urls=read.get("M3_ALLOW_PRIVATE_URLS", demo, values.boolean, "true or false"),
        lease_seconds=read.get("M3_LEASE_SECONDS", 30.0, values.positive, "seconds"),
        sweep_seconds=read.get("M3_SWEEP_SECONDS", 2.0, values.positive, "seconds"),
        tool_list_seconds=read.get("M3_TOOL_LIST_SECONDS", 60.0, values.positive, "seconds"),
        call_timeout_seconds=read.get("M3_CALL_TIMEOUT_SECONDS", 120.0, values.positive, "seconds"),
        keeper_orphan_seconds=read.get("M3_KEEPER_ORPHAN_SECONDS", 86_400.0, values.positive, "seconds"),
        host_gone_seconds=read.get("M3_HOST_GONE_SECONDS", 120.0, values.positive, "seconds"),
        task_timeout_seconds=read.get("M3_TASK_TIMEOUT_SECONDS", 86400.0, values.positive, "seconds"),
        question_seconds=read.get("M3_QUESTION_SECONDS", 600.0, values.positive, "seconds"),
        worker_concurrency=read.get("M3_WORKER_CONCURRENCY", 16, values.whole, "a whole number"),
        stop_seconds=read.get("M3_STOP_SECONDS", 10.0, values.positive, "seconds"),
        webhook_log_days=read.get("M3_WEBHOOK_LOG_DAYS", 30, values.whole, "days, a whole number"),
        max_body_bytes=read.get("M3_MAX_BODY_BYTES", 1_000_000, values.whole, "bytes, a whole number"),
        log_level=read.get("M3_LOG_LEVEL", "INFO", values.log_level, "DEBUG, INFO, WARNING or ERROR"),
        problems=read.problems,
    )
