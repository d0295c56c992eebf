"""An installation that is brought up to date keeps the texts of what its servers list now (R28)."""

from __future__ import annotations

from importlib import import_module

from django.apps import apps
from django.db import connection

from runs.models import SeenDefinition, Server, Tool

migration = import_module("runs.migrations.0004_seen_definitions")


def test_what_is_listed_is_kept_once(desk: Server) -> None:
    Tool.objects.create(server=desk, name="unlisted", digest="")
    for _ in range(2):
        migration.keep_what_is_listed(apps, connection.schema_editor)
    listed = Tool.objects.exclude(digest="").values_list("digest", "description")
    assert set(SeenDefinition.objects.values_list("digest", "description")) == set(listed)
    assert SeenDefinition.objects.count() == 3
