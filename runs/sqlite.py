"""How this product opens a SQLite file. Plain module: the settings read it before Django is there."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path
from typing import Any

from runs.errors import ModelValidationError
from runs.sqlite_turns import InTurn

BUSY_TIMEOUT_MS = 20_000
"""How long a write waits for its turn in this process, and as long again for another process's, in milliseconds."""


def connection_options(busy_timeout_ms: int = BUSY_TIMEOUT_MS) -> dict[str, Any]:
    """Options of a connection to a file that several threads or processes write to.

    IMMEDIATE with WAL is the only setting under which two writers never fail with "database is locked"; FULL,
    because a decision that was acknowledged must survive a power cut. Writers of one process take turns.
    """
    return {
        "factory": InTurn,
        "transaction_mode": "IMMEDIATE",
        "timeout": busy_timeout_ms / 1000,
        "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;",
    }


def file_path(path: object) -> Path:
    """The absolute path that a program gave for its file. Raises ModelValidationError for what cannot be one."""
    if not isinstance(path, str | os.PathLike) or not isinstance(text := os.fspath(path), str):
        raise ModelValidationError(
            f"The path of a SQLite file is a text or a Path, not {type(path).__name__}."
        )
    if not text or "\0" in text:
        raise ModelValidationError(
            f"{text!r} is no path of a SQLite file. Name a file in a folder that exists."
        )
    if text == ":memory:" or text.startswith("file:"):
        raise ModelValidationError(
            f"{text} names no file; executions are kept in one. Give the path of a file."
        )
    return Path(text).absolute()


def create_private(file: Path) -> None:
    """Make an empty file for its owner alone if there is none; SQLite gives its `-wal` and `-shm` the same rights.

    Raises ModelValidationError where no file can be made or written, and for a folder or anything else that is no file.
    """
    try:
        made = os.open(file, os.O_RDWR | os.O_CREAT | os.O_NONBLOCK | os.O_CLOEXEC, 0o600)
        os.close(made)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ModelValidationError(
            f"The SQLite file {file} cannot be opened for writing: {reason}."
        ) from error
    if not file.is_file():
        raise ModelValidationError(f"{file} is no file, so SQLite can keep nothing in it.")


def tables_in(file: Path) -> frozenset[str]:
    """The names of the tables in a file, which is only read. Raises ModelValidationError if it is no database."""
    try:
        opened = sqlite3.connect(f"{file.as_uri()}?mode=ro", uri=True, timeout=BUSY_TIMEOUT_MS / 1000)
        try:
            rows = opened.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        finally:
            opened.close()
    except sqlite3.Error as error:
        raise ModelValidationError(f"{file} cannot be read as a SQLite database: {error}.") from error
    return frozenset(name for (name,) in rows if not name.startswith("sqlite_"))
