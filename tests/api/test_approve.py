"""Allowing and denying as m8tes clients do: every row of the table in m8tes-http 4.2."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from django.utils import timezone

from approvals import decisions
from approvals.models import Policy
from runs import control, rounds, turns
from runs.errors import StateConflict
from runs.models import Event, Round, Run, User
from runs.round_rows import Decider
from runs.run_states import Outcome
from tests.api.conftest import Caller, fields_of
from tests.api.requests import decide, error_code, form, fresh, link, listed

Calling = Callable[[User], Caller]
MakeRound = Callable[..., Round]


# --- the table ----------------------------------------------------------------------------------------------------


def _pending(_caller: Caller, _round: Round) -> None:
    pass


def _allowed(caller: Caller, round_: Round) -> None:
    assert decide(caller, round_, "allow").status_code == 200


def _denied(caller: Caller, round_: Round) -> None:
    assert decide(caller, round_, "deny").status_code == 200


def _cancelled(_caller: Caller, round_: Round) -> None:
    control.cancel(round_.run_id, decider=Decider(user=None, via="api"))


def _run_failed(_caller: Caller, round_: Round) -> None:
    turns.finish(round_.run, round_.turn, Outcome.FAILED, error="It broke.", error_code="agent_failed")


def _timed_out(_caller: Caller, round_: Round) -> None:
    rounds.expire(round_)


def _overdue(_caller: Caller, round_: Round) -> None:
    Round.objects.filter(pk=round_.pk).update(deadline=timezone.now() - dt.timedelta(seconds=1))


def _left_open(_caller: Caller, round_: Round) -> None:
    """No code path leaves a pause open in a finished turn; if one did, no decision would apply."""
    now = timezone.now()
    round_.run.turns.update(status="finished", outcome="completed", finished_at=now)
    Run.objects.filter(pk=round_.run_id).update(status="finished", outcome="completed")


@dataclass(frozen=True, kw_only=True)
class Case:
    """What had happened to the request, the decision that comes, and the answer: a status or a code."""

    given: Callable[[Caller, Round], None]
    decision: str
    http: int
    result: str


TABLE = [
    Case(given=_pending, decision="allow", http=200, result="allowed"),
    Case(given=_pending, decision="deny", http=200, result="denied"),
    Case(given=_allowed, decision="allow", http=200, result="allowed"),
    Case(given=_denied, decision="deny", http=200, result="denied"),
    Case(given=_allowed, decision="deny", http=404, result="gate_resolved_otherwise"),
    Case(given=_denied, decision="allow", http=404, result="gate_resolved_otherwise"),
    Case(given=_cancelled, decision="allow", http=404, result="gate_cancelled"),
    Case(given=_cancelled, decision="deny", http=404, result="gate_cancelled"),
    Case(given=_run_failed, decision="allow", http=409, result="run_not_active"),
    Case(given=_left_open, decision="allow", http=409, result="run_not_active"),
    Case(given=_timed_out, decision="allow", http=409, result="run_not_active"),
    Case(given=_timed_out, decision="deny", http=409, result="run_not_active"),
    Case(given=_overdue, decision="allow", http=409, result="run_not_active"),
    Case(given=_pending, decision="maybe", http=422, result="invalid_argument"),
]


@pytest.mark.parametrize("case", TABLE, ids=lambda case: f"{case.given.__name__[1:]}, {case.decision}")
def test_every_row_of_the_table(caller: Caller, make_round: MakeRound, case: Case) -> None:
    round_ = make_round()
    case.given(caller, round_)

    response = decide(caller, round_, case.decision)

    assert response.status_code == case.http, response.content
    body = response.json()
    assert (body["status"] if case.http == 200 else error_code(response)) == case.result


@pytest.mark.parametrize(("decision", "remember"), [("deny", False), ("allow", False), ("allow", True)])
def test_an_overdue_request_has_expired_by_the_answer(
    caller: Caller, make_round: MakeRound, decision: str, remember: bool
) -> None:
    round_ = make_round()
    _overdue(caller, round_)

    assert error_code(decide(caller, round_, decision, remember=remember)) == "run_not_active"
    assert fresh(round_).outcome == "timed_out"
    assert Event.objects.filter(run=round_.run_id, type="round.late_answer").exists()
    assert not Policy.objects.exists()


@pytest.mark.parametrize("kind", ["question", "plan", "outcome", "elicitation"])
def test_what_is_a_question_is_to_be_answered(caller: Caller, make_round: MakeRound, kind: str) -> None:
    round_ = make_round(kind)

    response = decide(caller, round_)

    assert (response.status_code, error_code(response)) == (422, "use_answer")
    assert fresh(round_).status == "pending"


def test_a_request_that_the_run_does_not_have_is_not_found(caller: Caller, make_round: MakeRound) -> None:
    mine, other = make_round(), make_round()

    for request_id in ("nothing", other.pk, f"{mine.pk}:approval", f"ask_{mine.run_id}_1"):
        response = decide(caller, mine, request_id=request_id)
        assert (response.status_code, error_code(response)) == (404, "gate_not_found"), request_id


def test_an_unknown_request_on_a_finished_run_is_not_found_rather_than_a_conflict(
    caller: Caller, make_round: MakeRound
) -> None:
    round_ = make_round()
    _cancelled(caller, round_)

    assert error_code(decide(caller, round_, request_id="nothing")) == "gate_not_found"


def test_what_the_body_lacks_is_told_before_what_the_run_lacks(caller: Caller, make_round: MakeRound) -> None:
    round_ = make_round()

    assert fields_of(decide(caller, round_, "maybe", request_id="nothing")) == [["decision"]]
    assert fields_of(decide(caller, round_, remember="yes")) == [["remember"]]
    assert fields_of(caller.post(f"runs/{round_.run_id}/approve", {"decision": "allow"})) == [["request_id"]]
    assert caller.post("runs/999999/approve", {"decision": "maybe"}).status_code == 404


# --- what the answer says -----------------------------------------------------------------------------------------


def test_the_run_goes_on_with_the_last_decision_and_says_so(caller: Caller, make_round: MakeRound) -> None:
    first = make_round()
    second = make_round(run=first.run)

    one, again, two = decide(caller, first), decide(caller, first), decide(caller, second, "deny")

    assert [response.json()["resumed"] for response in (one, again, two)] == [False, False, True]
    assert caller.get(f"runs/{first.run_id}").json()["status"] == "running"


def test_a_decision_is_kept_once_under_a_key_of_its_own(caller: Caller, make_round: MakeRound) -> None:
    round_ = make_round()

    first = decide(caller, round_).json()
    again = decide(caller, round_, reason="said twice").json()

    assert {**again, "resumed": True} == first
    kept = fresh(round_)
    assert (kept.response_idempotency_key, kept.decided_via) == (f"m8tes:{round_.pk}", "api")
    assert kept.version == 2
    assert Event.objects.filter(run=round_.run_id, type="permission_resolved").count() == 1


def test_the_reason_reaches_the_agent(caller: Caller, make_round: MakeRound) -> None:
    denied, bare = make_round(), make_round()
    decide(caller, denied, "deny", reason="Use the staging board instead.")
    decide(caller, bare, "deny", reason=None)

    def feedback(round_: Round) -> str:
        return str((fresh(round_).responses or {})["approval"]["content"]["feedback"])

    assert feedback(denied) == "Use the staging board instead."
    assert "gave no reason" in feedback(bare)


def test_a_reason_that_is_too_long_decides_nothing(caller: Caller, make_round: MakeRound) -> None:
    round_ = make_round()

    assert fields_of(decide(caller, round_, "deny", reason="x" * 10_001)) == [["reason"]]
    assert fresh(round_).status == "pending"


# --- links --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("decision", "action", "other"), [("allow", "accept", "deny"), ("deny", "decline", "allow")]
)
def test_to_allow_a_link_is_to_consent(
    caller: Caller, make_round: MakeRound, decision: str, action: str, other: str
) -> None:
    round_ = make_round("elicitation", requests={"terms": link("terms")})

    decided = decide(caller, round_, decision, remember=True).json()

    assert fresh(round_).responses == {"terms": {"action": action}}
    assert (decided["remembered"], decided["resumed"]) == (False, True)
    assert decide(caller, round_, decision).status_code == 200
    assert error_code(decide(caller, round_, other)) == "gate_resolved_otherwise"


def test_one_part_of_a_pause_is_decided_and_the_pause_waits_for_the_others(
    caller: Caller, make_round: MakeRound
) -> None:
    round_ = make_round("elicitation", requests={"terms": link("terms"), "more": link("more")})
    ids = [each["request_id"] for each in listed(caller, round_.run_id)]

    one = decide(caller, round_, request_id=ids[0])
    statuses = [each["status"] for each in listed(caller, round_.run_id)]
    opposite = decide(caller, round_, "deny", request_id=ids[0])
    two = decide(caller, round_, "deny", request_id=ids[1])

    assert (one.json()["status"], one.json()["resumed"]) == ("allowed", False)
    assert statuses == ["allowed", "pending"]
    assert error_code(opposite) == "gate_resolved_otherwise"
    assert (two.json()["status"], two.json()["resumed"]) == ("denied", True)
    assert fresh(round_).responses == {"terms": {"action": "accept"}, "more": {"action": "decline"}}


def test_a_form_beside_a_link_is_still_to_be_answered(caller: Caller, make_round: MakeRound) -> None:
    round_ = make_round("elicitation", requests={"parcel": form("parcel"), "terms": link("terms")})

    assert error_code(decide(caller, round_, request_id=f"{round_.pk}:parcel")) == "use_answer"


def test_a_link_whose_answer_can_no_longer_arrive_is_not_said_to_be_decided(
    caller: Caller, make_round: MakeRound, monkeypatch: pytest.MonkeyPatch
) -> None:
    round_ = make_round("elicitation", requests={"terms": link("terms")})

    def gone(*_: Any, **__: Any) -> Round:
        raise StateConflict("The session that waits is gone.")

    monkeypatch.setattr(decisions, "decide", gone)
    response = decide(caller, round_)

    assert (response.status_code, error_code(response)) == (409, "run_not_active")
    assert response.json()["error"]["message"] == "The session that waits is gone."
    assert fresh(round_).status == "pending"


# --- who may ------------------------------------------------------------------------------------------------------


def test_who_only_looks_on_or_is_of_another_account_decides_nothing(
    calling: Calling, vera: User, otto: User, make_round: MakeRound
) -> None:
    round_ = make_round()

    assert decide(calling(vera), round_).status_code == 403
    assert decide(calling(otto), round_).status_code == 404
    assert fresh(round_).status == "pending"
