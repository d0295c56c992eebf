"""Deciding a pause: who may, exactly once, and what the agent and the journal get (R2, R3, R12, R19, R20)."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from approvals.decisions import DENIED, decide
from runs.access import Actor
from runs.errors import (
    ManagedInputConflict,
    ManagedInputValidationError,
    NotAllowed,
    NotFound,
    StateConflict,
)
from runs.models import Event, Round, Run, User

Acting = Callable[[User], Actor]
MakeRound = Callable[..., Round]

ALLOW = {"approval": {"action": "accept", "content": {"decision": "allow"}}}
DENY = {"approval": {"action": "accept", "content": {"decision": "deny"}}}


def allow_with(**content: Any) -> dict[str, Any]:
    return {"approval": {"action": "accept", "content": {"decision": "allow", **content}}}


def test_an_allow_is_stored_with_who_and_wakes_the_run(
    acting: Acting, alice: User, make_round: MakeRound
) -> None:
    pending = make_round()
    woken = pending.run.wake_seq

    decided = decide(acting(alice), pending.pk, ALLOW, idempotency_key="k", shown_digest=pending.shown_digest)

    assert (decided.status, decided.outcome) == ("response_validated", "allowed")
    assert (decided.decided_by, decided.decided_via) == (alice, "page")
    run = Run.objects.get(pk=pending.run_id)
    assert run.wake_seq > woken
    assert run.status == "running_turn"


def test_the_end_of_an_approval_is_an_event_with_what_was_shown_and_what_was_decided(
    acting: Acting, alice: User, make_round: MakeRound
) -> None:
    pending = make_round()
    decide(acting(alice), pending.pk, ALLOW, idempotency_key="k", via="api")

    event = Event.objects.get(type="permission_resolved")
    assert event.actor == alice
    assert event.payload["request_id"] == pending.pk
    assert (event.payload["resolved_status"], event.payload["remembered"]) == ("allowed", False)
    assert event.payload["shown_digest"] == event.payload["decided_digest"] == pending.shown_digest


@pytest.mark.parametrize("words", [None, "", "   "])
def test_a_deny_without_words_still_tells_the_agent_what_to_do(
    acting: Acting, alice: User, make_round: MakeRound, words: str | None
) -> None:
    content = {"decision": "deny"} | ({} if words is None else {"feedback": words})
    pending = make_round()

    decided = decide(
        acting(alice),
        pending.pk,
        {"approval": {"action": "accept", "content": content}},
        idempotency_key="k",
    )

    assert (decided.outcome, decided.note) == ("denied", "")
    assert decided.responses == {
        "approval": {"action": "accept", "content": {"decision": "deny", "feedback": DENIED}}
    }


def test_the_words_of_a_deny_reach_the_agent_also_as_a_note(
    acting: Acting, alice: User, make_round: MakeRound
) -> None:
    decided = decide(acting(alice), make_round().pk, DENY, idempotency_key="k", note="Use the other address.")

    assert decided.note == "Use the other address."
    assert decided.responses is not None
    assert decided.responses["approval"]["content"]["feedback"] == "Use the other address."


def test_a_deny_is_never_held_up_by_the_rest_of_the_form(
    acting: Acting, alice: User, make_round: MakeRound
) -> None:
    wrong = {"decision": "deny", "arguments": {"amount": "much"}}
    responses = {"approval": {"action": "accept", "content": wrong}}

    decided = decide(acting(alice), make_round().pk, responses, idempotency_key="k")

    assert decided.outcome == "denied"
    assert decided.responses is not None
    assert "arguments" not in decided.responses["approval"]["content"]


def test_edited_arguments_keep_their_types(acting: Acting, alice: User, make_round: MakeRound) -> None:
    pending = make_round()
    edited = {"to": "007", "subject": "x", "amount": 9007199254740993}

    decided = decide(acting(alice), pending.pk, allow_with(arguments=edited), idempotency_key="k")

    stored = Round.objects.get(pk=decided.pk).responses
    assert stored is not None
    assert stored["approval"]["content"]["arguments"] == edited
    assert Event.objects.get(type="permission_resolved").payload["edited"] is True


def test_edited_arguments_that_do_not_fit_the_tool_are_refused_field_by_field(
    acting: Acting, alice: User, make_round: MakeRound
) -> None:
    pending = make_round()
    edited = {"to": 5, "subject": "x", "amount": "20"}

    with pytest.raises(ManagedInputValidationError) as refused:
        decide(acting(alice), pending.pk, allow_with(arguments=edited), idempotency_key="k")

    wrong = sorted(field["path"] for field in refused.value.details["fields"])
    assert wrong == [["arguments", "amount"], ["arguments", "to"]]
    pending.refresh_from_db()
    assert (pending.status, pending.responses, pending.version) == ("pending", None, 1)
    assert not Event.objects.filter(type__in=["approval.response", "permission_resolved"]).exists()


def test_arguments_sent_back_as_they_were_are_no_edit(
    acting: Acting, alice: User, make_round: MakeRound
) -> None:
    pending = make_round()
    same = dict(reversed(pending.context["arguments"].items()))

    decided = decide(acting(alice), pending.pk, allow_with(arguments=same), idempotency_key="k")

    assert decided.responses == ALLOW


def test_a_decision_on_something_else_than_what_is_pending_is_refused(
    acting: Acting, alice: User, make_round: MakeRound
) -> None:
    pending = make_round()

    with pytest.raises(StateConflict, match="Reload"):
        decide(acting(alice), pending.pk, ALLOW, idempotency_key="k", shown_digest="sha256:else")

    pending.refresh_from_db()
    assert pending.status == "pending"


def test_the_same_decision_again_returns_the_first_receipt(
    acting: Acting, alice: User, make_round: MakeRound
) -> None:
    pending = make_round()
    first = decide(acting(alice), pending.pk, DENY, idempotency_key="k")
    again = decide(acting(alice), pending.pk, DENY, idempotency_key="k")

    assert (again.pk, again.version, again.responses) == (first.pk, first.version, first.responses)
    assert Event.objects.filter(type="permission_resolved").count() == 1


@pytest.mark.parametrize(("key", "body"), [("k", DENY), ("other", ALLOW)], ids=["other body", "other key"])
def test_a_different_second_decision_changes_nothing_and_says_who_was_first(
    acting: Acting, alice: User, bob: User, make_round: MakeRound, key: str, body: dict[str, Any]
) -> None:
    pending = make_round()
    decide(acting(alice), pending.pk, ALLOW, idempotency_key="k")

    with pytest.raises(ManagedInputConflict, match="allowed by alice") as refused:
        decide(acting(bob), pending.pk, body, idempotency_key=key)

    assert refused.value.details["decided_by"] == "alice"
    assert refused.value.details["outcome"] == "allowed"
    assert Round.objects.get(pk=pending.pk).outcome == "allowed"


@pytest.mark.django_db(transaction=True)
def test_of_two_people_deciding_at_once_exactly_one_wins_and_the_other_learns_who(
    acting: Acting, alice: User, bob: User, make_round: MakeRound
) -> None:
    pending = make_round()
    start = Barrier(2, timeout=10)

    def decision(user: User, body: dict[str, Any]) -> str | StateConflict | ManagedInputConflict:
        try:
            actor = acting(user)
            start.wait()
            return str(decide(actor, pending.pk, body, idempotency_key=user.username).outcome)
        except (StateConflict, ManagedInputConflict) as refused:
            return refused
        finally:
            connection.close()

    with ThreadPoolExecutor(2) as pool:
        waiting = {
            "alice": pool.submit(decision, alice, ALLOW),
            "bob": pool.submit(decision, bob, DENY),
        }
        ends = {name: future.result(timeout=30) for name, future in waiting.items()}

    [winner] = [name for name, end in ends.items() if isinstance(end, str)]
    [refused] = [end for end in ends.values() if not isinstance(end, str)]
    assert refused.details["decided_by"] == winner
    assert refused.details["outcome"] == ends[winner]
    assert Round.objects.get(pk=pending.pk).decided_by.username == winner
    assert Event.objects.filter(type="approval.response").count() == 1


def test_a_viewer_may_not_decide(acting: Acting, vera: User, make_round: MakeRound) -> None:
    pending = make_round()

    with pytest.raises(NotAllowed, match="operator"):
        decide(acting(vera), pending.pk, ALLOW, idempotency_key="k")


def test_a_pause_of_another_account_looks_as_if_it_did_not_exist(
    acting: Acting, otto: User, make_round: MakeRound
) -> None:
    pending = make_round()

    with pytest.raises(NotFound) as foreign:
        decide(acting(otto), pending.pk, ALLOW, idempotency_key="k")
    with pytest.raises(NotFound) as unknown:
        decide(acting(otto), "nothing", ALLOW, idempotency_key="k")

    assert foreign.value.message == unknown.value.message
    assert Round.objects.get(pk=pending.pk).status == "pending"


@pytest.mark.parametrize(
    "responses",
    [
        {},
        {"other": {"action": "accept", "content": {}}},
        {"approval": None},
        {"approval": {"action": "accept"}},
        {"approval": {"action": "accept", "content": {"decision": "maybe"}}},
        {"approval": {"action": "accept", "content": {"decision": "allow"}, "extra": 1}},
        {"approval": {"action": "decline"}},
    ],
)
def test_a_malformed_answer_is_refused_and_the_pause_stays(
    acting: Acting, alice: User, make_round: MakeRound, responses: Any
) -> None:
    pending = make_round()

    with pytest.raises(ManagedInputValidationError):
        decide(acting(alice), pending.pk, responses, idempotency_key="k")

    assert Round.objects.get(pk=pending.pk).status == "pending"


def test_an_overdue_decision_is_refused_and_the_expiry_is_kept(
    acting: Acting, alice: User, make_round: MakeRound
) -> None:
    pending = make_round()
    Round.objects.filter(pk=pending.pk).update(deadline=timezone.now() - dt.timedelta(seconds=1))

    with pytest.raises(StateConflict, match="deadline"):
        decide(acting(alice), pending.pk, DENY, idempotency_key="k")

    pending.refresh_from_db()
    assert (pending.status, pending.outcome, pending.responses) == ("failed", "timed_out", None)
    assert Run.objects.get(pk=pending.run_id).outcome == "timed_out"
    late = Event.objects.get(type="round.late_answer")
    assert late.actor == alice


def test_other_pauses_of_the_run_are_untouched_and_keep_it_waiting(
    acting: Acting, alice: User, make_round: MakeRound
) -> None:
    one = make_round()
    two = make_round(run=one.run)

    decide(acting(alice), one.pk, ALLOW, idempotency_key="k")

    two.refresh_from_db()
    assert (two.status, two.version) == ("pending", 1)
    assert Run.objects.get(pk=one.run_id).status == "waiting_for_input"


def test_the_text_of_a_revised_plan_is_the_note(acting: Acting, alice: User, make_round: MakeRound) -> None:
    responses = {"plan": {"action": "accept", "content": {"decision": "revise", "text": "Ask first."}}}

    decided = decide(acting(alice), make_round("plan").pk, responses, idempotency_key="k")

    assert (decided.outcome, decided.note) == ("answered", "Ask first.")
