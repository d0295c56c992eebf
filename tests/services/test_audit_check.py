"""`manage.py audit verify`: whatever somebody changes in the histories by hand is found and named."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.db.models import F, Model

from runs import audit, audit_check, control, events
from runs.models import Account, Event, Ledger, LedgerEntry, Run, User
from runs.round_rows import Decider

MakeRun = Callable[..., Run]


@pytest.fixture
def run(make_run: MakeRun, alice: User) -> Run:
    """A run that has ended, with five events or more, in an account whose ledger has entries before and after."""
    run = make_run()
    audit.note(run.account, alice, "test.before", "x 1")
    for word in ("second", "third"):
        events.record(run, f"test.{word}", {"word": word}, turn=run.turns.get(), actor=alice)
    control.cancel(run.pk, decider=Decider(user=alice, via="page"))
    audit.note(run.account, alice, "test.after", "x 2", {"word": "after"})
    run.refresh_from_db()
    return run


def verify(*options: str) -> tuple[int, str]:
    """Exit status and output of the command."""
    out, err = StringIO(), StringIO()
    try:
        call_command("audit", "verify", *options, stdout=out, stderr=err)
    except SystemExit as ended:
        return int(ended.code or 0), out.getvalue()
    return 0, out.getvalue()


def test_histories_as_they_were_written_pass(run: Run) -> None:
    assert verify() == (0, "1 accounts checked: every history is as it was written.\n")
    assert verify("--account", run.account.slug)[0] == 0


def others(model: type[Model], covered: set[str]) -> set[str]:
    return {field.attname for field in model._meta.concrete_fields} - covered


EVENT_COLUMNS: dict[str, Any] = {
    "account_id": None,
    "turn_id": None,
    "seq": 99,
    "type": "run.completed",
    "payload": {"word": "other"},
    "actor_name": "mallory",
    "at": dt.datetime(2020, 1, 1, tzinfo=dt.UTC),
    "previous": "sha256:0",
    "hash": "sha256:0",
    "run_id": None,
}


def test_every_column_of_an_event_but_its_key_and_the_link_to_the_user_is_tampered_with_below() -> None:
    assert others(Event, set(EVENT_COLUMNS)) == {"id", "actor_id"}


@pytest.mark.parametrize("column", EVENT_COLUMNS)
def test_an_altered_column_of_an_event_is_found(
    run: Run, make_run: MakeRun, other_account: Account, column: str
) -> None:
    value = EVENT_COLUMNS[column]
    if column == "run_id":
        value = make_run().pk
        Event.objects.filter(run=value).delete()
        Run.objects.filter(pk=value).update(event_seq=0, event_head="")
    if column == "account_id":
        value = other_account.pk
    Event.objects.filter(run=run, seq=2).update(**{column: value})

    status, told = verify()
    assert status == 1
    assert f"acme: run {run.pk}, event 2 " in told
    words = {"seq": "is missing", "run_id": "is missing", "account_id": "moved to another account"}
    assert words.get(column, "was altered") in told


LEDGER_COLUMNS: dict[str, Any] = {
    "account_id": None,
    "seq": 99,
    "action": "policy.revoked",
    "subject": "policy 1",
    "facts": {"word": "other"},
    "actor_name": "mallory",
    "at": dt.datetime(2020, 1, 1, tzinfo=dt.UTC),
    "previous": "sha256:0",
    "hash": "sha256:0",
}


def test_every_column_of_an_entry_but_its_key_and_the_link_to_the_user_is_tampered_with_below() -> None:
    assert others(LedgerEntry, set(LEDGER_COLUMNS)) == {"id", "actor_id"}


@pytest.mark.parametrize("column", LEDGER_COLUMNS)
def test_an_altered_column_of_the_ledger_is_found(run: Run, other_account: Account, column: str) -> None:
    value = other_account.pk if column == "account_id" else LEDGER_COLUMNS[column]
    LedgerEntry.objects.filter(account=run.account, seq=1).update(**{column: value})

    status, told = verify("--account", "acme")
    assert status == 1
    assert "acme: ledger, entry 1 " in told
    assert ("is missing" if column in ("seq", "account_id") else "was altered") in told


@pytest.mark.parametrize(
    ("counts", "words"),
    [
        ({"event_seq": 2}, "was inserted; the run has written 2"),
        ({"event_seq": 99}, "is missing; there should be 99"),
        ({"event_head": "sha256:0"}, "is not the one with which the chain ended"),
    ],
    ids=["fewer", "more", "another head"],
)
def test_a_run_that_counts_otherwise_is_found(
    make_run: MakeRun, counts: dict[str, Any], words: str, alice: User
) -> None:
    live = make_run()
    for _ in range(3):
        events.record(live, "test", actor=alice)
    if counts == {"event_seq": 2}:
        counts = {**counts, "event_head": Event.objects.get(run=live, seq=2).hash}
    Run.objects.filter(pk=live.pk).update(**counts)
    status, told = verify()
    assert (status, words in told) == (1, True), told


@pytest.mark.parametrize("seq", [1, 2, 4])
def test_a_deleted_event_is_named_as_missing(run: Run, seq: int) -> None:
    Event.objects.filter(run=run, seq=seq).delete()
    assert verify() == (1, f"acme: run {run.pk}, event {seq} is missing{verify()[1].partition('missing')[2]}")


def test_an_inserted_event_is_found(run: Run) -> None:
    """Made room for by renumbering what follows, with the count of the run set to match."""
    for seq in range(run.event_seq, 1, -1):
        Event.objects.filter(run=run, seq=seq).update(seq=F("seq") + 1)
    copy = Event.objects.get(run=run, seq=1)
    copy.pk, copy.seq, copy.previous = None, 2, copy.hash
    copy.hash = events.chain_hash(copy)
    copy.save(force_insert=True)
    Run.objects.filter(pk=run.pk).update(event_seq=F("event_seq") + 1)

    status, told = verify()
    assert (status, f"run {run.pk}, event 3 was altered" in told) == (1, True), told


def test_events_that_changed_places_are_found(run: Run) -> None:
    for old, new in ((2, 900), (3, 2), (900, 3)):
        Event.objects.filter(run=run, seq=old).update(seq=new)
    status, told = verify()
    assert (status, f"run {run.pk}, event 2 was altered" in told) == (1, True), told


def rewrite(run: Run, *, upto: int | None = None) -> None:
    """Write a run's chain anew from its rows, with its head, as somebody with the whole database could."""
    before, seq = "", 0
    for event in Event.objects.filter(run=run).order_by("seq"):
        if upto is not None and event.seq > upto:
            event.delete()
            continue
        event.previous = before
        event.hash = before = events.chain_hash(event)
        event.save()
        seq = event.seq
    Run.objects.filter(pk=run.pk).update(event_seq=seq, event_head=before)


