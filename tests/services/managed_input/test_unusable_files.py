"""What cannot be a store's file is refused with a sentence that names it, before anything is written."""

from __future__ import annotations

import os
import re
import sqlite3
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from runs import database, gate
from runs.engines.in_process import InProcess
from runs.errors import ModelValidationError
from runs.handles import MCPTestKit, SQLiteExecutionStore
from runs.managed_input import SQLiteManagedInputStore
from tests.mcp.bindings import wait_for

pytestmark = pytest.mark.django_db

PLACES: dict[str, Callable[[Path], Path]] = {
    "a folder": lambda folder: folder,
    "in no folder": lambda folder: folder / "nowhere" / "rounds.sqlite",
    "under a file": lambda folder: _written(folder / "file", b"") / "rounds.sqlite",
    "no database": lambda folder: _written(folder / "notes.txt", b"these are notes " * 100),
    "a pipe": lambda folder: _pipe(folder / "pipe"),
    "a place of the system": lambda folder: Path("/proc/rounds.sqlite"),
}

OPENERS: dict[str, Callable[[Any], Any]] = {
    "rounds": SQLiteManagedInputStore,
    "executions": lambda path: _entered(SQLiteExecutionStore(path)),
}


def _written(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


def _pipe(path: Path) -> Path:
    os.mkfifo(path)
    return path


def _entered(store: SQLiteExecutionStore) -> None:
    try:
        with MCPTestKit(store=store):
            pass
    finally:
        store.close()


@pytest.mark.parametrize("opener", OPENERS)
@pytest.mark.parametrize("place", PLACES)
def test_a_place_that_cannot_be_used_is_named(tmp_path: Path, place: str, opener: str) -> None:
    path = PLACES[place](tmp_path)
    with pytest.raises(ModelValidationError, match=re.escape(str(path))):
        OPENERS[opener](path)


@pytest.mark.parametrize("opener", OPENERS)
@pytest.mark.parametrize("path", ["", ":memory:", "file:x?mode=memory", "a\0b", None, 3, b"rounds.sqlite"])
def test_what_is_no_path_is_refused(path: Any, opener: str) -> None:
    with pytest.raises(ModelValidationError, match="file"):
        OPENERS[opener](path)


@pytest.mark.parametrize("opener", OPENERS)
@pytest.mark.parametrize("table", ["customers", "django_migrations, runs_tasks"])
def test_a_database_of_another_program_is_left_as_it_is(tmp_path: Path, table: str, opener: str) -> None:
    path = tmp_path / "customers.sqlite"
    with sqlite3.connect(path) as theirs:
        for name in table.split(", "):
            theirs.execute(f"CREATE TABLE {name} (app text, name text)")
    theirs.close()
    before = path.read_bytes()

    with pytest.raises(ModelValidationError, match=f"{path}.*another program"):
        OPENERS[opener](path)
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir() if file.suffix != ".lock"] == ["customers.sqlite"]


def test_a_first_preparation_that_was_cut_short_is_finished_by_the_next(tmp_path: Path) -> None:
    path = tmp_path / "rounds.sqlite"
    with sqlite3.connect(path) as begun:
        begun.execute(
            "CREATE TABLE django_migrations (id integer PRIMARY KEY, app text, name text, applied datetime)"
        )
    begun.close()

    database.prepare_file(path)
    with database.file_connection(path):
        assert database.is_up_to_date()


def test_whoever_owns_a_database_makes_it_for_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "m3web.sqlite3"
    engine = InProcess(gate.configured())
    with database.using(database.Database(path)):
        engine.lock()
    try:
        assert {file.name for file in path.parent.iterdir()} == {path.name, f"{path.name}.lock"}
        assert {stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()} == {0o600}
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    finally:
        engine.unlock()


def test_the_files_of_a_store_are_their_owners_alone(tmp_path: Path) -> None:
    path = tmp_path / "executions.sqlite"
    store = SQLiteExecutionStore(path)
    with MCPTestKit(store=store):
        wait_for((tmp_path / "executions.sqlite-wal").exists, "the first look into the file")
        modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in tmp_path.iterdir()}
    store.close()

    assert {"executions.sqlite", "executions.sqlite-wal"} <= modes.keys()
    assert set(modes.values()) == {0o600}
