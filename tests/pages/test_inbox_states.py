"""The states of a card from asking to going on, each in its own words (R4-R6, R9, R31)."""

from __future__ import annotations

from typing import Any

import pytest
from django.utils import timezone

from approvals.cards import card_for
from runs.models import Round, User
from runs.round_rows import Decider, fail, lock
from runs.round_states import RoundOutcome
from tests.pages.inbox_page import decide, fresh, text


def ending(client: Any, round_: Round) -> str:
    return text(client.get(f"/rounds/{round_.pk}/ending"))


@pytest.mark.parametrize(
    ("status", "word"),
    [
        ("response_validated", "sending"),
        ("delivery_started", "sending"),
        ("delivered", "delivered"),
        ("resolved", "resumed"),
    ],
)
def test_an_answered_pause_says_how_far_it_has_come(
    status: str, word: str, client_for: Any, alice: Any, make_round: Any
) -> None:
    round_, client = make_round(), client_for(alice)
    decide(client, round_, decision="allow")
    Round.objects.filter(pk=round_.pk).update(status=status)
    bar = ending(client, round_)
    assert f'data-status="{word}"' in bar
    assert "<b>Allowed</b> by alice" in bar


@pytest.mark.parametrize(
    ("outcome", "code", "word"),
    [
        (RoundOutcome.TIMED_OUT, "timeout", "Expired"),
        (RoundOutcome.CANCELLED, "cancelled", "Cancelled"),
        (RoundOutcome.SUPERSEDED, "superseded", "Superseded"),
        (RoundOutcome.RECOVERY_UNAVAILABLE, "recovery_unavailable", "Not delivered"),
    ],
)
@pytest.mark.django_db
def test_every_other_end_says_why(
    outcome: RoundOutcome, code: str, word: str, client_for: Any, alice: Any, make_round: Any
) -> None:
    round_ = make_round()
    fail(
        lock(round_.pk), outcome, code=code, message="This is why.", decider=Decider(user=None, via="worker")
    )
    bar = ending(client_for(alice), round_)
    assert word in bar
    assert "This is why." in bar
    assert "by worker" in bar


def test_a_decision_that_was_not_delivered_stays_recorded(
    client_for: Any, alice: Any, make_round: Any
) -> None:
    round_, client = make_round(), client_for(alice)
    decide(client, round_, decision="allow")
    Round.objects.filter(pk=round_.pk).update(status="failed", failure_code="x", failed_at=timezone.now())
    bar = ending(client, round_)
    assert "Not delivered" in bar
    assert "<b>Allowed</b> by alice" in bar


def test_a_new_rule_closes_the_other_cards_it_covers_by_name(
    client_for: Any, alice: Any, make_run: Any, make_round: Any
) -> None:
    run, client = make_run(), client_for(alice)
    first, second, plan = make_round(run=run), make_round(run=run), make_round("plan")
    decide(client, first, decision="allow", remember="run")
    assert fresh(second).outcome == "allowed"
    assert "<b>Allowed</b> by rule " in ending(client, second)
    assert fresh(plan).status == "pending"


def test_deciding_one_card_leaves_the_others_of_its_turn(
    client_for: Any, alice: Any, make_run: Any, make_round: Any
) -> None:
    run = make_run()
    rounds = [make_round(run=run) for _ in range(3)]
    decide(client_for(alice), rounds[1], decision="deny")
    assert [fresh(round_).status for round_ in rounds] == ["pending", "response_validated", "pending"]


def test_an_ended_card_has_no_controls_and_a_way_to_the_run(
    client_for: Any, alice: Any, make_round: Any
) -> None:
    round_, client = make_round(), client_for(alice)
    decide(client, round_, decision="deny")
    card = text(client.get(f"/rounds/{round_.pk}/card"))
    assert "<button" not in card
    assert f'href="/runs/{round_.run_id}"' in card


def test_a_card_is_drawn_with_few_queries(
    alice: User, acting: Any, make_round: Any, django_assert_max_num_queries: Any
) -> None:
    round_ = Round.objects.for_cards().get(pk=make_round().pk)
    actor = acting(alice)
    with django_assert_max_num_queries(4):
        assert card_for(round_, actor).remember
