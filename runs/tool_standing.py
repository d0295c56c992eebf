"""What counts for a tool and whose word that is, in words for people (design sections 6 and 7).

Plain module. The rules are those of `runs.risk`; here is only why they come out as they do.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from runs.described import DescribedEnum
from runs.risk import STRICT_OUT_OF_THE_BOX, Risk, effective_risk, effectively_idempotent
from runs.steps import Json


class Whose(DescribedEnum):
    """Who said it; the sentence ends a line on the server's page."""

    ADMIN = "admin", "an admin said so"
    OURS = "ours", "always so until an admin says otherwise"
    SERVER = "server", "the server says so, and an admin trusts it"
    READS = "reads", "it only reads"
    NOBODY = "nobody", "nobody said, so the careful answer counts"


@dataclass(frozen=True, kw_only=True)
class Words:
    """What an admin said about a tool; None is "not said", and `replay_allowed` is False unless they allow it (A23)."""

    risk: Risk | None = None
    idempotent: bool | None = None
    replay_allowed: bool = False


@dataclass(frozen=True, kw_only=True)
class Standing:
    """What counts: the risk, whether repeating a call does no harm, and whether one whose result was lost is simply
    made again, each with whose word it is."""

    risk: Risk
    risk_by: Whose
    idempotent: bool
    idempotent_by: Whose
    repeated: bool
    repeated_by: Whose


def standing(words: Words, annotations: Mapping[str, Json], *, trusted: bool, tool: str) -> Standing:
    """How a tool stands; `annotations` are its server's own and `tool` is its name without the server."""
    risk = effective_risk(admin=words.risk, annotations=annotations, trusted=trusted, tool=tool)
    idempotent = effectively_idempotent(
        admin=words.risk, admin_idempotent=words.idempotent, annotations=annotations, trusted=trusted
    )
    idempotent_by = _idempotent_by(words, annotations, trusted, idempotent)
    return Standing(
        risk=risk,
        risk_by=_risk_by(words, annotations, trusted, tool),
        idempotent=idempotent,
        idempotent_by=idempotent_by,
        repeated=words.replay_allowed or idempotent,
        repeated_by=Whose.ADMIN if words.replay_allowed else idempotent_by,
    )


def _risk_by(words: Words, annotations: Mapping[str, Json], trusted: bool, tool: str) -> Whose:
    if words.risk is not None:
        return Whose.ADMIN
    if tool in STRICT_OUT_OF_THE_BOX:
        return Whose.OURS
    said = any(annotations.get(hint) is True for hint in ("destructiveHint", "readOnlyHint"))
    return Whose.SERVER if trusted and said else Whose.NOBODY


def _idempotent_by(words: Words, annotations: Mapping[str, Json], trusted: bool, idempotent: bool) -> Whose:
    if words.idempotent is not None:
        return Whose.ADMIN
    if effective_risk(admin=words.risk, annotations=annotations, trusted=trusted) is Risk.READ:
        return Whose.READS
    return Whose.SERVER if idempotent else Whose.NOBODY
