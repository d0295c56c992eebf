"""A row that is saved or inserted past Django's machinery is stored as Django stores it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from runs import row_writes
from runs.models import Round, Run, Step, Turn


def test_saving_stores_the_named_fields_alone_and_none_as_null(
    make_round: Callable[..., Round], alice: Any
) -> None:
    round_ = make_round("question")
    round_.responses, round_.decided_by, round_.note = {"a": [1, None]}, alice, "unsaved"
    row_writes.save(round_, ("responses", "decided_by"))
    stored = Round.objects.get(pk=round_.pk)
    assert (stored.responses, stored.decided_by, stored.note) == ({"a": [1, None]}, alice, "")
    round_.responses = round_.decided_by = None
    row_writes.save(round_, ("responses", "decided_by"))
    assert Round.objects.filter(pk=round_.pk, responses__isnull=True, decided_by=None).exists()


def test_saving_sets_the_times_that_are_set_by_themselves(make_run: Callable[..., Run]) -> None:
    run = make_run()
    before = run.updated_at
    row_writes.save(run, ("status", "updated_at"))
    assert Run.objects.get(pk=run.pk).updated_at > before


def test_a_row_that_is_gone_is_not_saved(make_run: Callable[..., Run]) -> None:
    turn = make_run().turns.get()
    Turn.objects.all().delete()
    with pytest.raises(Turn.DoesNotExist, match="exists no longer"):
        row_writes.save(turn, ("status",))


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
    row_writes.insert(mine)
    rows = [Step.objects.values().get(pk=step.pk) for step in (mine, wanted)]
    own = {"id", "seq", "path", "created_at"}
    assert [{name: row[name] for name in row.keys() - own} for row in rows[:1]] == [
        {name: rows[1][name] for name in rows[1].keys() - own}
    ]
    assert (rows[0]["seq"], rows[0]["path"], rows[0]["created_at"]) == (1, "a", mine.created_at)
    mine.path = "c"
    mine.save()  # it is known to be stored
    assert Step.objects.filter(run=run, result__isnull=True).count() == 2
