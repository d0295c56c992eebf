"""What the worker asks before every operation. The worker receives the gate as an argument, because `runs` knows
nothing of policies; `approvals.gate` implements it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal, Protocol

from django.conf import settings
from django.utils.module_loading import import_string

from runs.models import Run, ToolCall, Turn


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """The gate's word on one call.

    `code` names the rule of the decision order that matched, `reason` says it in a sentence for the card and the
    journal, `rule_id` is the policy that decided. `remember` lists the scopes a person may remember an allow for.
    """

    effect: Literal["allow", "ask", "deny"]
    code: str
    reason: str
    risk: str = "write"
    rule_id: int | None = None
    subject: str = ""
    """Digest of what was decided about: the server, the tool's definition and its risk as they were then."""
    remember: tuple[str, ...] = ()
    remember_preselected: bool = False
    diff: Mapping[str, str] | None = None
    """Digests of what has changed since the turn began or the rule was made, where that is why it asks."""

    def as_json(self) -> Mapping[str, Any]:
        return {**asdict(self), "remember": list(self.remember)}


class Gate(Protocol):
    def decide(self, run: Run, turn: Turn, call: ToolCall) -> Verdict:
        """Decide one call from what the database holds now. Runs inside the boundary's transaction."""

    def recheck(self, run: Run, turn: Turn, call: ToolCall) -> Verdict:
        """The same decision, changing nothing: what would be said now about a call that was allowed earlier."""


def configured() -> Gate:
    """The gate that the setting `M3_GATE` names, for whoever starts a worker and may not import it."""
    gate: Gate = import_string(settings.M3_GATE)()
    return gate
