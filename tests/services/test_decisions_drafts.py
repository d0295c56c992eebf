"""The requests of one pause may be answered one by one; the last answer sends them all (A21)."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from typing import Any

import pytest
from django.utils import timezone

from approvals.decisions import save_draft
from runs.access import Actor
from runs.errors import ManagedInputConflict, ManagedInputValidationError, NotAllowed, NotFound, StateConflict
from runs.models import Event, Round, User

Acting = Callable[[User], Actor]
MakeRound = Callable[..., Round]


def question(text: str) -> dict[str, Any]:
    return {
        "question": text,
        "header": "H",
        "multiSelect": False,
        "options": [{"label": "a"}, {"label": "b"}],
    }


def choice(index: int) -> dict[str, Any]:
    return {"action": "accept", "content": {"selected": [index]}}


@pytest.fixture
def two_questions(make_round: MakeRound) -> Round:
    return make_round("question", questions=[question("One?"), question("Two?")])


def test_the_first_answer_is_kept_and_the_pause_stays(
    acting: Acting, alice: User, two_questions: Round
) -> None:
    kept = save_draft(acting(alice), two_questions.pk, "q0", choice(1))

    assert (kept.status, kept.drafts) == ("pending", {"q0": choice(1)})
    assert kept.responses is None


def test_the_last_answer_sends_all_of_them(
    acting: Acting, alice: User, bob: User, two_questions: Round
) -> None:
    save_draft(acting(alice), two_questions.pk, "q0", choice(1))
    save_draft(acting(alice), two_questions.pk, "q0", choice(0))

    answered = save_draft(acting(bob), two_questions.pk, "q1", choice(1), via="api")

    assert (answered.status, answered.outcome) == ("response_validated", "answered")
    assert answered.responses == {"q0": choice(0), "q1": choice(1)}
    assert (answered.decided_by, answered.decided_via, answered.drafts) == (bob, "api", {})


def test_an_answer_that_does_not_fit_is_not_kept(acting: Acting, alice: User, two_questions: Round) -> None:
    for key, response in (("q0", choice(7)), ("q9", choice(0)), ("q0", {"action": "accept"})):
        with pytest.raises(ManagedInputValidationError):
            save_draft(acting(alice), two_questions.pk, key, response)
    assert Round.objects.get(pk=two_questions.pk).drafts == {}


def test_the_last_answer_again_returns_the_answered_pause_and_another_one_is_refused(
    acting: Acting, alice: User, two_questions: Round
) -> None:
    save_draft(acting(alice), two_questions.pk, "q0", choice(1))
    save_draft(acting(alice), two_questions.pk, "q1", choice(1))

    assert save_draft(acting(alice), two_questions.pk, "q1", choice(1)).status == "response_validated"
    with pytest.raises(ManagedInputConflict, match="alice"):
        save_draft(acting(alice), two_questions.pk, "q1", choice(0))
    assert Event.objects.filter(type="question.response").count() == 1


def test_an_overdue_answer_is_refused_and_the_expiry_is_kept(
    acting: Acting, alice: User, two_questions: Round
) -> None:
    Round.objects.filter(pk=two_questions.pk).update(deadline=timezone.now() - dt.timedelta(seconds=1))

    with pytest.raises(StateConflict, match="deadline"):
        save_draft(acting(alice), two_questions.pk, "q0", choice(1))

    assert Round.objects.get(pk=two_questions.pk).outcome == "timed_out"


def test_only_operators_of_the_account_may_answer(
    acting: Acting, vera: User, otto: User, two_questions: Round
) -> None:
    for user, refusal in ((vera, NotAllowed), (otto, NotFound)):
        with pytest.raises(refusal):
            save_draft(acting(user), two_questions.pk, "q0", choice(1))
