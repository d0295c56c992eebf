"""Answering as m8tes clients do (m8tes-http 4.1): by question text, typed, once, and with codes for what cannot be."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from typing import Any

import pytest
from django.utils import timezone

from runs import control
from runs.models import Round, Run, User
from runs.round_rows import Decider
from tests.api.conftest import ALLOW, Caller, fields_of
from tests.api.requests import error_code, form, link, listed, request_of

Calling = Callable[[User], Caller]
MakeRound = Callable[..., Round]

SEGMENT = {"Which segment?": "enterprise"}
TWO = [
    {"question": "Who?", "header": "Who", "multiSelect": False, "options": [{"label": "a"}, {"label": "b"}]},
    {"question": "Why?", "header": "Why", "multiSelect": False, "options": []},
]


def answer(caller: Caller, round_: Round, answers: Any, **more: Any) -> Any:
    return caller.post(f"runs/{round_.run_id}/answer", {"answers": answers, **more})


def fresh(round_: Round) -> Round:
    return Round.objects.get(pk=round_.pk)


def stored(round_: Round) -> dict[str, Any]:
    """The contents that were stored, by key."""
    return {key: response.get("content") for key, response in (fresh(round_).responses or {}).items()}


# --- what an answer does ------------------------------------------------------------------------------------------


def test_the_run_has_gone_on_before_the_answer_is_acknowledged(caller: Caller, make_round: MakeRound) -> None:
    round_ = make_round("question")
    assert caller.get(f"runs/{round_.run_id}").json()["status"] == "awaiting_approval"

    response = answer(caller, round_, SEGMENT)

    assert (response.status_code, response.json()) == (200, {"status": "ok", "resumed": True})
    assert caller.get(f"runs/{round_.run_id}").json()["status"] == "running"
    assert request_of(caller, round_)["status"] == "allowed"
    kept = fresh(round_)
    assert (kept.response_idempotency_key, kept.decided_via) == (f"m8tes:{round_.pk}", "api")
    assert stored(round_) == {"q0": {"selected": [0]}}


def test_a_run_that_still_waits_for_something_else_does_not_go_on(
    caller: Caller, make_round: MakeRound
) -> None:
    gate = make_round()
    asked = make_round("question", run=gate.run)

    assert answer(caller, asked, SEGMENT).json()["resumed"] is False
    assert caller.get(f"runs/{gate.run_id}").json()["status"] == "awaiting_approval"


def test_all_questions_of_an_ask_are_answered_together(caller: Caller, make_round: MakeRound) -> None:
    round_ = make_round("question", questions=TWO)

    half = answer(caller, round_, {"Who?": "b"})
    whole = answer(caller, round_, {"Who?": "b", "Why?": "It is late."})

    assert fields_of(half) == [["answers", "Why?"]]
    assert whole.status_code == 200
    assert stored(round_) == {"q0": {"selected": [1]}, "q1": {"selected": [], "other": "It is late."}}


@pytest.mark.parametrize("key", ["Plan Approval", "1. Draft\n2. Send"])
@pytest.mark.parametrize(
    ("text", "decision", "note"), [("Approve", "approve", ""), ("Revise: shorter", "revise", "shorter")]
)
def test_a_plan_is_answered_by_its_header_or_its_text(
    caller: Caller, make_round: MakeRound, key: str, text: str, decision: str, note: str
) -> None:
    round_ = make_round("plan")

    assert answer(caller, round_, {key: text}).status_code == 200
    assert stored(round_)["plan"]["decision"] == decision
    assert fresh(round_).note == note


def test_what_became_of_a_call_can_be_said(caller: Caller, make_round: MakeRound) -> None:
    round_ = make_round("outcome")

    assert answer(caller, round_, {"What became of desk:send_email?": "Run it again"}).status_code == 200
    assert stored(round_) == {"outcome": {"decision": "run_again"}}


def test_a_form_is_filled_in_with_the_types_of_its_fields(caller: Caller, make_round: MakeRound) -> None:
    round_ = make_round("elicitation", requests={"parcel": form("parcel")})
    answers = {
        "Street": "High St 1",
        "How many parcels?": "2",
        "Weight in kg": "1.5",
        "Insure it?": "Yes",
        "Speed": "Express",
        "Extras": "signature, by hand, SMS",
    }

    assert answer(caller, round_, answers).status_code == 200
    assert stored(round_) == {
        "parcel": {
            "street": "High St 1",
            "parcels": 2,
            "weight": 1.5,
            "insured": True,
            "speed": "xp",
            "extras": ["signature, by hand", "SMS"],
        }
    }
    assert request_of(caller, round_)["tool_input"]["answers"] == {
        "Street": "High St 1",
        "How many parcels?": "2",
        "Weight in kg": "1.5",
        "Insure it?": "Yes",
        "Speed": "Express",
        "Extras": "signature, by hand, SMS",
    }


@pytest.mark.parametrize(
    ("answers", "paths"),
    [
        ({"Street": "H", "How many parcels?": 1}, [["answers", "Street"]]),
        ({"Street": "High St", "How many parcels?": "0"}, [["answers", "How many parcels?"]]),
        ({"Street": "High St", "How many parcels?": "1.5"}, [["answers", "How many parcels?"]]),
        ({"Street": "High St", "How many parcels?": "many"}, [["answers", "How many parcels?"]]),
        ({"Street": "High St"}, [["answers", "How many parcels?"]]),
        (
            {"Street": 5, "How many parcels?": "many", "Speed": "Fast"},
            [["answers", "Street"], ["answers", "How many parcels?"], ["answers", "Speed"]],
        ),
    ],
    ids=str,
)
def test_what_does_not_fit_the_form_names_its_questions_and_answers_nothing(
    caller: Caller, make_round: MakeRound, answers: dict[str, Any], paths: list[list[str]]
) -> None:
    round_ = make_round("elicitation", requests={"parcel": form("parcel")})

    response = answer(caller, round_, answers)

    assert fields_of(response) == paths
    assert all(field["message"] for field in response.json()["error"]["details"]["fields"])
    assert fresh(round_).status == "pending"


def test_the_parts_of_a_pause_are_kept_until_the_last_one_is_there(
    caller: Caller, make_round: MakeRound
) -> None:
    parts = {"parcel": form("parcel"), "name": form("name", {"properties": {"n": {"type": "string"}}})}
    round_ = make_round("elicitation", requests=parts)
    parcel, name = [each["request_id"] for each in listed(caller, round_.run_id)]

    one = answer(caller, round_, {"n": "Ann"}, request_id=name)
    between = [each["status"] for each in listed(caller, round_.run_id)]
    two = answer(caller, round_, {"Street": "High St", "How many parcels?": 1})

    assert one.json() == {"status": "ok", "resumed": False}
    assert between == ["pending", "allowed"]
    assert two.json() == {"status": "ok", "resumed": True}
    assert stored(round_) == {"parcel": {"street": "High St", "parcels": 1}, "name": {"n": "Ann"}}
    assert parcel == f"{round_.pk}:parcel"


def test_a_form_and_a_link_of_one_pause_are_answered_and_allowed(
    caller: Caller, make_round: MakeRound
) -> None:
    round_ = make_round("elicitation", requests={"parcel": form("parcel"), "terms": link("terms")})
    body = {"request_id": f"{round_.pk}:terms", "decision": "allow", "remember": False}

    assert answer(caller, round_, {"Street": "High St", "How many parcels?": 1}).json()["resumed"] is False
    assert caller.post(f"runs/{round_.run_id}/approve", body).json()["resumed"] is True
    assert stored(round_) == {"parcel": {"street": "High St", "parcels": 1}, "terms": None}


# --- which ask ----------------------------------------------------------------------------------------------------


def test_without_an_id_it_is_the_oldest_ask_that_waits(caller: Caller, make_round: MakeRound) -> None:
    gate = make_round()
    first = make_round("question", run=gate.run)
    second = make_round("question", run=gate.run)

    answer(caller, gate, SEGMENT)
    assert (fresh(first).status, fresh(second).status) == ("response_validated", "pending")
    answer(caller, gate, SEGMENT)
    assert fresh(second).status == "response_validated"
    assert fresh(gate).status == "pending"


def test_with_an_id_it_is_exactly_that_ask(caller: Caller, make_round: MakeRound) -> None:
    first = make_round("question")
    second = make_round("question", run=first.run)

    assert answer(caller, first, SEGMENT, request_id=second.pk).status_code == 200
    assert (fresh(first).status, fresh(second).status) == ("pending", "response_validated")


def test_a_key_that_is_no_question_of_the_ask_is_refused(caller: Caller, make_round: MakeRound) -> None:
    round_ = make_round("question")

    response = answer(caller, round_, {**SEGMENT, "Which region?": "EMEA"})

    assert (response.status_code, error_code(response)) == (422, "unknown_question")
    assert fields_of(response) == [["answers", "Which region?"]]
    assert fresh(round_).status == "pending"


# --- what cannot be answered --------------------------------------------------------------------------------------


@pytest.mark.parametrize("answers", [{}, [], None, "enterprise", 5], ids=repr)
@pytest.mark.parametrize("running", [True, False])
def test_answers_that_are_none_are_refused_whatever_the_run_does(
    caller: Caller, make_run: Callable[..., Run], make_round: MakeRound, answers: Any, running: bool
) -> None:
    run = make_run() if running else make_round("question").run

    assert fields_of(caller.post(f"runs/{run.pk}/answer", {"answers": answers})) == [["answers"]]


def test_a_run_that_waits_for_nobody_takes_no_answer(
    caller: Caller, make_run: Callable[..., Run], make_round: MakeRound
) -> None:
    running, gated, answered, over = make_run(), make_round(), make_round("question"), make_round("question")
    answer(caller, answered, SEGMENT)
    control.cancel(over.run_id, decider=Decider(user=None, via="api"))

    for run_id in (running.pk, gated.run_id, answered.run_id, over.run_id):
        response = caller.post(f"runs/{run_id}/answer", {"answers": SEGMENT})
        assert (response.status_code, error_code(response)) == (409, "not_awaiting_input")


def test_an_ask_that_somebody_answered_says_who_also_while_the_run_waits_for_more(
    caller: Caller, make_round: MakeRound
) -> None:
    first = make_round("question")
    make_round("question", run=first.run)
    answer(caller, first, SEGMENT)

    response = answer(caller, first, {"Which segment?": "mid-market"}, request_id=first.pk)

    assert (response.status_code, error_code(response)) == (409, "not_awaiting_input")
    assert response.json()["error"]["details"]["decided_by"] == "alice"
    assert stored(first) == {"q0": {"selected": [0]}}


def test_an_answer_after_the_deadline_is_refused_and_the_pause_has_expired(
    caller: Caller, make_round: MakeRound
) -> None:
    round_ = make_round("question")
    Round.objects.filter(pk=round_.pk).update(deadline=timezone.now() - dt.timedelta(seconds=1))

    response = answer(caller, round_, SEGMENT)

    assert (response.status_code, error_code(response)) == (409, "not_awaiting_input")
    assert fresh(round_).outcome == "timed_out"


def test_a_call_or_a_link_is_allowed_and_not_answered(caller: Caller, make_round: MakeRound) -> None:
    for round_ in (make_round(), make_round("elicitation", requests={"terms": link("terms")})):
        response = answer(caller, round_, {"x": "y"}, request_id=round_.pk)
        assert (response.status_code, error_code(response)) == (422, "use_approve")


def test_a_request_of_another_run_is_not_found(caller: Caller, make_round: MakeRound) -> None:
    mine, other = make_round("question"), make_round("question")

    response = answer(caller, mine, SEGMENT, request_id=other.pk)

    assert (response.status_code, error_code(response)) == (404, "gate_not_found")
    assert fresh(other).status == "pending"


def test_who_only_looks_on_or_is_of_another_account_answers_nothing(
    calling: Calling, vera: User, otto: User, make_round: MakeRound
) -> None:
    round_ = make_round("question")

    assert answer(calling(vera), round_, SEGMENT).status_code == 403
    assert answer(calling(otto), round_, SEGMENT).status_code == 404
    assert fresh(round_).status == "pending"


def test_an_approval_that_was_decided_is_no_question_either(caller: Caller, make_round: MakeRound) -> None:
    round_ = make_round()
    caller.respond(round_.pk, ALLOW)

    assert error_code(answer(caller, round_, SEGMENT, request_id=round_.pk)) == "use_approve"
