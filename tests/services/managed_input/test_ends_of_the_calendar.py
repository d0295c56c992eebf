"""Moments at both ends of the calendar are kept or refused, and never stored as what nobody can read back."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable

import pytest

from approvals import deadlines
from runs.access import Actor
from runs.errors import StateConflict
from runs.managed_input import DjangoManagedInputStore, ManagedInputValidationError
from runs.models import User
from tests.services.managed_input.samples import HOLDER, LEASE, opened, pending

FIRST = dt.datetime(1, 1, 1, tzinfo=dt.UTC)
LAST = dt.datetime.max.replace(tzinfo=dt.UTC)
EAST, WEST = dt.timezone(dt.timedelta(hours=14)), dt.timezone(-dt.timedelta(hours=12))

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("moment", [FIRST, LAST, dt.datetime(1900, 1, 1, tzinfo=EAST)])
def test_a_moment_that_has_a_date_in_utc_is_kept(
    store: DjangoManagedInputStore, execution: str, moment: dt.datetime
) -> None:
    opened(store, execution, created_at=moment, deadline=moment)

    (kept,) = store.list_rounds(execution)
    assert (kept.pending.created_at, kept.pending.deadline) == (moment, moment)


@pytest.mark.parametrize("moment", [FIRST.replace(tzinfo=EAST), LAST.replace(tzinfo=WEST)])
@pytest.mark.parametrize("name", ["created_at", "deadline"])
def test_a_moment_that_has_none_is_refused(name: str, moment: dt.datetime) -> None:
    with pytest.raises(ValueError, match="within the years 1 to 9999 in UTC"):
        pending("execution", **{name: moment})


def test_a_lease_that_would_end_after_the_calendar_is_refused(execution: str) -> None:
    late = DjangoManagedInputStore(
        clock=lambda: LAST.replace(tzinfo=WEST) - dt.timedelta(hours=12, minutes=1)
    )

    with pytest.raises(ManagedInputValidationError, match="beyond the calendar"):
        late.create_round(
            pending(execution), round_index=0, round_limit=1, lease_seconds=LEASE + 60, **HOLDER
        )


def test_more_time_than_the_calendar_has_is_refused_and_nothing_changes(
    store: DjangoManagedInputStore, execution: str, alice: User, acting: Callable[[User], Actor]
) -> None:
    opened(store, execution, deadline=LAST)

    with pytest.raises(StateConflict, match="calendar ends before"):
        deadlines.extend(acting(alice), "round-1")

    (kept,) = store.list_rounds(execution)
    assert kept.pending.deadline == LAST
