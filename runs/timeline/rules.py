"""The policies that a timeline names: what they say now, or what the ledger says of those that are gone (R27).

This package knows no policies. Whoever has them tells it once, at the start, how to look them up.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from runs.models import LedgerEntry

Lookup = Callable[[int, Collection[int]], Mapping[int, str]]
"""Account and ids of policies in, the sentences of those that there are out; one query."""

GONE = "It is gone."


@dataclass(frozen=True, kw_only=True)
class Named:
    """A policy in words; `gone` says what became of it, "" while it is there."""

    sentence: str
    gone: str = ""


def _none(account_id: int, ids: Collection[int]) -> Mapping[int, str]:
    return {}


_lookup: Lookup = _none


def use(lookup: Lookup) -> None:
    """Look policies up with `lookup` from now on."""
    global _lookup
    _lookup = lookup


def named(account_id: int, ids: Collection[int]) -> Mapping[int, Named]:
    """Each of these policies in words, with at most two queries for all of them."""
    if not ids:
        return {}
    there = _lookup(account_id, ids)
    gone = [one for one in ids if one not in there]
    return {one: Named(sentence=sentence) for one, sentence in there.items()} | _gone(account_id, gone)


def _gone(account_id: int, ids: Collection[int]) -> dict[int, Named]:
    found = {one: Named(sentence="", gone=GONE) for one in ids}
    if not ids:
        return found
    last_words = (
        LedgerEntry.objects.filter(account=account_id, subject__in=[f"policy {one}" for one in ids])
        .order_by("seq")
        .values_list("subject", "action", "facts", "actor_name", "at")
    )
    for subject, action, facts, who, at in last_words:
        said = str(facts.get("sentence") or "") if isinstance(facts, dict) else ""
        became = f"{who} revoked it on {_moment(at)}." if action == "policy.revoked" else GONE
        found[int(subject.removeprefix("policy "))] = Named(sentence=said, gone=became)
    return found


def _moment(at: dt.datetime) -> str:
    moment = at.astimezone(dt.UTC)
    return f"{moment.day} {moment:%B %Y, %H:%M} UTC"
