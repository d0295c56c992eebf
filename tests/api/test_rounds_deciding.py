"""What more a pause takes over the API: a rule to remember, answers one by one, and more time."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from typing import Any

import pytest
from django.utils import timezone

from approvals.models import Policy
from runs.models import Round, Run, Tool, User
from tests.api.conftest import ALLOW, Caller, fields_of
from tests.services.test_decisions_drafts import choice, question
from tests.services.test_decisions_remember import offering

Calling = Callable[[User], Caller]
MakeRound = Callable[..., Round]


@pytest.fixture
def two_questions(make_round: MakeRound) -> Round:
    return make_round("question", questions=[question("One?"), question("Two?")])


# --- remember ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("remember", "scope", "days", "exactly"),
    [
        ({"scope": "run"}, "run", None, False),
        ({"scope": "account", "days": 7}, "account", 7, False),
        ({"scope": "account", "exactly": True}, "account", None, True),
    ],
    ids=str,
)
def test_an_allowed_call_is_remembered_as_asked(
    calling: Calling,
    alice: User,
    make_round: MakeRound,
    remember: dict[str, Any],
    scope: str,
    days: int | None,
    exactly: bool,
) -> None:
    shown = calling(alice).respond(make_round().pk, ALLOW, remember=remember).json()

    policy = Policy.objects.get()
    assert (policy.scope, policy.source, policy.created_by) == (scope, "run_approval", alice)
    assert shown["context"]["remembered"] == {
        "scope": scope,
        "days": days,
        "exactly": exactly,
        "rule_id": policy.pk,
        "text": shown["context"]["remembered"]["text"],
    }


def test_a_call_of_an_end_user_s_run_is_remembered_for_that_user(
    calling: Calling, alice: User, make_round: MakeRound, make_run: Callable[..., Run]
) -> None:
    pending = make_round(run=make_run(user_id="cust_123"), verdict=offering("run", "user"))
    refused = calling(alice).respond(pending.pk, ALLOW, remember={"scope": "account"})
    assert (refused.status_code, Policy.objects.count()) == (422, 0)

    assert calling(alice).respond(pending.pk, ALLOW, remember={"scope": "user"}).status_code == 200
    assert Policy.objects.get().end_user.user_id == "cust_123"  # type: ignore[union-attr]


def test_a_rule_that_has_to_be_confirmed_is_refused_with_what_it_covers_until_it_is(
    calling: Calling, alice: User, make_round: MakeRound
) -> None:
    Tool.objects.filter(name="send_email").update(risk="money")
    pending = make_round()
    caller = calling(alice)

    refused = caller.respond(pending.pk, ALLOW, remember={"scope": "account"})
    assert refused.status_code == 422, refused.content
    rehearsal = refused.json()["error"]["details"]["rehearsal"]
    assert rehearsal["high_stakes"] == [{"tool": "desk:send_email", "risk": "money"}]
    wrong = caller.respond(pending.pk, ALLOW, remember={"scope": "account", "confirmation": "sha256:0"})
    assert wrong.status_code == 422
    assert not Policy.objects.exists()

    confirmed = {"scope": "account", "confirmation": rehearsal["confirmation"]}
    assert caller.respond(pending.pk, ALLOW, remember=confirmed).status_code == 200
    assert Policy.objects.get().target_tool == "send_email"


@pytest.mark.parametrize(
    ("remember", "path"),
    [
        ({}, ["remember", "scope"]),
        ({"scope": "world"}, ["remember", "scope"]),
        ({"scope": "run", "days": 0}, ["remember", "days"]),
        ({"scope": "run", "days": "7"}, ["remember", "days"]),
        ({"scope": "run", "exactly": 1}, ["remember", "exactly"]),
        ("run", ["remember"]),
    ],
    ids=str,
)
def test_what_cannot_be_remembered_is_refused_with_its_field(
    calling: Calling, alice: User, make_round: MakeRound, remember: Any, path: list[str]
) -> None:
    assert fields_of(calling(alice).respond(make_round().pk, ALLOW, remember=remember)) == [path]


# --- one answer at a time ------------------------------------------------------------------------------------------


def test_answers_are_kept_one_by_one_and_the_last_one_answers_the_pause(
    calling: Calling, alice: User, two_questions: Round
) -> None:
    at, caller = f"rounds/{two_questions.pk}/draft", calling(alice)

    kept = caller.post(at, {"key": "q0", "response": choice(1)}).json()
    assert (kept["status"], kept["drafts"], kept["responses"]) == ("pending", {"q0": choice(1)}, None)
    done = caller.post(at, {"key": "q1", "response": choice(0)}).json()
    assert (done["status"], done["drafts"]) == ("response_validated", {})
    assert done["responses"] == {"q0": choice(1), "q1": choice(0)}
    assert done["decided_via"] == "api"


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"key": "q9", "response": choice(0)}, 422),
        ({"key": "q0", "response": choice(9)}, 422),
        ({"key": "q0", "response": {}}, 422),
        ({"key": "q0"}, 422),
        ({"response": choice(0)}, 422),
    ],
    ids=str,
)
def test_an_answer_that_does_not_fit_is_not_kept(
    calling: Calling, alice: User, two_questions: Round, body: Any, status: int
) -> None:
    assert calling(alice).post(f"rounds/{two_questions.pk}/draft", body).status_code == status
    two_questions.refresh_from_db()
    assert two_questions.drafts == {}


# --- more time -----------------------------------------------------------------------------------------------------


def test_a_deadline_moves_by_a_quarter_of_an_hour(
    calling: Calling, alice: User, make_round: MakeRound
) -> None:
    pending, ends = make_round(), timezone.now().replace(microsecond=0) + dt.timedelta(minutes=5)
    Round.objects.update(deadline=ends)

    shown = calling(alice).post(f"rounds/{pending.pk}/extend").json()
    later = ends + dt.timedelta(minutes=15)
    assert shown["deadline"] == later.isoformat().replace("+00:00", "Z")


@pytest.mark.parametrize("deadline", [None, dt.timedelta(minutes=-1)], ids=["waits for ever", "overdue"])
def test_what_has_no_end_or_is_past_it_is_not_extended(
    calling: Calling, alice: User, make_round: MakeRound, deadline: dt.timedelta | None
) -> None:
    pending = make_round()
    Round.objects.update(deadline=timezone.now() + deadline if deadline else None)
    assert calling(alice).post(f"rounds/{pending.pk}/extend").status_code == 409


@pytest.mark.parametrize("action", ["respond", "draft", "extend"])
def test_a_viewer_may_do_none_of_it_and_another_account_sees_nothing(
    calling: Calling, vera: User, otto: User, make_round: MakeRound, action: str
) -> None:
    at = f"rounds/{make_round().pk}/{action}"
    assert calling(vera).post(at, {}).status_code == 403
    assert calling(otto).post(at, {}).status_code == 404
