"""Statements whose SQL is made once say the same as Django's own, every time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection
from django.db.models import F
from django.test.utils import CaptureQueriesContext

from runs import prepared
from runs.models import Round, Run, Step, Turn
from runs.prepared import Number, Param, Rows, Update
from runs.run_states import TurnStatus

OF_RUN = Param("run", Run._meta.pk)


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


def test_saving_stores_the_named_fields_alone_and_none_as_null(
    make_round: Callable[..., Round], alice: Any
) -> None:
    round_ = make_round("question")
    round_.responses, round_.decided_by, round_.note = {"a": [1, None]}, alice, "unsaved"
    prepared.save(round_, ("responses", "decided_by"))
    stored = Round.objects.get(pk=round_.pk)
    assert (stored.responses, stored.decided_by, stored.note) == ({"a": [1, None]}, alice, "")
    round_.responses = round_.decided_by = None
    prepared.save(round_, ("responses", "decided_by"))
    assert Round.objects.filter(pk=round_.pk, responses__isnull=True, decided_by=None).exists()


def test_saving_sets_the_times_that_are_set_by_themselves(make_run: Callable[..., Run]) -> None:
    run = make_run()
    before = run.updated_at
    prepared.save(run, ("status", "updated_at"))
    assert Run.objects.get(pk=run.pk).updated_at > before


def test_a_row_that_is_gone_is_not_saved(make_run: Callable[..., Run]) -> None:
    turn = make_run().turns.get()
    Turn.objects.all().delete()
    with pytest.raises(Turn.DoesNotExist, match="exists no longer"):
        prepared.save(turn, ("status",))


def test_an_inserted_row_is_as_django_stores_it_and_knows_its_key(make_run: Callable[..., Run]) -> None:
    run = make_run()
    fields = {
        "run": run,
        "turn": run.turns.get(),
        "kind": "say",
        "params": {"text": "\x00 ünï"},
        "result": None,
    }
    mine, wanted = Step(seq=1, path="a", **fields), Step.objects.create(seq=2, path="b", **fields)
    prepared.insert(mine)
    rows = [Step.objects.values().get(pk=step.pk) for step in (mine, wanted)]
    own = {"id", "seq", "path", "created_at"}
    assert [{name: row[name] for name in row.keys() - own} for row in rows[:1]] == [
        {name: rows[1][name] for name in rows[1].keys() - own}
    ]
    assert (rows[0]["seq"], rows[0]["path"], rows[0]["created_at"]) == (1, "a", mine.created_at)
    mine.path = "c"
    mine.save()  # it is known to be stored
    assert Step.objects.filter(run=run, result__isnull=True).count() == 2
