"""Answering a pause over the API: the rules and refusals of the page, in JSON."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from runs.models import Round, User
from tests.api.conftest import ALLOW, Caller, fields_of

Calling = Callable[[User], Caller]
MakeRound = Callable[..., Round]

DENY = {"approval": {"action": "accept", "content": {"decision": "deny"}}}
ADDRESS = {"shipping_address": {"action": "accept", "content": {"street": "1 High Street"}}}


def still_pending(round_: Round) -> bool:
    return Round.objects.pending().filter(pk=round_.pk).exists()


@pytest.mark.parametrize(
    ("kind", "responses", "outcome"),
    [
        ("approval", ALLOW, "allowed"),
        ("approval", DENY, "denied"),
        ("elicitation", ADDRESS, "answered"),
        ("elicitation", {"shipping_address": {"action": "decline"}}, "answered"),
        ("question", {"q0": {"action": "accept", "content": {"selected": [1]}}}, "answered"),
        ("plan", {"plan": {"action": "accept", "content": {"decision": "approve"}}}, "answered"),
        ("outcome", {"outcome": {"action": "accept", "content": {"decision": "happened"}}}, "answered"),
    ],
)
def test_every_kind_of_pause_can_be_answered(
    calling: Calling, alice: User, make_round: MakeRound, kind: str, responses: Any, outcome: str
) -> None:
    pending = make_round(kind)

    response = calling(alice).respond(pending.pk, responses, shown_digest=pending.shown_digest)

    assert response.status_code == 200, response.content
    shown = response.json()
    assert (shown["status"], shown["outcome"]) == ("response_validated", outcome)
    assert (shown["decided_by"], shown["decided_via"]) == ("alice", "api")
    assert not still_pending(pending)


def test_the_note_reaches_the_agent_with_a_deny(calling: Calling, alice: User, make_round: MakeRound) -> None:
    shown = calling(alice).respond(make_round().pk, DENY, note="Ask Ann first.").json()

    assert shown["note"] == "Ask Ann first."
    assert shown["responses"]["approval"]["content"]["feedback"] == "Ask Ann first."


def test_the_same_key_and_body_again_gets_the_same_receipt(
    calling: Calling, alice: User, make_round: MakeRound
) -> None:
    pending = make_round()
    caller = calling(alice)

    first, second = caller.respond(pending.pk, ALLOW), caller.respond(pending.pk, ALLOW)

    assert (first.status_code, second.status_code) == (200, 200)
    assert first.json() == second.json()


@pytest.mark.parametrize(("key", "responses"), [("k", DENY), ("other", ALLOW), ("other", DENY)])
def test_a_decided_pause_says_who_was_first_and_stays_as_it_is(
    calling: Calling, alice: User, bob: User, make_round: MakeRound, key: str, responses: Any
) -> None:
    pending = make_round()
    calling(alice).respond(pending.pk, ALLOW)

    response = calling(bob).respond(pending.pk, responses, key)

    assert response.status_code == 409
    details = response.json()["error"]["details"]
    assert (details["outcome"], details["decided_by"]) == ("allowed", "alice")
    assert details["decided_at"]
    assert Round.objects.get(pk=pending.pk).responses == ALLOW


def test_content_that_does_not_fit_its_form_names_the_field_and_decides_nothing(
    calling: Calling, alice: User, make_round: MakeRound
) -> None:
    pending = make_round("elicitation")

    response = calling(alice).respond(
        pending.pk, {"shipping_address": {"action": "accept", "content": {"street": ""}}}
    )

    assert fields_of(response) == [["street"]]
    error = response.json()["error"]
    assert error["error_code"] == "managed_input_invalid"
    assert error["details"]["fields"][0]["key"] == "shipping_address"
    assert still_pending(pending)


@pytest.mark.parametrize(
    "responses",
    [
        {"other": {"action": "accept"}},
        {**ADDRESS, "other": {"action": "decline"}},
        {"shipping_address": {"action": "approve"}},
        {"shipping_address": {"action": ["accept"]}},
        {"shipping_address": {}},
        {"shipping_address": {"action": "decline", "content": {}}},
        {"shipping_address": {"action": "accept", "content": "1 High Street"}},
        {"shipping_address": {**ADDRESS["shipping_address"], "decision": "allow"}},
        {"shipping_address": "accept"},
        {"shipping_address": None},
        {},
        [],
        "accept",
        None,
    ],
    ids=str,
)
def test_a_malformed_answer_is_refused_and_the_pause_still_waits(
    calling: Calling, alice: User, make_round: MakeRound, responses: Any
) -> None:
    pending = make_round("elicitation")

    assert calling(alice).respond(pending.pk, responses).status_code == 422
    assert still_pending(pending)


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"idempotency_key": ""}, "idempotency_key"),
        ({"idempotency_key": 5}, "idempotency_key"),
        ({"idempotency_key": None}, "idempotency_key"),
        ({"idempotency_key": "k" * 201}, "idempotency_key"),
        ({"shown_digest": 5}, "shown_digest"),
        ({"note": ["x"]}, "note"),
        ({"responses": None}, "responses"),
    ],
    ids=str,
)
def test_a_wrong_type_in_the_body_names_its_field(
    calling: Calling, alice: User, make_round: MakeRound, change: dict[str, Any], path: str
) -> None:
    pending = make_round()
    body = {"responses": ALLOW, "idempotency_key": "k", **change}

    assert fields_of(calling(alice).post(f"rounds/{pending.pk}/respond", body)) == [[path]]
    assert still_pending(pending)


def test_fields_that_nobody_knows_yet_are_accepted(
    calling: Calling, alice: User, make_round: MakeRound
) -> None:
    assert calling(alice).respond(make_round().pk, ALLOW, from_the_future=True).status_code == 200


def test_a_digest_of_something_else_than_what_is_pending_is_refused(
    calling: Calling, alice: User, make_round: MakeRound
) -> None:
    pending = make_round()

    assert calling(alice).respond(pending.pk, ALLOW, shown_digest="sha256:old").status_code == 409
    assert still_pending(pending)


def test_edited_arguments_are_checked_against_the_tools_schema(
    calling: Calling, alice: User, make_round: MakeRound
) -> None:
    pending = make_round()
    content = {"decision": "allow", "arguments": {"to": "ann@example.com", "amount": "20"}}

    response = calling(alice).respond(pending.pk, {"approval": {"action": "accept", "content": content}})

    assert fields_of(response) == [["arguments", "amount"]]
    assert still_pending(pending)


def test_a_form_with_a_broken_schema_can_be_declined_but_not_filled(
    calling: Calling, alice: User, make_round: MakeRound
) -> None:
    broken = {
        "request_key": "form",
        "mode": "form",
        "message": "Fill in",
        "requested_schema": {"type": "object", "properties": {"a": {"type": "no such type"}}},
    }
    pending = make_round("elicitation", requests={"form": broken})
    caller = calling(alice)

    assert caller.get(f"rounds/{pending.pk}").json()["requests"]["form"] == broken
    refused = caller.respond(pending.pk, {"form": {"action": "accept", "content": {"a": "b"}}})
    assert refused.status_code == 422
    assert "cannot be checked" in refused.json()["error"]["message"]
    assert caller.respond(pending.pk, {"form": {"action": "decline"}}).status_code == 200


def test_another_accounts_pause_cannot_be_answered_or_told_from_one_that_is_not_there(
    calling: Calling, otto: User, make_round: MakeRound
) -> None:
    pending = make_round()

    theirs, none = calling(otto).respond(pending.pk, ALLOW), calling(otto).respond("0" * 32, ALLOW)

    assert (theirs.status_code, none.status_code) == (404, 404)
    assert theirs.json()["error"]["message"] == none.json()["error"]["message"]
    assert still_pending(pending)


def test_a_viewer_may_look_but_not_answer(calling: Calling, vera: User, make_round: MakeRound) -> None:
    pending = make_round()

    assert calling(vera).get(f"rounds/{pending.pk}").status_code == 200
    assert calling(vera).respond(pending.pk, ALLOW).status_code == 403
    assert still_pending(pending)
