"""Hash chains: what a row's hash covers, and where a chain first breaks. Plain module.

The format is for good: chains that were written yesterday have to be checked tomorrow, and by others (docs/audit.md).
A hash is `sha256:` and the hexadecimal SHA-256 of the canonical JSON of a row's content, with the hash before it.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from runs.canonical import NotJson, digest
from runs.durations import utc_text


def event_content(
    *,
    run: int | None,
    turn: object | None,
    seq: int,
    type_: str,
    payload: Any,
    actor: str,
    at: dt.datetime,
    previous: str,
) -> dict[str, Any]:
    """What the hash of an event of a run covers."""
    return {
        "run": run,
        "turn": str(turn) if turn else None,
        "seq": seq,
        "type": type_,
        "payload": payload,
        "actor": actor,
        "at": utc_text(at),
        "previous": previous,
    }


def entry_content(
    *,
    account: int,
    seq: int,
    action: str,
    subject: str,
    facts: Any,
    actor: str,
    at: dt.datetime,
    previous: str,
) -> dict[str, Any]:
    """What the hash of an entry of an account's ledger covers."""
    return {
        "account": account,
        "seq": seq,
        "action": action,
        "subject": subject,
        "facts": facts,
        "actor": actor,
        "at": utc_text(at),
        "previous": previous,
    }


@dataclass(frozen=True, kw_only=True)
class Link:
    """One row of a chain. `fault` is what is wrong with it whatever its hash says, as the end of a sentence."""

    seq: int
    content: Mapping[str, Any]
    previous: str
    hash: str
    fault: str = ""


@dataclass(frozen=True, kw_only=True)
class End:
    """Where a chain ends according to the row that counts it."""

    seq: int
    head: str


@dataclass(frozen=True, kw_only=True)
class Break:
    """The first row that does not fit, and what is wrong, as the end of a sentence about it."""

    seq: int
    what: str


def first_break(links: Iterable[Link], end: End, pins: Mapping[int, str] | None = None) -> Break | None:
    """Walk a chain from its beginning to its end; None if every row is the one that was written.

    `links` are the rows up to `end.seq`, in order. `pins` are hashes that something outside of the chain holds, by
    number: somebody who wrote the whole chain anew cannot have changed those.
    """
    pins = pins or {}
    number, before = 0, ""
    for link in links:
        number += 1
        found = _break_at(link, number, before) or _unpinned(link, pins)
        if found is not None:
            return found
        before = link.hash
    if number < end.seq:
        return Break(seq=number + 1, what=f"is missing; there should be {end.seq}")
    later = min((seq for seq in pins if seq > end.seq), default=None)
    if later is not None:
        return Break(seq=end.seq + 1, what=f"is missing; number {later} was there once")
    if end.head != before:
        return Break(seq=number, what="is not the one with which the chain ended")
    return None


def _break_at(link: Link, number: int, before: str) -> Break | None:
    if link.seq > number:
        return Break(seq=number, what="is missing")
    if link.seq < number:
        return Break(seq=link.seq, what="was inserted; its number is no number of this chain")
    if link.fault:
        return Break(seq=number, what=link.fault)
    if not _hashes(link):
        return Break(seq=number, what="was altered; its content does not give its hash")
    if link.previous == before:
        return None
    if number == 1:
        return Break(seq=1, what="was put at the beginning; it follows on something that is not there")
    return Break(
        seq=number - 1,
        what=f"was replaced, or rows after it were taken out; number {number} follows on another",
    )


def _hashes(link: Link) -> bool:
    try:
        return digest(link.content) == link.hash
    except NotJson:
        return False


def _unpinned(link: Link, pins: Mapping[int, str]) -> Break | None:
    if pins.get(link.seq, link.hash) == link.hash:
        return None
    return Break(seq=link.seq, what="was replaced; its hash is not the one that was kept elsewhere")