def test_a_history_that_was_written_anew_as_a_whole_is_found_by_the_ledger(run: Run) -> None:
    Event.objects.filter(run=run, seq=2).update(payload={"word": "other"})
    rewrite(run)
    status, told = verify()
    assert (status, f"run {run.pk}, event {run.event_seq} was replaced" in told) == (1, True), told


def test_a_history_that_was_cut_off_with_its_count_is_found_by_the_ledger(run: Run) -> None:
    rewrite(run, upto=2)
    status, told = verify()
    assert (status, f"event 3 is missing; number {run.event_seq} was there once" in told) == (1, True), told


def test_a_run_that_is_gone_without_a_word_is_found(run: Run) -> None:
    number = run.pk
    Run.objects.filter(pk=number).delete()
    status, told = verify()
    assert (status, f"acme: run {number} is gone" in told) == (1, True), told


def test_a_run_that_comes_back_after_its_deletion_is_found(run: Run) -> None:
    audit.note(run.account, None, audit.DELETED, audit.run_subject(run.pk), audit.head_facts(run))
    status, told = verify()
    assert (status, "tells of its deletion" in told) == (1, True), told


def test_a_run_that_was_made_up_is_found(run: Run, make_run: MakeRun) -> None:
    made_up = make_run()
    events.record(made_up, "run.completed", {"turn": 0, "output": "All went well."})
    status, told = verify()
    assert (status, f"run {made_up.pk}, event 2 ends a turn of whose end" in told) == (1, True), told


def test_an_entry_that_was_cut_off_the_ledger_is_found(run: Run) -> None:
    LedgerEntry.objects.filter(account=run.account).latest("seq").delete()
    status, told = verify()
    assert (status, "ledger, entry 3 is missing; there should be 3" in told) == (1, True), told


def test_a_ledger_that_is_gone_as_a_whole_is_told_by_the_runs(run: Run) -> None:
    Ledger.objects.all().delete()
    LedgerEntry.objects.all().delete()
    status, told = verify()
    assert (status, "of whose end the ledger knows nothing" in told) == (1, True), told


def test_a_ledger_cut_off_with_its_count_is_found_only_by_an_end_that_was_kept(run: Run) -> None:
    out = StringIO()
    call_command("audit", "head", stdout=out)
    kept = out.getvalue().split()[1]
    entry = LedgerEntry.objects.get(seq=2)
    LedgerEntry.objects.filter(seq=3).delete()
    Ledger.objects.update(seq=2, head=entry.hash)
    assert verify()[0] == 0, "nothing in the database tells; docs/audit.md says so"

    status, told = verify("--head", kept)
    assert (status, told) == (1, "acme: ledger, entry 3 is missing; number 3 was there once.\n")


def test_an_end_that_was_kept_is_part_of_the_ledger_however_far_it_has_grown(run: Run) -> None:
    out = StringIO()
    call_command("audit", "head", "--account", "acme", stdout=out)
    kept = out.getvalue().split()[1]
    audit.note(run.account, None, "test", "x 9")
    assert verify("--head", kept)[0] == 0
    other = kept[:-1] + ("0" if kept[-1] != "0" else "1")
    assert "was replaced; its hash is not the one that was kept" in verify("--head", other)[1]


@pytest.mark.skipif("connection.vendor != 'sqlite'", reason="PostgreSQL stores nothing but moments")
def test_a_value_that_cannot_be_read_is_named_and_the_rest_is_checked_all_the_same(
    run: Run, make_run: MakeRun
) -> None:
    other = make_run()
    Event.objects.filter(run=other, seq=1).update(type="other")
    with connection.cursor() as cursor:
        cursor.execute("UPDATE runs_event SET at = 'never' WHERE run_id = %s AND seq = 2", [run.pk])
    status, told = verify()
    assert status == 1
    assert f"run {run.pk}, event 2 cannot be read any more" in told
    assert f"run {other.pk}, event 1 was altered" in told


def test_a_long_history_is_read_in_pages(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit_check, "PAGE", 2)
    assert verify()[0] == 0
    Event.objects.filter(run=run, seq=4).update(type="other")
    assert f"run {run.pk}, event 4 was altered" in verify()[1]


def test_an_account_that_is_not_there_and_a_malformed_end_are_refused(
    run: Run, other_account: Account
) -> None:
    for options in (["--account", "nobody"], ["--head", "1:sha256:" + "0" * 64]):
        with pytest.raises(CommandError):
            verify(*options)
    with pytest.raises(CommandError, match="NUMBER"):
        verify("--account", "acme", "--head", "latest")
