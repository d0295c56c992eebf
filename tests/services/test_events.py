"""The history of a run: without gaps, chained, and announced only once it is true (design section 2, house style 3)."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.db import connections, transaction

from runs import events, push
from runs.models import Event, Round, Run, User

MakeRun = Callable[..., Run]


@pytest.fixture
def hints(monkeypatch: pytest.MonkeyPatch) -> list[tuple[tuple[str, ...], dict[str, Any]]]:
    """(groups, hint) of everything that was sent, in order."""
    sent: list[tuple[tuple[str, ...], dict[str, Any]]] = []
    monkeypatch.setattr(
        push, "_send", lambda hints: sent.extend((groups, dict(hint)) for groups, hint in hints)
    )
    return sent


def first_broken(run: Run) -> int | None:
    """Recompute a run's chain; the number of the first row that does not fit, None if all do."""
    before, seq = "", 0
    for event in Event.objects.filter(run=run).order_by("seq"):
        seq += 1
        if (event.seq, event.previous, event.hash) != (seq, before, events.chain_hash(event)):
            return seq
        before = event.hash
    run.refresh_from_db()
    return None if (run.event_seq, run.event_head) == (seq, before) else seq + 1


def test_the_chain_of_a_real_history_recomputes(make_round: Callable[..., Round], alice: User) -> None:
    run = make_round().run
    events.record(run, "test.values", {"number": 0.1, "text": "Grüße 👋", "none": None, "list": [1, {}]})
    events.record(run, "test.by_alice", actor=alice)

    assert list(Event.objects.filter(run=run).values_list("seq", flat=True)) == [1, 2, 3, 4]
    assert first_broken(run) is None


@pytest.mark.parametrize(
    "altered",
    [
        {"payload": {"message": "something else"}},
        {"type": "run.completed"},
        {"actor_name": "mallory"},
        {"at": "2020-01-01T00:00:00Z"},
        {"turn": None},
        {"previous": "sha256:0"},
        {"hash": "sha256:0"},
    ],
    ids=lambda change: next(iter(change)),
)
def test_an_altered_row_is_found_by_recomputing(make_run: MakeRun, altered: dict[str, Any]) -> None:
    run = make_run()
    events.record(run, "test.second")
    Event.objects.filter(run=run, seq=1).update(**altered)

    assert first_broken(run) == 1


@pytest.mark.parametrize(("missing", "found_at"), [(2, 2), (3, 3)], ids=["in the middle", "at the end"])
def test_a_row_that_was_taken_out_is_found(make_run: MakeRun, missing: int, found_at: int) -> None:
    run = make_run()
    for word in ("second", "third"):
        events.record(run, f"test.{word}")
    Event.objects.filter(run=run, seq=missing).delete()

    assert first_broken(run) == found_at


def test_a_person_is_named_and_otherwise_the_words_given(make_run: MakeRun, alice: User) -> None:
    run = make_run()

    assert events.record(run, "a", actor=alice, actor_name="page").actor_name == "alice"
    assert events.record(run, "b", actor_name="deadline").actor_name == "deadline"
    assert events.record(run, "c").actor_name == "worker"


def test_unsaved_changes_of_the_run_survive_a_record(make_run: MakeRun) -> None:
    run = make_run()
    run.output = "not saved yet"

    events.record(run, "test.event")

    assert run.output == "not saved yet"


@pytest.mark.django_db(transaction=True)
def test_eight_threads_write_one_sequence_without_gaps_or_forks(make_run: MakeRun) -> None:
    run = make_run()
    start = run.event_seq
    together = threading.Barrier(8)

    def write(number: int) -> None:
        try:
            together.wait(20)
            for count in range(5):
                with transaction.atomic():
                    events.record(
                        Run.objects.get(pk=run.pk), "test.thread", {"thread": number, "count": count}
                    )
        finally:
            connections.close_all()

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(write, range(8)))

    seqs = list(Event.objects.filter(run=run).order_by("seq").values_list("seq", flat=True))
    assert seqs == list(range(1, start + 41))
    assert first_broken(run) is None


@pytest.mark.django_db(transaction=True)
def test_a_hint_goes_out_after_the_commit_and_not_before(
    make_run: MakeRun, hints: list[tuple[tuple[str, ...], dict[str, Any]]]
) -> None:
    run = make_run()
    hints.clear()
    with transaction.atomic():
        events.record(run, "test.event")
        assert hints == []

    groups = (push.run_group(run.pk), push.runs_group(run.account_id))
    assert hints == [(groups, {"type": "run", "run_id": run.pk, "status": "queued", "seq": 2})]


@pytest.mark.django_db(transaction=True)
def test_a_rollback_sends_no_hint_and_leaves_the_chain_whole(
    make_run: MakeRun, hints: list[tuple[tuple[str, ...], dict[str, Any]]]
) -> None:
    run = make_run()
    hints.clear()
    with transaction.atomic():
        events.record(run, "test.undone")
        transaction.set_rollback(True)

    assert hints == []
    events.record(Run.objects.get(pk=run.pk), "test.next")
    assert first_broken(run) is None


@pytest.mark.django_db(transaction=True)
def test_of_the_hints_about_one_run_in_a_transaction_only_the_last_goes_out_and_none_that_was_undone(
    make_run: MakeRun, hints: list[tuple[tuple[str, ...], dict[str, Any]]]
) -> None:
    run, other = make_run(), make_run()
    hints.clear()
    with transaction.atomic():
        events.record(run, "test.first")
        events.record(other, "test.only")
        events.record(run, "test.second")
        with transaction.atomic():
            events.record(run, "test.undone")
            transaction.set_rollback(True)

    assert [(hint["run_id"], hint["seq"]) for _, hint in hints] == [(other.pk, 2), (run.pk, 3)]


def test_an_event_for_a_run_that_was_read_long_ago_comes_after_those_of_others(make_run: MakeRun) -> None:
    run = make_run()
    stale, undone = Run.objects.get(pk=run.pk), Run.objects.get(pk=run.pk)
    with transaction.atomic():
        events.record(undone, "test.undone")
        transaction.set_rollback(True)
    events.record(run, "test.second")
    Run.objects.filter(pk=run.pk).update(status="running_turn")

    assert [events.record(late, "test.late").seq for late in (stale, undone)] == [3, 4]
    assert (stale.status, undone.status) == ("running_turn", "running_turn")
    assert first_broken(run) is None


@pytest.mark.django_db(transaction=True)
def test_a_hint_about_a_pause_says_its_version_and_how_many_wait(
    make_round: Callable[..., Round], hints: list[tuple[tuple[str, ...], dict[str, Any]]]
) -> None:
    make_round()
    hints.clear()
    round_ = make_round()

    groups = (push.inbox_group(round_.account_id), push.run_group(round_.run_id))
    hint = push.PauseHint(
        type="pause",
        pause_id=round_.pk,
        run_id=round_.run_id,
        status="pending",
        version=1,
        pending_count=2,
    )
    assert (groups, hint) in hints


@pytest.mark.django_db(transaction=True)
def test_a_hint_that_cannot_be_sent_undoes_nothing(
    make_run: MakeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = make_run()

    def broken(*_: object) -> None:
        raise ConnectionError("no layer")

    monkeypatch.setattr(push, "_send", broken)
    with transaction.atomic():
        event = events.record(run, "test.event")

    assert Event.objects.filter(pk=event.pk).exists()
