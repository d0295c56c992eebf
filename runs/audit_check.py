"""Checking the histories of an account against themselves, each other, and hashes that were kept elsewhere.

Reads while the installation runs: what is appended meanwhile is left to the next look. Memory does not grow with the
histories: rows come in pages, and the heads of one run at a time.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from django.db.models import Max, QuerySet

from runs import audit, events
from runs.chains import Break, End, Link, first_break
from runs.models import Account, Event, Ledger, LedgerEntry, Run
from runs.run_states import Outcome

PAGE: Final = 500

_ENDS: Final = [f"run.{outcome.value}" for outcome in Outcome]
_UNREADABLE: Final = (ValueError, AttributeError)
"""What comes of a value that is no JSON, or of a moment that is none and reads as None."""

_RUN: Final = re.compile(r"run ([0-9]{1,18})")


@dataclass(frozen=True, kw_only=True)
class Problem:
    """The first thing that is wrong with one chain; `seq` is the row's number in it, None where it is about no row."""

    account: str
    chain: str
    seq: int | None
    what: str

    def __str__(self) -> str:
        row = "" if self.seq is None else f", {'entry' if self.chain == 'ledger' else 'event'} {self.seq}"
        return f"{self.account}: {self.chain}{row} {self.what}."


def check(account: Account, *, anchors: Mapping[int, str] | None = None) -> Iterator[Problem]:
    """Everything that does not fit, at most one per chain and missing run: the ledger first, then the runs.

    `anchors` are hashes of ledger entries that were kept outside of the database, by number.
    """
    found = _check_ledger(account, anchors or {})
    if found is not None:
        yield Problem(account=account.slug, chain="ledger", seq=found.seq, what=found.what)
    yield from _missing_runs(account)
    for page in _pages(Run.objects.filter(account=account), "pk"):
        for (run_id,) in page:
            found = check_run(account, run_id)
            if found is not None:
                yield Problem(account=account.slug, chain=f"run {run_id}", seq=found.seq, what=found.what)


def check_run(account: Account, run_id: int) -> Break | None:
    """The first thing that is wrong with the history of a run; None also for one that is gone by now."""
    pins = _heads(account, run_id)
    top = Event.objects.filter(run=run_id).aggregate(top=Max("seq"))["top"] or 0
    counted = Run.objects.filter(pk=run_id).values_list("event_seq", "event_head").first()
    if counted is None:
        return None
    end = End(seq=counted[0], head=counted[1])
    found = first_break(_links(Event.objects.filter(run=run_id), _event_link(account), end.seq), end, pins)
    if found is None and top > end.seq:
        return Break(seq=end.seq + 1, what=f"was inserted; the run has written {end.seq}")
    return found or _unsealed(account, run_id, end.seq)


def _unsealed(account: Account, run_id: int, seq: int) -> Break | None:
    """A turn that ended and left no word in the ledger: somebody wrote its end, or its whole run, by hand."""
    ended = Event.objects.filter(run=run_id, seq__lte=seq, type__in=_ENDS).aggregate(last=Max("seq"))["last"]
    if ended is None or ended <= max(_heads(account, run_id), default=0):
        return None
    return Break(seq=ended, what="ends a turn of whose end the ledger knows nothing")


def _heads(account: Account, run_id: int) -> dict[int, str]:
    """{number: hash} of the events of a run that the ledger holds."""
    noted = LedgerEntry.objects.filter(account=account, subject=audit.run_subject(run_id), action=audit.HEAD)
    heads: dict[int, str] = {}
    for facts in noted.values_list("facts", flat=True).iterator(chunk_size=PAGE):
        if isinstance(facts, dict) and isinstance(facts.get("seq"), int):
            heads[facts["seq"]] = str(facts.get("hash"))
    return heads


def _check_ledger(account: Account, anchors: Mapping[int, str]) -> Break | None:
    entries = LedgerEntry.objects.filter(account=account)
    top = entries.aggregate(top=Max("seq"))["top"] or 0
    row = Ledger.objects.filter(account=account).first()
    end = End(seq=row.seq, head=row.head) if row else End(seq=0, head="")
    found = first_break(_links(entries, _entry_link, end.seq), end, anchors)
    if found is None and top > end.seq:
        return Break(seq=end.seq + 1, what=f"was inserted; the ledger has written {end.seq}")
    return found


def _missing_runs(account: Account) -> Iterator[Problem]:
    """Runs of which the ledger holds heads and that are neither there nor recorded as deleted, and the reverse."""
    entries = LedgerEntry.objects.filter(account=account, action__in=[audit.HEAD, audit.DELETED])
    told: set[str] = set()
    for page in _pages(entries, "seq", "action", "subject"):
        there = _existing(account, {subject for _, _, subject in page})
        deleted = _deleted(account, {subject for _, _, subject in page} - there)
        for seq, action, subject in page:
            if subject in told:
                continue
            what = ""
            if action == audit.DELETED and subject in there:
                what = f"is there, although entry {seq} of the ledger tells of its deletion"
            elif action == audit.HEAD and subject not in there and subject not in deleted:
                what = f"is gone, and the ledger, which holds its history's hash in entry {seq}, tells of no deletion"
            if what:
                told.add(subject)
                yield Problem(account=account.slug, chain=subject, seq=None, what=what)


def _existing(account: Account, subjects: set[str]) -> set[str]:
    ids = [int(found[1]) for subject in subjects if (found := _RUN.fullmatch(subject))]
    present = Run.objects.filter(account=account, pk__in=ids).values_list("pk", flat=True)
    return {audit.run_subject(pk) for pk in present}


def _deleted(account: Account, subjects: set[str]) -> set[str]:
    deletions = LedgerEntry.objects.filter(account=account, action=audit.DELETED, subject__in=subjects)
    return set(deletions.values_list("subject", flat=True))


def _links(rows: QuerySet[Any], link: Callable[[Any], Link], until: int) -> Iterator[Link]:
    """The rows of a chain up to number `until`, each as a link; one whose values cannot be read is one with a fault."""
    last = 0
    while last < until:
        page = _readable(rows.filter(seq__gt=last, seq__lte=until).order_by("seq"), link)
        if not page:
            return
        yield from page
        last = page[-1].seq


def _readable(rows: QuerySet[Any], link: Callable[[Any], Link]) -> list[Link]:
    try:
        return [link(row) for row in rows[:PAGE]]
    except _UNREADABLE:
        found = []
        for seq in rows.values_list("seq", flat=True)[:PAGE]:
            try:
                found.append(link(rows.get(seq=seq)))
            except _UNREADABLE:
                found.append(Link(seq=seq, content={}, previous="", hash="", fault="cannot be read any more"))
        return found


def _event_link(account: Account) -> Callable[[Event], Link]:
    def link(event: Event) -> Link:
        fault = "" if event.account_id == account.pk else "was moved to another account"
        return Link(
            seq=event.seq,
            content=events.content(event),
            previous=event.previous,
            hash=event.hash,
            fault=fault,
        )

    return link


def _entry_link(entry: LedgerEntry) -> Link:
    return Link(seq=entry.seq, content=audit.content(entry), previous=entry.previous, hash=entry.hash)


def _pages(rows: QuerySet[Any], key: str, *fields: str) -> Iterator[list[tuple[Any, ...]]]:
    """The values of `key`, an ascending unique number, and of `fields`, in pages."""
    last = 0
    while page := list(rows.filter(**{f"{key}__gt": last}).order_by(key).values_list(key, *fields)[:PAGE]):
        yield page
        last = page[-1][0]
