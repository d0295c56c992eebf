"""A new database is made in one step, an older one goes on step by step, and both come out the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from runs.database import file_connection, is_up_to_date
from tests.services.older import stepwise

pytestmark = pytest.mark.django_db

Target = tuple[str, str]


def last_steps(executor: MigrationExecutor) -> list[Target]:
    nodes = [
        node
        for node in executor.loader.graph.leaf_nodes()
        if not executor.loader.disk_migrations[node].replaces
    ]
    later = {app for app, _ in nodes}
    replaced = {name for step in executor.loader.disk_migrations.values() for name in step.replaces}
    return nodes + [
        max(name for name in replaced if name[0] == app) for app in ("runs", "approvals") if app not in later
    ]


def schema(path: Path) -> dict[str, Any]:
    """What each table consists of, in whatever order its columns came, and every index."""
    with file_connection(path), connection.cursor() as cursor:
        cursor.execute("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL")
        return {
            name: parts(sql) if sql.startswith("CREATE TABLE") else sql for name, sql in cursor.fetchall()
        }


def parts(sql: str) -> set[str]:
    """The columns and constraints of a CREATE TABLE: what its outermost commas separate."""
    found, depth = [""], 0
    for sign in sql[sql.index("(") + 1 : sql.rindex(")")]:
        depth += (sign == "(") - (sign == ")")
        if sign == "," and depth == 0:
            found.append("")
        else:
            found[-1] += sign
    return {part.strip() for part in found}


def test_the_one_step_makes_what_the_single_steps_make(tmp_path: Path) -> None:
    with file_connection(tmp_path / "single"):
        executor = stepwise()
        executor.migrate(last_steps(executor))
    with file_connection(tmp_path / "one"):
        executor = MigrationExecutor(connection)
        executor.migrate(executor.loader.graph.leaf_nodes())
    one, single = schema(tmp_path / "one"), schema(tmp_path / "single")
    assert one.keys() == single.keys()
    assert {name: what for name, what in one.items() if what != single[name]} == {}


def test_a_database_that_stopped_between_two_steps_goes_on_from_there(tmp_path: Path) -> None:
    with file_connection(tmp_path / "older"):
        stepwise().migrate([("runs", "0010_webhooks"), ("approvals", "0004_policy_changes_in_ledger")])
        executor = MigrationExecutor(connection)
        executor.migrate(executor.loader.graph.leaf_nodes())
        assert is_up_to_date()
        assert {("runs", "0014_secret_proof"), ("approvals", "0004_policy_changes_in_ledger")} <= set(
            MigrationExecutor(connection).loader.applied_migrations
        )
