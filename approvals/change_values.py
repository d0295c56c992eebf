"""A change of a tool as pages and API show it, and what an admin can do about it. Plain module."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from approvals.definition_diff import Difference


@dataclass(frozen=True, kw_only=True)
class Shown:
    """The change of one tool: its full name, what differs, and notes where the differences alone would mislead."""

    tool: str
    differences: tuple[Difference, ...]
    notes: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """For the API."""
        return {
            "tool": self.tool,
            "differences": [one.as_json() for one in self.differences],
            "notes": list(self.notes),
        }


@dataclass(frozen=True, kw_only=True)
class Renewal:
    """A rule that what it was made for has left behind, or that a person has suspended.

    `rule` is its sentence, `tools` how many tools have changed, `token` stands for what is put aside, `may` is whether
    the person who looks may renew it. `in_view` is whether the card beside it shows exactly these changes.
    """

    policy_id: int
    rule: str
    tools: int
    token: str
    may: bool
    in_view: bool = False
