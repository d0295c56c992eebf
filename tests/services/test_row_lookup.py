"""Rows by what stands in their columns (`runs.row_lookup`): the same as a QuerySet finds, whatever the types."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.core.exceptions import FieldDoesNotExist
from django.db import connection
from django.test.utils import CaptureQueriesContext

from runs.models import Account, Run, Turn
from runs.row_lookup import row, rows

MakeRun = Callable[..., Run]


def values(found: Account | Run | Turn) -> dict[str, object]:
    return {field.attname: getattr(found, field.attname) for field in found._meta.concrete_fields}


def test_a_row_is_what_the_framework_reads(make_run: MakeRun) -> None:
    run = make_run(metadata={"a": [1, None], "b": "\ufdd0 and half \ud800"}, tools=["desk"])
    found, turn = row(Run, id=run.pk, account_id=run.account_id), row(Turn, run_id=run.pk, index=0)
    assert found is not None
    assert values(found) == values(Run.objects.get(pk=run.pk))
    assert turn is not None
    assert values(turn) == values(Turn.objects.get())


def test_nothing_is_found_where_one_value_is_another(make_run: MakeRun, other_account: Account) -> None:
    run = make_run()
    assert row(Run, id=run.pk, account_id=other_account.pk) is None
    assert rows(Turn, run_id=run.pk, index=5) == []


def test_rows_come_in_the_order_asked_for_with_the_columns_asked_for(make_run: MakeRun) -> None:
    run = make_run()
    for index in (7, 3):
        Turn.objects.create(run=run, index=index, message="again")

    found = rows(Turn, "index", run_id=run.pk, order_by="index")

    with CaptureQueriesContext(connection) as queries:
        assert [turn.index for turn in found] == [0, 3, 7]
    assert len(queries) == 0
    assert found[0].get_deferred_fields() >= {"message", "outcome"}


def test_a_name_that_is_no_column_reaches_no_database(account: Account) -> None:
    with pytest.raises(FieldDoesNotExist):
        row(Account, **{'id" OR 1=1 --': account.pk})
