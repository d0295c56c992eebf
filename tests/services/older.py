"""Databases as an older version of the product left them."""

from __future__ import annotations

from django.db import connection
from django.db.migrations.executor import MigrationExecutor


def stepwise() -> MigrationExecutor:
    """Migrates the current database as an installation did that was there before the one step was."""
    executor = MigrationExecutor(connection)
    executor.loader.replace_migrations = False
    executor.loader.build_graph()
    return executor
