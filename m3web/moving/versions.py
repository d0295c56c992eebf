"""Which tables a database has: those of this version, or of another."""

from __future__ import annotations

from django.db import connection
from django.db.migrations.executor import MigrationExecutor

APPS = ("runs", "approvals")


def migrations() -> dict[str, list[str]]:
    """The newest migrations of our apps in this version's code."""
    graph = MigrationExecutor(connection).loader.graph
    return {app: sorted(name for _, name in graph.leaf_nodes(app)) for app in APPS}


def is_empty() -> bool:
    """Whether nothing has been put into the database yet."""
    return not connection.introspection.table_names()
