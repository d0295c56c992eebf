"""What has changed since a turn began or a rule was made, as a person reads it before they allow it (R28).

The texts behind the digests come from `runs.definitions`, the sentences from `approvals.definition_diff`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

from approvals.change_values import Shown
from approvals.definition_diff import NOTHING, Definition, Difference, added_tool, differences, moved_server
from approvals.facts import Drifted
from runs import definitions
from runs.canonical import digest
from runs.definitions import Described
from runs.visible import visible

LOST = "How it was described before is not kept any more. This is all that it says of itself now."
UNREADABLE = "Nothing that a person can read has changed in its definition."
GONE = "The server does not list the tool any more."


def drifted_of(context: Mapping[str, Any]) -> Drifted | None:
    """What had changed when an approval was asked, from the facts of its pause."""
    diff = (context.get("verdict") or {}).get("diff")
    return Drifted(**diff) if diff else None


def show(account_id: int, server_name: str, drifted: Drifted) -> Shown:
    """One change in full."""
    return show_all(account_id, server_name, [drifted])[0]


def show_all(account_id: int, server_name: str, changes: Iterable[Drifted]) -> list[Shown]:
    """Changes in full, with two queries for all of them."""
    changes = list(changes)
    texts = definitions.recall(
        account_id, {d for one in changes for d in (one.definition_before, one.definition)}
    )
    places = definitions.addresses(
        account_id, {s for one in changes for s in (one.server_before, one.server)}
    )
    return [_shown(server_name, one, texts, places) for one in changes]


def token(changes: Iterable[Drifted]) -> str:
    """Stands for exactly these changes: posted back with what accepts them, like the digest of a card (R12)."""
    return digest([asdict(one) for one in changes])


def _shown(
    server_name: str, drifted: Drifted, texts: Mapping[str, Described], places: Mapping[str, str]
) -> Shown:
    found: list[Difference] = []
    notes: list[str] = []
    if drifted.server != drifted.server_before:
        found += moved_server(places.get(drifted.server_before, ""), places.get(drifted.server, ""))
    if drifted.definition != drifted.definition_before:
        found += _definition(drifted, texts, notes)
    name = f"{server_name}:{drifted.tool}" if drifted.tool else server_name
    return Shown(tool=visible(name), differences=tuple(found), notes=tuple(notes))


def _definition(drifted: Drifted, texts: Mapping[str, Described], notes: list[str]) -> tuple[Difference, ...]:
    now, before = texts.get(drifted.definition), texts.get(drifted.definition_before)
    if now is None:
        notes.append(GONE)
        return ()
    if not drifted.definition_before:
        return added_tool(drifted.tool, _described(now))
    if before is None:
        notes.append(LOST)
        return differences(NOTHING, _described(now))
    found = differences(_described(before), _described(now))
    if not found:
        notes.append(UNREADABLE)
    return found


def _described(row: Described) -> Definition:
    return Definition(
        title=row.title,
        description=row.description,
        input_schema=row.input_schema,
        output_schema=row.output_schema,
        annotations=row.annotations,
    )
