"""How much a tool can do: the classes of risk, and whose word about it counts.

Plain module. Sources: design sections 6 and 7 ("effective value"), m8tes-http 4.3.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from runs.described import DescribedEnum
from runs.steps import Json


class Risk(DescribedEnum):
    """What a call to a tool can do; `word` and `describe` are what a card shows, next to an icon (R47)."""

    READ = "read", "Looks things up and changes nothing."
    WRITE = "write", "May change things."
    MONEY = "money", "Moves or commits money."
    ACCESS = "access", "Changes who may get at what."
    DESTROY = "destroy", "May delete or overwrite what cannot be brought back."
    STRICT = "strict", "Always needs the decision of a person."
    BLOCKED = "blocked", "Never runs here."

    @property
    def word(self) -> str:
        """The one word on the card: "Money"."""
        return self.value.capitalize()


HIGH_STAKES: Final = frozenset({Risk.MONEY, Risk.ACCESS, Risk.DESTROY})
"""Risks that ask by default in approval and plan mode and never preselect remember (m8tes-http 4.3)."""

STRICT_OUT_OF_THE_BOX: Final = frozenset({"decide_value_observation"})
"""Tool names that are strict on any server until an admin says otherwise (m8tes-http 4.3)."""

ROUTINE_TARGETS: Final = frozenset(
    {"local:Agent", "local:Task", "local:attach_app", "local:pause_schedule", "local:resume_schedule"}
)
"""Spawning an agent or a task, and routine task setup: safe unless an admin raised their risk (4.3)."""


def effective_risk(
    *, admin: Risk | None, annotations: Mapping[str, Json], trusted: bool, tool: str | None = None
) -> Risk:
    """The risk that counts for a tool.

    `admin` is the word of an admin and beats everything; `tool` is the tool's name without its server, for
    the tools that are strict out of the box; `annotations` are the server's own MCP annotations and count
    only if an admin marked the server `trusted`. What nobody vouches for is write. A tool that is annotated
    both read-only and destructive counts as destructive.
    """
    if admin is not None:
        return admin
    if tool in STRICT_OUT_OF_THE_BOX:
        return Risk.STRICT
    # Only a JSON true counts: a server's "true" or 1 is not a statement that we rely on.
    if trusted and annotations.get("destructiveHint") is True:
        return Risk.DESTROY
    if trusted and annotations.get("readOnlyHint") is True:
        return Risk.READ
    return Risk.WRITE


def is_safe(risk: Risk, target: str) -> bool:
    """Whether a call may run in approval mode, and before an approved plan, without asking (step 10).

    `target` is the full name `server:tool`. The routine targets are safe only while nobody raised their risk.
    """
    return risk is Risk.READ or (risk is Risk.WRITE and target in ROUTINE_TARGETS)


def effectively_idempotent(
    *, admin: Risk | None, admin_idempotent: bool | None, annotations: Mapping[str, Json], trusted: bool
) -> bool:
    """Whether a call may be made again when nobody knows if it took effect (durable-elicitation, table).

    True for a tool that is effectively read-only, and for one that an admin (`admin_idempotent`, None = said
    nothing) or the annotation of a trusted server calls idempotent.
    """
    if admin_idempotent is not None:
        return admin_idempotent
    if effective_risk(admin=admin, annotations=annotations, trusted=trusted) is Risk.READ:
        return True
    return trusted and annotations.get("idempotentHint") is True
