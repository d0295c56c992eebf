"""Answers that a submission gives in advance: which of them fits what a server asks. Plain module.

A plan is a list of entries {"match": {...}, "response": {...}, "used": round id or null} as a turn stores it; an entry
answers one request, in the order of the list. A round is answered by the plan as a whole or not at all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, Literal

from runs.canonical import digest

PlannedMatch = Literal["message", "key", "server", "operation", "schema_digest"]
"""What an entry may be matched by."""

Entry = Mapping[str, Any]


def entry(match: Mapping[str, str | None], response: Mapping[str, Any]) -> dict[str, Any]:
    """A new entry in the stored shape."""
    wanted = {name: value for name, value in match.items() if value is not None}
    return {"match": wanted, "response": dict(response), "used": None}


def choose(
    plan: Sequence[Entry], requests: Mapping[str, Mapping[str, Any]], *, server: str, operation: str
) -> dict[str, int] | None:
    """For each request the index of the entry that answers it; None if any request has none left."""
    chosen: dict[str, int] = {}
    for key, request in requests.items():
        facts = {**_facts(request), "key": key, "server": server, "operation": operation}
        free = (
            index
            for index, planned in enumerate(plan)
            if planned["used"] is None and index not in chosen.values() and _fits(planned["match"], facts)
        )
        index = next(free, None)
        if index is None:
            return None
        chosen[key] = index
    return chosen


def schema_digest(schema: Mapping[str, Any]) -> str:
    """The digest by which a predefined answer names a form."""
    return digest(schema)


def _facts(request: Mapping[str, Any]) -> dict[str, str]:
    schema = request.get("requested_schema")
    return {
        "message": str(request.get("message", "")),
        "schema_digest": schema_digest(schema) if isinstance(schema, Mapping) else "",
    }


def _fits(match: Mapping[str, str], facts: Mapping[str, str]) -> bool:
    return all(
        fnmatchcase(facts[name], wanted) if name == "message" else facts[name] == wanted
        for name, wanted in match.items()
    )
