"""Statements whose SQL is made once say the same as Django's own, every time."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import Any

import pytest
from django.db import DataError, connection, transaction
from django.db.models import ExpressionWrapper, F, IntegerField
from django.test.utils import CaptureQueriesContext

from runs.models import Run, Turn
from runs.prepared import Number, Param, Rows, Update, together
from runs.run_states import TurnStatus

OF_RUN = Param("run", Run._meta.pk)


def one_that_fails_and_one_asked(run: Run, name: str, uses: int) -> tuple[Rows[tuple[int]], Rows[tuple[int]]]:
    """A question that the server cannot answer, and one that no other test asks, asked so many times already."""
    by_zero = ExpressionWrapper(F("wake_seq") / (F("wake_seq") - F("wake_seq")), output_field=IntegerField())
    fails: Rows[tuple[int]] = Rows(lambda: Run.objects.filter(pk=OF_RUN).values_list(by_zero))
    asked = Run.objects.exclude(message=name)
    fine: Rows[tuple[int]] = Rows(lambda: asked.filter(pk=OF_RUN).values_list("wake_seq"))
    for _ in range(uses):
        assert fine(run=run.pk) == [(1,)]
    return fails, fine


def test_rows_are_what_the_queryset_gives_with_their_relations_and_values(
    make_run: Callable[..., Run],
) -> None:
    runs = [make_run(metadata={"nothing": None, "words": "\x00 ünï"}), make_run("another")]
    rows: Rows[Run] = Rows(lambda: Run.objects.select_related("agent", "end_user").filter(pk=OF_RUN))
    for run in [*runs, *runs]:
        (found,) = rows(run=run.pk)
        wanted = Run.objects.select_related("agent", "end_user").get(pk=run.pk)
        assert vars(found) | {"_state": None} == vars(wanted) | {"_state": None}
        assert (found.agent.name, found.end_user) == (wanted.agent.name, None)
    assert rows(run=0) == []
    assert rows.first(run=0) is None


def test_a_statement_is_made_once_and_costs_one_query_each_time(make_run: Callable[..., Run]) -> None:
    run = make_run()
    made: list[int] = []

    def build() -> Any:
        made.append(1)
        return Turn.objects.filter(run=OF_RUN)

    rows: Rows[Turn] = Rows(build)
    with CaptureQueriesContext(connection) as asked:
        found = [rows(run=run.pk) for _ in range(3)]
    assert found == [list(run.turns.all())] * 3
    assert (len(made), len(asked)) == (1, 3)


@pytest.mark.skipif(connection.vendor != "postgresql", reason="SQLite keeps no plans on the server")
def test_the_server_keeps_a_plan_that_knows_what_never_changes(make_run: Callable[..., Run]) -> None:
    run = make_run()
    rows: Rows[Run] = Rows(
        lambda: Run.objects.filter(pk=OF_RUN, message__contains="100 %", mode="plan").only("pk")
    )
    for _ in range(4):
        rows(run=run.pk)
    with connection.cursor() as cursor:
        cursor.execute("SELECT statement FROM pg_prepared_statements WHERE statement LIKE '%%100 %%'")
        ((kept,),) = cursor.fetchall()
    assert "$1" in kept
    assert "$2" not in kept
    assert "'plan'" in kept


def test_a_field_left_out_is_loaded_when_it_is_wanted(make_run: Callable[..., Run]) -> None:
    run = make_run("Send it")
    rows: Rows[Turn] = Rows(lambda: Turn.objects.filter(run=OF_RUN).defer("message"))
    (turn,) = rows(run=run.pk)
    assert "message" not in vars(turn)
    assert turn.message == "Send it"


def test_numbers_and_tuples_come_as_they_are(make_run: Callable[..., Run]) -> None:
    run = make_run()
    number: Rows[tuple[int]] = Rows(lambda: Turn.objects.filter(run=OF_RUN).order_by().values_list(Number()))
    pair: Rows[tuple[str, int]] = Rows(
        lambda: Run.objects.filter(pk=OF_RUN).values_list("status", "event_seq")
    )
    assert number(run=run.pk) == [(1,)]
    assert number(run=0) == [(0,)]
    assert pair(run=run.pk) == [("queued", 1)]


def test_an_update_changes_what_it_says_and_tells_how_many_rows(make_run: Callable[..., Run]) -> None:
    run, other = make_run(), make_run()
    update = Update(
        lambda: (
            Run.objects.filter(pk=OF_RUN, status=TurnStatus.QUEUED.value),
            {"wake_seq": F("wake_seq") + 1, "metadata": Param("metadata", Run._meta.get_field("metadata"))},
        )
    )
    assert [update(run=run.pk, metadata={"n": n}) for n in (1, 2)] == [1, 1]
    assert update(run=0, metadata={}) == 0
    rows = Run.objects.order_by("pk").values_list("pk", "wake_seq", "metadata")
    assert list(rows) == [(run.pk, 3, {"n": 2}), (other.pk, 1, {})]


@pytest.mark.skipif(connection.vendor != "postgresql", reason="SQLite divides by zero")
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("within", [nullcontext, transaction.atomic])
@pytest.mark.parametrize("uses", range(5))
def test_questions_of_which_one_fails_leave_the_connection_as_it_was(
    make_run: Callable[..., Run], within: Callable[[], AbstractContextManager[None]], uses: int
) -> None:
    """However often the other one was asked before: at some use it is prepared."""
    run = make_run()
    fails, fine = one_that_fails_and_one_asked(run, f"{within.__name__} {uses}", uses)
    with pytest.raises(DataError), within():
        together(fails.asked(run=run.pk), fine.asked(run=run.pk))
    for _ in range(4):
        assert fine(run=run.pk) == [(1,)]


@pytest.mark.skipif(connection.vendor != "postgresql", reason="SQLite divides by zero")
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("uses", range(5))
def test_questions_are_answered_also_after_a_failure_that_was_caught_inside_of_the_transaction(
    make_run: Callable[..., Run], uses: int
) -> None:
    """Its end then is a rollback that looks like a commit, of which the driver takes no notice."""
    run = make_run()
    fails, fine = one_that_fails_and_one_asked(run, f"caught {uses}", uses)
    with transaction.atomic(), suppress(DataError):
        together(fails.asked(run=run.pk), fine.asked(run=run.pk))
    for _ in range(4):
        assert fine(run=run.pk) == [(1,)]
    with transaction.atomic():
        assert together(fine.asked(run=run.pk), fine.asked(run=run.pk)) == [[(1,)], [(1,)]]
