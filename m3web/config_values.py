"""What the environment's values mean: each function reads one kind, and raises ValueError, TypeError, KeyError or
OSError with what is wrong (`m3web.config` makes a check of it)."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import environ

from m3web import stores

LEAST_CONNECTIONS: Final = 6
"""Connections to PostgreSQL of one process: two writers and three readers for the worker, and one for the pages."""


def boolean(raw: str) -> bool:
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


def positive(raw: str) -> float:
    value = float(raw)
    if not 0 < value < 1e6:
        raise ValueError("not a positive number below 1,000,000")
    return value


def whole(raw: str) -> int:
    value = int(raw)
    if not 0 < value < 1_000_000_000:
        raise ValueError("not a whole number from 1 to 999,999,999")
    return value


def silence(raw: str) -> int:
    """Whole seconds, because the system counts in them; a third of it lies between two signs of life."""
    value = int(raw)
    if not 3 <= value <= 3600:
        raise ValueError("not a whole number from 3 to 3600")
    return value


def words(raw: str) -> list[str]:
    words = [word.strip() for word in raw.split(",") if word.strip()]
    if not words:
        raise ValueError("nothing between the commas")
    return words


def hosts(raw: str) -> list[str]:
    hosts = words(raw)
    for host in hosts:
        if "/" in host or any(character.isspace() for character in host):
            raise ValueError(f"{host!r} is not a host name")
    return hosts


def origins(raw: str) -> list[str]:
    origins = words(raw)
    for origin in origins:
        parts = urlsplit(origin)
        if parts.scheme not in {"http", "https"} or not parts.netloc or parts.path or parts.query:
            raise ValueError(f"{origin!r} is not a scheme with a host and nothing after it")
    return origins


def folder(raw: str) -> Path:
    """A folder that can be written to; made for its owner alone if it is not there."""
    folder = Path(raw).expanduser().resolve()
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not os.access(folder, os.W_OK | os.X_OK):
        raise PermissionError("it cannot be written to")
    return folder


def secret(raw: str) -> str:
    if len(raw) < 32:
        raise ValueError("shorter than 32 characters")
    return raw


def log_level(raw: str) -> str:
    if raw.upper() not in {"DEBUG", "INFO", "WARNING", "ERROR"}:
        raise ValueError("not a log level")
    return raw.upper()


def stdio_servers(raw: str) -> dict[str, dict[str, Any]]:
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


def database(raw: str) -> dict[str, Any]:
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


def redis(raw: str) -> str:
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


def engine(raw: str, *, postgres: bool) -> str:
    if raw not in {"in_process", "procrastinate"}:
        raise ValueError("there is no such engine")
    if raw == "procrastinate" and not postgres:
        raise ValueError("it needs PostgreSQL, and DATABASE_URL names none")
    if raw == "procrastinate" and stores.missing_for_procrastinate():
        raise ValueError(f"its package is not installed; {stores.EXTRA} has it")
    return raw


def connections(raw: str) -> int:
    value = whole(raw)
    if value < LEAST_CONNECTIONS:
        raise ValueError(f"the worker alone keeps {LEAST_CONNECTIONS - 1}")
    return value
