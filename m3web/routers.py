"""Which tables belong into which database."""

from __future__ import annotations

from django.db import connections


class QueueOnPostgres:
    """procrastinate's tables are PostgreSQL's alone. A program's own SQLite file (`SQLiteManagedInputStore`) does
    without them, also where the installation beside it is on PostgreSQL."""

    def allow_migrate(self, db: str, app_label: str, **hints: object) -> bool | None:
        if app_label == "procrastinate" and connections[db].vendor != "postgresql":
            return False
        return None
