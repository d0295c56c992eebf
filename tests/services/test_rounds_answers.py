"""The rules of answering a pause, below all roles and policies (C12-C21; R22, R31)."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from typing import Any

import pytest
from django.db import transaction
from django.utils import timezone

from runs import rounds
from runs.errors import ManagedInputConflict, ManagedInputValidationError, NotFound, StateConflict
from runs.models import Round, Run, User
from runs.round_rows import Decider

MakeRound = Callable[..., Round]

STREET = {"shipping_address": {"action": "accept", "content": {"street": "Main St 1"}}}
DECLINED = {"shipping_address": {"action": "decline"}}


@pytest.fixture
def decider(alice: User) -> Decider:
    return Decider(user=alice, via="api")


def answer(round_: Round, responses: Any, decider: Decider, key: str = "k") -> Round:
    return rounds.answer(round_.pk, responses, decider=decider, idempotency_key=key)


@pytest.mark.parametrize("responses", [STREET, DECLINED], ids=["accept", "decline"])
def test_an_elicitation_may_be_accepted_or_declined(
    make_round: MakeRound, decider: Decider, responses: dict[str, Any]
) -> None:
    answered = answer(make_round("elicitation"), responses, decider)

    assert (answered.outcome, answered.responses) == ("answered", responses)


def test_an_answered_pause_can_be_claimed_at_once(make_round: MakeRound, decider: Decider) -> None:
    answered = answer(make_round("elicitation"), STREET, decider)

    assert answered.lease_expires_at <= timezone.now()


@pytest.mark.parametrize(
    "response",
    [
        {"action": "accept"},
        {"action": "accept", "content": None},
        {"action": "accept", "content": {"street": ""}},
        {"action": "accept", "content": []},
        {"action": "decline", "content": {"street": "x"}},
        {"action": "approve"},
        {"content": {"street": "x"}},
        "accept",
    ],
)
def test_what_does_not_fit_its_form_is_refused_and_the_pause_stays(
    make_round: MakeRound, decider: Decider, response: Any
) -> None:
    pending = make_round("elicitation")

    with pytest.raises(ManagedInputValidationError):
        answer(pending, {"shipping_address": response}, decider)

    assert Round.objects.get(pk=pending.pk).status == "pending"


def test_consent_to_a_page_carries_no_content(make_round: MakeRound, decider: Decider) -> None:
    request = {"request_key": "pay", "mode": "url", "message": "Pay", "url": "https://pay.example"}
    pending = make_round("elicitation", requests={"pay": request})

    with pytest.raises(ManagedInputValidationError, match="no content"):
        answer(pending, {"pay": {"action": "accept", "content": {}}}, decider)
    assert answer(pending, {"pay": {"action": "accept"}}, decider).outcome == "answered"


@pytest.mark.parametrize("content", [{"selected": []}, {"selected": [2]}, {"selected": [0, 1]}, {}])
def test_a_question_without_a_choice_of_its_own_is_not_answered(
    make_round: MakeRound, decider: Decider, content: dict[str, Any]
) -> None:
    with pytest.raises(ManagedInputValidationError):
        answer(make_round("question"), {"q0": {"action": "accept", "content": content}}, decider)


def test_other_text_answers_a_question(make_round: MakeRound, decider: Decider) -> None:
    content = {"selected": [], "other": "Both, in turns."}

    assert answer(make_round("question"), {"q0": {"action": "accept", "content": content}}, decider)


def test_our_own_forms_are_answered_by_a_decision_and_not_declined(
    make_round: MakeRound, decider: Decider
) -> None:
    for kind, key in (("approval", "approval"), ("plan", "plan"), ("outcome", "outcome")):
        with pytest.raises(ManagedInputValidationError, match="decision"):
            answer(make_round(kind), {key: {"action": "cancel"}}, decider)


def test_an_answer_needs_a_key_of_its_own(make_round: MakeRound, decider: Decider) -> None:
    with pytest.raises(ManagedInputValidationError, match="idempotency key"):
        answer(make_round("elicitation"), STREET, decider, key="")


def test_the_same_answer_is_taken_once_and_another_one_never(make_round: MakeRound, decider: Decider) -> None:
    pending = make_round("elicitation")
    first = answer(pending, STREET, decider)

    assert answer(pending, STREET, decider).version == first.version
    for responses, key in ((DECLINED, "k"), (STREET, "other")):
        with pytest.raises(ManagedInputConflict):
            answer(pending, responses, decider, key=key)


def test_an_unknown_pause_is_not_found(db: None, decider: Decider) -> None:
    with pytest.raises(NotFound):
        rounds.answer("nothing", STREET, decider=decider, idempotency_key="k")


def overdue(round_: Round) -> Round:
    Round.objects.filter(pk=round_.pk).update(deadline=timezone.now() - dt.timedelta(seconds=1))
    return round_


def test_after_the_deadline_the_turn_has_timed_out_and_the_answer_is_refused(
    make_round: MakeRound, decider: Decider
) -> None:
    pending = overdue(make_round("elicitation"))

    for _ in range(2):
        with pytest.raises(StateConflict, match="deadline"):
            answer(pending, STREET, decider)

    run = Run.objects.get(pk=pending.run_id)
    assert (run.status, run.outcome, run.error_code) == ("finished", "timed_out", "timeout")


@pytest.mark.django_db(transaction=True)
def test_an_expiry_found_inside_a_larger_transaction_is_committed_before_the_refusal_is_raised(
    make_round: MakeRound, decider: Decider
) -> None:
    pending = overdue(make_round("elicitation"))

    with transaction.atomic():
        settled = rounds.try_answer(pending.pk, STREET, decider=decider, idempotency_key="k")
    with pytest.raises(StateConflict, match="deadline"):
        rounds.accepted(settled)

    assert Round.objects.get(pk=pending.pk).failure_code == "timeout"


def test_an_answer_is_no_message_and_opens_no_turn(make_round: MakeRound, decider: Decider) -> None:
    """A29."""
    run = answer(make_round("elicitation"), STREET, decider).run

    assert run.turns.count() == 1
    assert not run.events.filter(type="run.message").exists()
