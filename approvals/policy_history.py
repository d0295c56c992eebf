"""Who did what to a rule, and when, as the account's ledger has it; it is there when the rule is gone (R27)."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from django.db.models import QuerySet
from django.utils.dateparse import parse_datetime

from approvals.models import Change, Policy
from runs.access import Actor, visible
from runs.models import LedgerEntry

PAGE: Final = 50
_KIND: Final = "policy "

_WORDS: Final = {
    Change.MADE: ("check", "Made"),
    Change.RENEWED: ("success", "Renewed"),
    Change.EDITED: ("message", "Changed"),
    Change.SUSPENDED: ("warn", "Suspended"),
    Change.REVOKED: ("cross", "Revoked"),
}


@dataclass(frozen=True, kw_only=True)
class Told:
    """One change of a rule: `word` is what was done, `notes` what else there is to know.

    `gone` is whether the rule is not there any more.
    """

    seq: int
    rule_id: int
    icon: str
    word: str
    sentence: str
    who: str
    at: dt.datetime
    notes: tuple[str, ...]
    gone: bool = False


def history_of(actor: Actor, policy_id: int) -> Sequence[Told]:
    """Everything that was done to one rule, newest first; nothing for a rule that never was, or of another account."""
    rows = list(_entries(actor).filter(subject=f"{_KIND}{policy_id}"))
    return _told(actor, rows)


def history(actor: Actor, *, before: int | None) -> tuple[Sequence[Told], int | None]:
    """A page of what was done to any rule, newest first, and the number to go on before, if there is more."""
    rows = _entries(actor) if before is None else _entries(actor).filter(seq__lt=before)
    found = list(rows[: PAGE + 1])
    return _told(actor, found[:PAGE]), found[PAGE - 1].seq if len(found) > PAGE else None


def _entries(actor: Actor) -> QuerySet[LedgerEntry]:
    rows = visible(actor, LedgerEntry.objects.filter(action__startswith="policy."))
    return rows.order_by("-seq")


def _told(actor: Actor, rows: Sequence[LedgerEntry]) -> list[Told]:
    ids = {row.pk: int(row.subject.removeprefix(_KIND)) for row in rows}
    there = set(visible(actor, Policy.objects.filter(pk__in=ids.values())).values_list("pk", flat=True))
    return [_one(row, ids[row.pk], gone=ids[row.pk] not in there) for row in rows]


def _one(row: LedgerEntry, rule_id: int, *, gone: bool) -> Told:
    icon, word = _WORDS[Change(row.action.removeprefix("policy."))]
    return Told(
        seq=row.seq,
        rule_id=rule_id,
        icon=icon,
        word=word,
        sentence=row.facts.get("sentence", ""),
        who=row.actor_name,
        at=row.at,
        notes=tuple(_notes(row.facts)),
        gone=gone,
    )


def differences(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """What is another in a rule, as `approvals.policies.said` and `saying` have it, in words."""
    words = (("End", "expires_at", _end), ("Note", "note", _quoted), ("Suspended", "suspended", _reason))
    return [
        f"{name}: {word(before.get(key))} → {word(after.get(key))}"
        for name, key, word in words
        if before.get(key) != after.get(key)
    ]


def _notes(facts: Mapping[str, Any]) -> list[str]:
    reason = [facts["reason"]] if facts.get("reason") else []
    return reason + differences(facts.get("before") or {}, facts.get("after") or {})


def _end(moment: str | None) -> str:
    found = parse_datetime(moment or "")
    return f"{found.day} {found:%B %Y, %H:%M} UTC" if found else "when it is revoked"


def _quoted(text: str | None) -> str:
    return f"“{text}”" if text else "none"


def _reason(text: str | None) -> str:
    return text or "no"
