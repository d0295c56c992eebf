"""A moment has one form in every JSON of ours: that of the API's own fields (m8tes-http 1.13)."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable

import pytest
from rest_framework.fields import DateTimeField

from runs import rounds
from runs.durations import utc_text
from runs.models import Event, Round, User
from runs.round_rows import Decider, ending, facts

NOON = dt.datetime(2026, 3, 1, 12, 0, 0, 123456, tzinfo=dt.UTC)


@pytest.mark.parametrize(
    ("moment", "text"),
    [
        (NOON, "2026-03-01T12:00:00.123456Z"),
        (NOON.replace(microsecond=0), "2026-03-01T12:00:00Z"),
        (NOON.astimezone(dt.timezone(dt.timedelta(hours=5, minutes=30))), "2026-03-01T12:00:00.123456Z"),
    ],
)
def test_a_moment_is_utc_and_ends_in_z_as_the_api_writes_it(moment: dt.datetime, text: str) -> None:
    assert utc_text(moment) == text
    assert DateTimeField().to_representation(moment.astimezone(dt.UTC)) == text


def test_whoever_comes_too_late_is_told_when_in_the_form_of_the_api(
    make_round: Callable[..., Round], alice: User
) -> None:
    round_ = make_round()
    allow = {"approval": {"action": "accept", "content": {"decision": "allow"}}}
    answered = rounds.answer(round_.pk, allow, decider=Decider(user=alice, via="page"), idempotency_key="k")

    assert ending(answered)["decided_at"] == DateTimeField().to_representation(answered.response_validated_at)


def test_the_history_writes_a_deadline_in_the_same_form(make_round: Callable[..., Round]) -> None:
    round_ = make_round()
    round_.deadline = NOON

    assert facts(round_)["deadline"] == "2026-03-01T12:00:00.123456Z"
    assert Event.objects.get(type="approval.request").payload["deadline"] is None


def test_the_history_says_how_long_there_is_to_answer_and_until_when(
    make_round: Callable[..., Round],
) -> None:
    """A18: a countdown needs both, and neither changes by a restart."""
    round_ = make_round()
    round_.created_at, round_.deadline = NOON, NOON + dt.timedelta(minutes=5)

    assert facts(round_)["timeout_seconds"] == 300
    assert Event.objects.get(type="approval.request").payload["timeout_seconds"] is None
