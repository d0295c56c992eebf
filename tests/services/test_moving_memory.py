"""A long history needs no more memory to move than a short one."""

from __future__ import annotations

import datetime as dt
import gc
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from m3web.moving import exporting, importing, secrets
from runs import events
from runs.audit_check import check_run
from runs.models import Account, Event, Run
from tests.services.moving import wipe

pytestmark = pytest.mark.django_db(transaction=True)

MANY = 20_000
MOST = 10 * 2**20
"""Bytes; the rows themselves are more than twice as large."""


def lengthen(run: Run) -> None:
    """Give a run a long history, chained as `events.record` would."""
    run.refresh_from_db()
    found = []
    for seq in range(run.event_seq + 1, MANY + 1):
        event = Event(account_id=run.account_id, run=run, seq=seq, type="say", actor_name="worker")
        event.payload, event.at = {"text": f"{seq} " + "x" * 800}, dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
        event.previous = run.event_head
        run.event_head = event.hash = events.chain_hash(event)
        found.append(event)
    Event.objects.bulk_create(found, batch_size=500)
    Run.objects.filter(pk=run.pk).update(event_seq=MANY, event_head=run.event_head)


def growth(work: Callable[[], object]) -> int:
    """By how many bytes the process grew at most during `work`."""
    gc.collect()
    Path("/proc/self/clear_refs").write_text("5")  # the highest so far is what it is now
    before = memory("VmRSS")
    work()
    return memory("VmHWM") - before


def memory(name: str) -> int:
    found = re.search(rf"^{name}:\s+(\d+) kB$", Path("/proc/self/status").read_text(), re.MULTILINE)
    assert found is not None
    return int(found[1]) * 1024


def test_twenty_thousand_events_move_in_little_memory(
    tmp_path: Path, account: Account, make_run: Callable[..., Run]
) -> None:
    run, file = make_run(), tmp_path / "acme"
    lengthen(run)
    assert growth(lambda: exporting.hand_over(account, file, alone=True)) < MOST
    assert file.stat().st_size > 2 * MOST
    wipe(account)
    assert growth(lambda: importing.load(file, secrets.own())) < MOST
    assert Event.objects.filter(run=run).count() == MANY
    assert check_run(Account.objects.get(), run.pk) is None
