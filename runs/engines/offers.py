"""What the process that drives the runs of a database can start: its stdio entries and its local tools.

The holder of the lock writes it into the lock file, so that a program that only submits can tell beforehand whether
its servers and tools will be there when a call needs them (design section 3).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from runs import binding, local_tools


@dataclass(frozen=True, kw_only=True)
class Offers:
    """`entries` are stdio entries by name with their identities, `local_tools` the names after `local:`."""

    entries: Mapping[str, str] = field(default_factory=dict)
    local_tools: frozenset[str] = frozenset()

    def entry_for(self, identity: str) -> str | None:
        """An entry that starts exactly this program."""
        return next((name for name, known in self.entries.items() if known == identity), None)


def here() -> Offers:
    """What this process offers for the current database."""
    return Offers(entries=binding.identities(), local_tools=frozenset(local_tools.names()))


def to_json(offers: Offers) -> str:
    """One line for the lock file."""
    return json.dumps({"entries": dict(offers.entries), "local_tools": sorted(offers.local_tools)})


def from_json(text: str) -> Offers:
    """What another process wrote; a line that cannot be read, as of an older version, offers nothing."""
    try:
        value = json.loads(text)
        return Offers(entries=dict(value["entries"]), local_tools=frozenset(value["local_tools"]))
    except (ValueError, TypeError, KeyError):
        return Offers()
