"""Allowing several calls at once: all of them or none, and never a strict one (R21)."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from approvals import decisions
from approvals.batch import MOST_TOGETHER, Choice
from approvals.decisions import decide, decide_several
from approvals.models import Policy
from runs.access import Actor
from runs.errors import ManagedInputValidationError, NotAllowed, NotFound, StateConflict
from runs.models import Event, Round, Run, Tool, User
from runs.round_states import RoundStatus

Acting = Callable[[User], Actor]
MakeRound = Callable[..., Round]

ALLOW = {"approval": {"action": "accept", "content": {"decision": "allow"}}}
DENY = {"approval": {"action": "accept", "content": {"decision": "deny"}}}


def chosen(*rounds: Round) -> list[Choice]:
    """The choices of a person who was just shown these calls."""
    return [Choice(round_id=round_.pk, shown_digest=round_.shown_digest) for round_ in rounds]


def statuses(*rounds: Round) -> list[str]:
    return [Round.objects.get(pk=round_.pk).status for round_ in rounds]


def refused_by(refusal: StateConflict) -> dict[str, str]:
    return {entry["round_id"]: entry["message"] for entry in refusal.details["refused"]}


def decided_events() -> int:
    return Event.objects.filter(type__in=["approval.response", "permission_resolved"]).count()


def test_all_chosen_calls_are_allowed_and_their_runs_woken(
    acting: Acting, alice: User, make_round: MakeRound
) -> None:
    one, two, other = make_round(), make_round(), make_round()

    allowed = decide_several(acting(alice), chosen(two, one), idempotency_key="k")

    assert {round_.pk for round_ in allowed} == {one.pk, two.pk}
    for round_ in Round.objects.filter(pk__in=[one.pk, two.pk]):
        assert (round_.outcome, round_.decided_by, round_.decided_via) == ("allowed", alice, "page")
        assert round_.responses == ALLOW
    for run in (one.run, two.run):
        assert Run.objects.get(pk=run.pk).wake_seq > run.wake_seq
    assert statuses(other) == ["pending"]


def test_calls_of_one_run_are_allowed_together_and_the_run_goes_on(
    acting: Acting, alice: User, make_round: MakeRound
) -> None:
    one = make_round()
    two = make_round(run=one.run)

    decide_several(acting(alice), chosen(one, two), idempotency_key="k")

    assert Run.objects.get(pk=one.run_id).status == "running_turn"


def test_every_call_has_the_events_of_a_decision_of_its_own(
    acting: Acting, alice: User, make_round: MakeRound
) -> None:
    rounds = [make_round(), make_round()]

    decide_several(acting(alice), chosen(*rounds), idempotency_key="k")

    for round_ in rounds:
        resolved = Event.objects.get(run=round_.run, type="permission_resolved")
        assert resolved.actor == alice
        assert resolved.payload["request_id"] == round_.pk
        assert resolved.payload["decided_digest"] == round_.shown_digest
        answered = Event.objects.get(run=round_.run, type="approval.response")
        assert (answered.payload["outcome"], answered.payload["via"]) == ("allowed", "page")
    assert not Policy.objects.exists()


def test_one_call_that_was_decided_meanwhile_keeps_all_from_being_allowed(
    acting: Acting, alice: User, bob: User, make_round: MakeRound
) -> None:
    one, two, three = make_round(), make_round(), make_round()
    decide(acting(bob), two.pk, DENY, idempotency_key="bob")
    before = decided_events()

    with pytest.raises(StateConflict, match="Nothing was allowed") as refused:
        decide_several(acting(alice), chosen(one, two, three), idempotency_key="k")

    [entry] = refused.value.details["refused"]
    assert (entry["round_id"], entry["outcome"], entry["decided_by"]) == (two.pk, "denied", "bob")
    assert "denied by bob" in entry["message"]
    assert statuses(one, three) == ["pending", "pending"]
    assert decided_events() == before


def test_a_call_that_shows_something_else_now_keeps_all_from_being_allowed(
    acting: Acting, alice: User, make_round: MakeRound
) -> None:
    one, two = make_round(), make_round()
    choices = [*chosen(one), Choice(round_id=two.pk, shown_digest="sha256:else")]

    with pytest.raises(StateConflict) as refused:
        decide_several(acting(alice), choices, idempotency_key="k")

    assert list(refused_by(refused.value)) == [two.pk]
    assert statuses(one, two) == ["pending", "pending"]


@pytest.mark.parametrize("risk", ["strict", "blocked"])
def test_a_tool_that_became_strict_or_blocked_keeps_all_from_being_allowed(
    acting: Acting, alice: User, make_round: MakeRound, risk: str
) -> None:
    one, two = make_round(), make_round(tool="desk:refund")
    Tool.objects.filter(name="refund").update(risk=risk)

    with pytest.raises(StateConflict) as refused:
        decide_several(acting(alice), chosen(one, two), idempotency_key="k")

    assert list(refused_by(refused.value)) == [two.pk]
    assert "desk:refund" in refused_by(refused.value)[two.pk]
    assert statuses(one, two) == ["pending", "pending"]


def test_a_call_that_was_strict_when_it_asked_stays_alone(
    acting: Acting, alice: User, make_round: MakeRound
) -> None:
    verdict = {"effect": "ask", "code": "strict", "reason": "Always.", "risk": "strict", "remember": []}
    one, two = make_round(), make_round(verdict=verdict)

    with pytest.raises(StateConflict) as refused:
        decide_several(acting(alice), chosen(one, two), idempotency_key="k")

    assert refused_by(refused.value) == {two.pk: "Always."}
    assert statuses(one, two) == ["pending", "pending"]


def test_an_overdue_call_expires_and_the_others_stay(
    acting: Acting, alice: User, make_round: MakeRound
) -> None:
    one, two = make_round(), make_round()
    Round.objects.filter(pk=two.pk).update(deadline=timezone.now() - dt.timedelta(seconds=1))

    with pytest.raises(StateConflict) as refused:
        decide_several(acting(alice), chosen(one, two), idempotency_key="k")

    assert "deadline" in refused_by(refused.value)[two.pk]
    two.refresh_from_db()
    assert (two.status, two.outcome, two.responses) == ("failed", "timed_out", None)
    assert Run.objects.get(pk=two.run_id).outcome == "timed_out"
    assert statuses(one) == ["pending"]


def test_every_call_that_ended_with_an_expiry_is_named(
    acting: Acting, alice: User, make_round: MakeRound
) -> None:
    due = make_round()
    beside = make_round(run=due.run)
    Round.objects.filter(pk=due.pk).update(deadline=timezone.now() - dt.timedelta(seconds=1))

    with pytest.raises(StateConflict) as refused:
        decide_several(acting(alice), chosen(beside, due), idempotency_key="k")

    ended = {round_.pk for round_ in (due, beside) if statuses(round_) != ["pending"]}
    assert set(refused_by(refused.value)) == ended
    assert due.pk in ended


def test_a_refusal_on_the_way_takes_back_what_came_before_it(
    acting: Acting, alice: User, make_round: MakeRound, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = make_round(), make_round()
    really = decisions.rounds.try_answer_locked

    def late_for_one(round_: Round, *args: Any, **kwargs: Any) -> Round | StateConflict:
        if round_.pk == one.pk:  # the younger run is locked, and so decided, first
            assert Round.objects.get(pk=two.pk).status == RoundStatus.RESPONSE_VALIDATED
            return StateConflict("The deadline has passed.", details={"round_id": one.pk})
        return really(round_, *args, **kwargs)

    monkeypatch.setattr(decisions.rounds, "try_answer_locked", late_for_one)
    with pytest.raises(StateConflict) as refused:
        decide_several(acting(alice), chosen(one, two), idempotency_key="k")

    assert refused_by(refused.value) == {one.pk: "The deadline has passed."}
    assert statuses(one, two) == ["pending", "pending"]
    assert decided_events() == 0


def test_the_same_decision_again_gives_the_same_rounds_and_decides_nothing(
    acting: Acting, alice: User, make_round: MakeRound
) -> None:
    one, two = make_round(), make_round()
    first = decide_several(acting(alice), chosen(one, two), idempotency_key="k")
    again = decide_several(acting(alice), chosen(two, one, two), idempotency_key="k")

    assert [(each.pk, each.version) for each in again] == [(each.pk, each.version) for each in first]
    assert Event.objects.filter(type="permission_resolved").count() == 2


@pytest.mark.parametrize("others", [0, 2], ids=["fewer members", "more members"])
def test_the_same_key_with_other_members_is_refused_and_changes_nothing(
    acting: Acting, alice: User, make_round: MakeRound, others: int
) -> None:
    one, two, three = make_round(), make_round(), make_round()
    decide_several(acting(alice), chosen(one, two), idempotency_key="k")
    members = [one, three] if others else [one]

    with pytest.raises(StateConflict, match="Nothing was allowed"):
        decide_several(acting(alice), chosen(*members), idempotency_key="k")

    assert statuses(three) == ["pending"]


@pytest.mark.django_db(transaction=True)
def test_of_two_batches_that_share_a_call_exactly_one_is_allowed(
    acting: Acting, alice: User, bob: User, make_round: MakeRound
) -> None:
    shared, hers, his = make_round(), make_round(), make_round()
    start = Barrier(2, timeout=10)

    def batch(user: User, *rounds: Round) -> list[Round] | StateConflict:
        try:
            actor = acting(user)
            start.wait()
            return decide_several(actor, chosen(*rounds), idempotency_key=user.username)
        except StateConflict as refused:
            return refused
        finally:
            connection.close()

    with ThreadPoolExecutor(2) as pool:
        waiting = {
            "alice": pool.submit(batch, alice, shared, hers),
            "bob": pool.submit(batch, bob, his, shared),
        }
        ends = {name: future.result(timeout=30) for name, future in waiting.items()}

    [winner] = [name for name, end in ends.items() if isinstance(end, list)]
    [refusal] = [end for end in ends.values() if isinstance(end, StateConflict)]
    assert f"allowed by {winner}" in refused_by(refusal)[shared.pk]
    left_over = his if winner == "alice" else hers
    assert statuses(left_over) == ["pending"]
    assert Round.objects.filter(outcome="allowed", decided_by__username=winner).count() == 2


def test_a_viewer_may_not(acting: Acting, vera: User, make_round: MakeRound) -> None:
    pending = make_round()

    with pytest.raises(NotAllowed, match="operator"):
        decide_several(acting(vera), chosen(pending), idempotency_key="k")

    assert statuses(pending) == ["pending"]


def test_a_call_of_another_account_looks_as_if_it_did_not_exist_and_nothing_is_decided(
    acting: Acting, otto: User, alice: User, make_round: MakeRound
) -> None:
    mine = make_round()
    unknown = Choice(round_id="nothing", shown_digest=mine.shown_digest)

    with pytest.raises(NotFound) as foreign:
        decide_several(acting(otto), chosen(mine), idempotency_key="k")
    with pytest.raises(NotFound) as missing:
        decide_several(acting(otto), [unknown], idempotency_key="k")
    with pytest.raises(NotFound):
        decide_several(acting(alice), [*chosen(mine), unknown], idempotency_key="k")

    assert foreign.value.message == missing.value.message
    assert statuses(mine) == ["pending"]


def test_a_choice_that_no_page_offers_is_refused(acting: Acting, alice: User, make_round: MakeRound) -> None:
    call, plan = make_round(), make_round("plan")
    many = [Choice(round_id=str(number), shown_digest="") for number in range(MOST_TOGETHER + 1)]

    for choices, key in (([], "k"), (many, "k"), (chosen(call), ""), (chosen(call, plan), "k")):
        with pytest.raises(ManagedInputValidationError):
            decide_several(acting(alice), choices, idempotency_key=key)

    assert statuses(call, plan) == ["pending", "pending"]
