"""Writes that wait: whoever looks inside the transaction sees no difference, and the database has less to do."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress

import pytest
from django.db import DatabaseError, connection, transaction
from django.db.models import F
from django.test.utils import CaptureQueriesContext

from runs import clock, events, lease, prepared, row_writes, write_behind
from runs.models import Event, Run, Step, Turn
from runs.prepared import Param, Rows, Update
from runs.worker.view import load

OF_RUN = Param("run", Run._meta.pk)
TURNS: Rows[Turn] = Rows(lambda: Turn.objects.filter(run=OF_RUN))
OUTPUT: Rows[tuple[str | None]] = Rows(lambda: Run.objects.filter(pk=OF_RUN).values_list("output"))
WAKE = Update(lambda: (Run.objects.filter(pk=OF_RUN), {"wake_seq": F("wake_seq") + 1}))


@contextmanager
def waiting() -> Iterator[None]:
    """A transaction whose writes wait."""
    with transaction.atomic(), write_behind.kept():
        yield


@contextmanager
def counted() -> Iterator[CaptureQueriesContext]:
    """The same, for whoever looks on, which goes another way to the driver; gives the statements that it came to."""
    with CaptureQueriesContext(connection) as asked, waiting():
        yield asked


def writes(asked: CaptureQueriesContext, table: str = "") -> list[str]:
    """The beginning of each statement that changes `table`, or any."""
    sqls = (query["sql"].split(maxsplit=1) for query in asked.captured_queries)
    return [verb for verb, *rest in sqls if verb in ("INSERT", "UPDATE") and table in rest[0].split("SET")[0]]


def say(run: Run, seq: int) -> Step:
    return Step(run=run, turn=run.turns.get(), seq=seq, kind="say", path=str(seq), params={}, result={})


def test_what_is_saved_of_a_row_several_times_is_stored_once_as_it_was_last(
    make_run: Callable[..., Run],
) -> None:
    run = make_run()
    with counted() as asked:
        run.output, run.error = "one", "an error"
        row_writes.save(run, ("output", "error"))
        run.output, run.error = "two", "unsaved"
        row_writes.save(run, ("output",))
        assert writes(asked) == []
    assert writes(asked) == ["UPDATE"]
    stored = Run.objects.get(pk=run.pk)
    assert (stored.output, stored.error) == ("two", "an error")


def test_the_values_are_those_of_the_moment_at_which_they_were_saved(make_run: Callable[..., Run]) -> None:
    run = make_run()
    with waiting():
        run.output = "saved"
        row_writes.save(run, ("output",))
        run.output = "not saved"
    assert Run.objects.get(pk=run.pk).output == "saved"


def test_new_rows_of_a_table_are_inserted_together_and_get_their_keys_in_order(
    make_run: Callable[..., Run],
) -> None:
    run = make_run()
    steps = [say(run, seq) for seq in (1, 2, 3)]
    with counted() as asked:
        for step in steps:
            row_writes.insert(step, key_needed=False)
    assert writes(asked, "runs_step") == ["INSERT"]
    assert [(step.pk, step.seq) for step in steps] == list(
        Step.objects.order_by("seq").values_list("pk", "seq")
    )
    steps[0].path = "changed"
    steps[0].save()  # it is known to be stored
    assert run.steps.count() == 3


def test_very_many_new_rows_are_several_statements(make_run: Callable[..., Run]) -> None:
    run = make_run()
    steps = [say(run, seq) for seq in range(1, 2 * row_writes.TOGETHER + 2)]
    with counted() as asked:
        for step in steps:
            row_writes.insert(step, key_needed=False)
    assert writes(asked, "runs_step") == ["INSERT"] * 3
    assert [(step.pk, step.seq) for step in steps] == list(
        Step.objects.order_by("seq").values_list("pk", "seq")
    )


def test_a_new_row_that_is_saved_again_is_inserted_as_it_was_last(make_run: Callable[..., Run]) -> None:
    run = make_run()
    turn = Turn(run=run, index=1, message="and then", definition={}, bindings={})
    with counted() as asked:
        row_writes.insert(turn)
        turn.message = "after all"
        row_writes.save(turn, ("message",))
    assert writes(asked) == ["INSERT"]
    assert Turn.objects.get(pk=turn.pk).message == "after all"


def test_a_key_that_is_needed_is_there_at_once(make_run: Callable[..., Run]) -> None:
    run = make_run()
    with waiting():
        row_writes.insert(step := say(run, 1))
        assert step.pk is not None
    assert Step.objects.get().pk == step.pk


def test_a_statement_that_names_a_table_sees_what_waits_of_it(make_run: Callable[..., Run]) -> None:
    run = make_run()
    with counted() as asked:
        run.output = "written"
        row_writes.save(run, ("output",))
        assert [turn.status for turn in TURNS(run=run.pk)] == ["queued"]
        assert writes(asked) == []  # that was another table
        assert OUTPUT(run=run.pk) == [("written",)]
        assert writes(asked) == ["UPDATE"]


def test_any_other_statement_sees_everything(make_run: Callable[..., Run]) -> None:
    run = make_run()
    with waiting():
        run.output = "written"
        row_writes.save(run, ("output",))
        row_writes.insert(say(run, 1), key_needed=False)
        assert Run.objects.filter(output="written").exists()
        run.output = "again"
        row_writes.save(run, ("output",))
        with connection.cursor() as cursor:
            cursor.execute("SELECT output FROM runs_run WHERE id = %s", [run.pk])
            assert cursor.fetchone() == ("again",)


def test_a_statement_about_many_rows_comes_between_what_was_saved_before_and_after(
    make_run: Callable[..., Run],
) -> None:
    run = make_run()
    with counted() as asked:
        run.wake_seq = 10
        row_writes.save(run, ("wake_seq",))
        WAKE.later(run=run.pk)
        run.output = "after"
        row_writes.save(run, ("output",))
        assert writes(asked) == []
    assert Run.objects.values_list("wake_seq", "output").get(pk=run.pk) == (11, "after")
    WAKE.later(run=run.pk)  # where nothing waits, at once
    assert Run.objects.get(pk=run.pk).wake_seq == 12


def test_a_savepoint_that_is_rolled_back_takes_along_only_what_was_written_in_it(
    make_run: Callable[..., Run],
) -> None:
    run = make_run()
    told: list[str] = []

    def tell(items: Sequence[str], _: Sequence[object]) -> None:
        told.extend(items)

    with waiting():
        run.output = "before"
        row_writes.save(run, ("output",))
        write_behind.at_end(tell, "before")
        with suppress(ValueError), transaction.atomic():
            run.output = "inside"
            row_writes.save(run, ("output",))
            raise ValueError("undone")
        run.error = "after"
        row_writes.save(run, ("error",))
        write_behind.at_end(tell, "after")
    assert Run.objects.values_list("output", "error").get(pk=run.pk) == ("before", "after")
    assert told == ["before", "after"]


def test_nothing_of_a_transaction_that_fails_is_stored_and_nothing_at_its_end_is_done(
    make_run: Callable[..., Run],
) -> None:
    run = make_run()
    told: list[int] = []
    with suppress(ValueError), waiting():
        run.output = "lost"
        row_writes.save(run, ("output",))
        write_behind.at_end(lambda items, _: told.extend(items), 1)
        raise ValueError("undone")
    assert (Run.objects.get(pk=run.pk).output, told) == (None, [])
    with transaction.atomic():  # and nothing of it waits for the next one
        row_writes.save(run, ("error",))
    assert Run.objects.get(pk=run.pk).output is None


def test_a_row_that_is_gone_ends_the_transaction(make_run: Callable[..., Run]) -> None:
    run, other = make_run(), make_run()
    gone = other.turns.get()
    Turn.objects.filter(pk=gone.pk).delete()

    def save() -> None:
        with waiting():
            run.output = "lost"
            row_writes.save(run, ("output",))
            row_writes.save(gone, ("status",))

    with pytest.raises(Turn.DoesNotExist, match="exists no longer"):
        save()
    assert Run.objects.get(pk=run.pk).output is None


def test_what_the_database_refuses_ends_the_transaction(make_run: Callable[..., Run]) -> None:
    run = make_run()

    def insert() -> None:
        with waiting():
            row_writes.insert(say(run, 1), key_needed=False)
            row_writes.insert(say(run, 1), key_needed=False)

    with pytest.raises(DatabaseError):
        insert()
    assert not run.steps.exists()


def test_the_end_is_told_once_with_all_that_was_to_be_done(make_run: Callable[..., Run]) -> None:
    run = make_run()
    told: list[tuple[list[int], object]] = []

    def note(items: Sequence[int], answers: Sequence[object]) -> None:
        told.append((list(items), answers[0]))
        run.output = "at the end"
        row_writes.save(run, ("output",))

    with waiting():
        write_behind.at_end(note, 1, OUTPUT.asked(run=run.pk))
        write_behind.at_end(note, 2, OUTPUT.asked(run=run.pk))
        write_behind.at_end(note, 3, OUTPUT.asked(run=0), key="another")
        run.output = "before"
        row_writes.save(run, ("output",))
        assert told == []
    assert told == [([1, 2], [("before",)]), ([3], [])]
    assert Run.objects.get(pk=run.pk).output == "at the end"
    write_behind.at_end(note, 4, OUTPUT.asked(run=run.pk))  # where nothing waits, at once
    assert told[2:] == [([4], [("at the end",)])]


def test_writes_can_wait_only_inside_of_a_transaction(transactional_db: None) -> None:
    with pytest.raises(transaction.TransactionManagementError), write_behind.kept():
        pass


def test_an_instance_that_is_held_appends_to_its_history_with_one_write_of_its_row(
    make_run: Callable[..., Run],
) -> None:
    run = Run.objects.get(pk=make_run().pk)
    with counted() as asked:
        write_behind.hold(run)
        for number in range(3):
            events.record(run, "test.event", {"number": number})
        lease.wake(run.pk)
    assert (writes(asked, "runs_run"), writes(asked, "runs_event")) == (["UPDATE"], ["INSERT"])
    found = Event.objects.filter(run=run).order_by("seq")
    assert [event.seq for event in found] == [1, 2, 3, 4]
    assert [event.previous for event in found] == ["", *(event.hash for event in found)][:-1]
    row = Run.objects.get(pk=run.pk)
    assert (row.event_seq, row.event_head, row.wake_seq) == (4, found[3].hash, 2)


@pytest.mark.parametrize("way", ["by another instance", "by a statement", "by an update"])
def test_an_instance_is_held_no_longer_once_its_row_was_changed_past_it(
    make_run: Callable[..., Run], way: str
) -> None:
    run = make_run()
    with waiting():
        write_behind.hold(run)
        assert write_behind.is_held(run)
        other = Run.objects.get(pk=run.pk)
        write_behind.hold(run)
        if way == "by another instance":
            events.record(other, "test.other")
        elif way == "by a statement":
            Run.objects.filter(pk=run.pk).update(wake_seq=F("wake_seq") + 1)
        else:
            row_writes.save(other, ("wake_seq",))
        assert not write_behind.is_held(run)
        events.record(run, "test.run")
        lease.wake(run.pk)
    assert [event.seq for event in Event.objects.filter(run=run).order_by("seq")] == list(
        range(1, 4 if way == "by another instance" else 3)
    )
    assert Run.objects.get(pk=run.pk).wake_seq == (3 if way == "by a statement" else 2)


def test_a_run_that_is_woken_while_it_is_looked_at_is_not_given_back_for_good(
    make_run: Callable[..., Run],
) -> None:
    run = make_run()
    held = lease.claim(run.pk, "a worker")
    assert held is not None
    with waiting():
        seen = load(held).seen
        lease.wake(run.pk)
        assert lease.release(held, seen=seen) is True
    assert Run.objects.values_list("wake_seq", "seen_seq", "lease_owner").get() == (2, 1, None)


def test_several_questions_are_answered_in_their_order_each_seeing_what_went_before(
    make_run: Callable[..., Run],
) -> None:
    run = make_run()
    write = prepared.UpdateOne(
        lambda: (Run.objects.filter(pk=OF_RUN), {"wake_seq": F("wake_seq") + 1}), ("wake_seq",)
    )
    wakes: Rows[tuple[int]] = Rows(lambda: Run.objects.filter(pk=OF_RUN).values_list("wake_seq"))
    with transaction.atomic():
        answers = prepared.together(
            wakes.asked(run=run.pk), write.asked(run=run.pk), wakes.asked(run=run.pk), wakes.asked(run=0)
        )
    assert answers == [[(1,)], (2,), [(2,)], []]


def test_the_clock_of_a_transaction_goes_on(db: None) -> None:
    with waiting():
        first, second = clock.now(), clock.now()
        assert first <= second
        (asked,) = prepared.together(*clock.questions()) or [second]
        assert abs((asked - second).total_seconds()) < 1
