"""The histories of an account as JSON Lines, with all that somebody else needs to check them (docs/audit.md)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from django.utils import timezone

from runs import audit, events
from runs.canonical import canonical_json
from runs.durations import utc_text
from runs.models import Account, Event, Ledger, LedgerEntry, Run

FORMAT: Final = 1
_PAGE: Final = 500


def lines(account: Account) -> Iterator[str]:
    """The account, its ledger, then each run with its events; every line is a JSON object in canonical form.

    A chain is read up to where it had come when its first line was written; what is appended meanwhile is left out.
    Memory does not grow with the histories.
    """
    ledger = Ledger.objects.filter(account=account).first()
    seq, head = (ledger.seq, ledger.head) if ledger else (0, "")
    about = {"format": FORMAT, "account": account.pk, "slug": account.slug, "at": utc_text(timezone.now())}
    yield _line("account", about | {"seq": seq, "hash": head})
    for entry in _rows(LedgerEntry.objects.filter(account=account, seq__lte=seq), "seq"):
        yield _line("ledger", audit.content(entry) | {"hash": entry.hash})
    for run in _rows(Run.objects.filter(account=account).only("pk", "event_seq", "event_head"), "pk"):
        yield from _of_run(run)


def _of_run(run: Run) -> Iterator[str]:
    yield _line("run", {"run": run.pk, "seq": run.event_seq, "hash": run.event_head})
    for event in _rows(Event.objects.filter(run=run, seq__lte=run.event_seq), "seq"):
        yield _line("event", events.content(event) | {"hash": event.hash})


def _line(kind: str, row: dict[str, Any]) -> str:
    return canonical_json({"kind": kind, **row})


def _rows(rows: Any, key: str) -> Iterator[Any]:
    last = 0
    while page := list(rows.filter(**{f"{key}__gt": last}).order_by(key)[:_PAGE]):
        yield from page
        last = getattr(page[-1], key)
