"""When a rule ends that is made for some days."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest

from approvals import rules
from approvals.rules import MAX_DAYS, end_of
from runs.errors import ModelValidationError

MONDAY = dt.datetime(2026, 11, 30, tzinfo=dt.UTC)


@pytest.mark.parametrize("time", [dt.time(0, 0), dt.time(9, 30), dt.time(23, 59, 59)])
@pytest.mark.parametrize("days", [1, 30])
def test_days_are_whole_days_and_the_rest_of_the_last_one(
    monkeypatch: pytest.MonkeyPatch, time: dt.time, days: int
) -> None:
    """A card that is read for an hour says the same end before and after; what was shown is what is saved (R23)."""
    now = dt.datetime.combine(MONDAY, time, dt.UTC)
    monkeypatch.setattr(rules.timezone, "now", lambda: now)

    end = end_of(days)

    assert end == MONDAY + dt.timedelta(days=days + 1)
    assert dt.timedelta(days=days) <= end - now <= dt.timedelta(days=days + 1)


def test_without_days_it_has_no_end() -> None:
    assert end_of(None) is None


@pytest.mark.parametrize("days", [0, -1, MAX_DAYS + 1, True, 1.0, "1"])
def test_other_numbers_of_days_are_refused(days: Any) -> None:
    with pytest.raises(ModelValidationError, match=f"1 to {MAX_DAYS} days"):
        end_of(days)
