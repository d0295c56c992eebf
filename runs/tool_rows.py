"""The rows of a server's tools, brought in line with what the server lists now."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from django.utils import timezone

from runs import definitions
from runs.mcp_client import ToolDefinition
from runs.models import Server, Tool
from runs.models.exact import is_plain, shown
from runs.visible import visible

MAX_NAME = 200
"""Characters of a tool name that a row can hold."""

_LISTED = [
    "title",
    "description",
    "input_schema",
    "output_schema",
    "annotations",
    "digest",
    "position",
    "present",
    "changed_at",
]
"""What a listing may overwrite: everything but the words of an admin."""


def store_tools(server: Server, listed: Sequence[ToolDefinition]) -> list[str]:
    """Insert, update or mark as gone; returns sentences about definitions that could not be kept.

    An admin's risk survives every change. `changed_at` moves when a known tool's digest does (R28), and the text behind
    every digest is kept. One statement writes all rows, so five hundred tools cost as little as five.
    """
    known = {name: (digest, changed_at) for name, digest, changed_at in _known(server)}
    now = timezone.now()
    kept = {one.name: one for one in listed if _nameable(one.name)}
    rows = [_row(server, one, position, known, now) for position, one in enumerate(kept.values())]
    Tool.objects.bulk_create(
        rows, update_conflicts=True, unique_fields=["server", "name"], update_fields=_LISTED
    )
    definitions.keep(server.account_id, list(kept.values()))
    gone = known.keys() - kept.keys()
    Tool.objects.filter(server=server, name__in=gone, present=True).update(present=False, changed_at=now)
    return [_left_out(one.name) for one in listed if not _nameable(one.name)]


def _left_out(name: str) -> str:
    if len(name) > MAX_NAME:
        return (
            f"The tool “{visible(name[:60])}…” was left out: its name is longer than {MAX_NAME} characters."
        )
    return f"The tool “{visible(name[:60])}” was left out: its name has characters that cannot be stored."


def _nameable(name: str) -> bool:
    return len(name) <= MAX_NAME and is_plain(name)


def _known(server: Server) -> list[tuple[str, str, datetime | None]]:
    return list(Tool.objects.filter(server=server).values_list("name", "digest", "changed_at"))


def _row(
    server: Server,
    definition: ToolDefinition,
    position: int,
    known: Mapping[str, tuple[str, datetime | None]],
    now: datetime,
) -> Tool:
    before, changed_at = known.get(definition.name, (definition.digest, None))
    return Tool(
        server=server,
        name=definition.name,
        title=shown(definition.title or "", MAX_NAME),
        description=definition.description,
        input_schema=dict(definition.input_schema),
        output_schema=dict(definition.output_schema) if definition.output_schema is not None else None,
        annotations=dict(definition.annotations),
        digest=definition.digest,
        position=position,
        present=True,
        # A row without a digest was made by an admin's word before the server ever listed the tool.
        changed_at=changed_at if before in ("", definition.digest) else now,
    )
