"""How pauses look to m8tes clients (m8tes-http 2): one request for each key, in words and shapes of theirs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from approvals.permission_requests import requests_of
from runs import asked
from runs.models import Round, Run, Step, User
from runs.run_states import PermissionMode
from tests.api.conftest import ALLOW, Caller
from tests.api.requests import form, link, listed, request_of

Calling = Callable[[User], Caller]
MakeRound = Callable[..., Round]

VERDICT = {"effect": "ask", "code": "no_rule", "reason": "No rule covers it.", "rule_id": None}


def test_a_call_is_shown_with_its_name_its_arguments_and_words_to_decide_by(
    caller: Caller, make_round: MakeRound
) -> None:
    pending = make_round()

    request = request_of(caller, pending)

    assert request["request_id"] == pending.pk
    assert request["tool_name"] == "desk:send_email"
    assert request["tool_input"] == pending.context["arguments"]
    assert request["status"] == "pending"
    assert (request["resolved_at"], request["remembered"], request["resumed"]) == (None, None, None)
    assert (request["display_name"], request["mate_name"]) == ("Send e-mail", "Customer success")
    assert (request["consequence"], request["ask_reason"]) == (
        "May change things.",
        "No policy covers desk:send_email.",
    )
    assert request["surface_label"] == "desk (stdio entry desk)"
    assert request["fields"] == [["To", "ann@example.com"], ["Subject", "Weekly update"], ["Amount", "20"]]
    assert request["prose"] == "Send e-mail: 20 to ann@example.com"
    assert request["created_at"].endswith("Z")


def test_the_stream_and_the_webhooks_see_the_same_requests(make_round: MakeRound) -> None:
    pending = make_round("question")

    assert asked.requests_of(pending) == requests_of(pending)
    assert requests_of(pending)[0].tool_use_id == asked.tool_use_id(pending.run_id, 1)


@pytest.mark.parametrize(
    ("remember", "preselected", "user_id", "shown"),
    [
        ([], False, None, (False, False)),
        (["run", "account"], False, None, (True, False)),
        (["run", "account"], True, None, (True, True)),
        (["run", "user"], True, "cust_1", (True, True)),
        (["run"], True, None, (False, False)),
    ],
    ids=["strict", "high stakes", "usual", "of a user", "for this run only"],
)
def test_whether_it_can_be_remembered_follows_the_verdict(
    caller: Caller,
    make_run: Callable[..., Run],
    make_round: MakeRound,
    remember: list[str],
    preselected: bool,
    user_id: str | None,
    shown: tuple[bool, bool],
) -> None:
    verdict = {**VERDICT, "risk": "write", "remember": remember, "remember_preselected": preselected}
    pending = make_round(run=make_run(user_id=user_id), verdict=verdict)

    request = request_of(caller, pending)

    assert (request["can_remember"], request["remember_default"]) == shown


def test_words_for_showing_hide_nothing_and_tell_no_secret_while_the_input_stays_exact(
    caller: Caller, make_round: MakeRound
) -> None:
    arguments = {"to": "ann\u202emoc.evil", "api_key": "sk-12345", "body": "x" * 5_000, "n": list(range(3))}
    request = request_of(caller, make_round(arguments=arguments, title="Send\u200b mail"))

    fields = dict(request["fields"])
    assert request["tool_input"] == arguments
    assert fields["To"] == "ann⟨U+202E⟩moc.evil"
    assert "sk-12345" not in str(fields)
    assert len(fields["Body"]) == 2_001
    assert request["display_name"] == "Send⟨U+200B⟩ mail"


def test_more_arguments_than_anybody_reads_are_counted(caller: Caller, make_round: MakeRound) -> None:
    fields = request_of(caller, make_round(arguments={f"a{n}": n for n in range(60)}))["fields"]

    assert len(fields) == 51
    assert fields[-1] == ["…", "10 more"]


def test_a_question_is_asked_in_its_own_shape_with_hidden_characters_written_out(
    caller: Caller, make_round: MakeRound
) -> None:
    options = [{"label": "A\u200b"}, {"label": "B", "description": "the other"}]
    question = {"question": "Which\u202e?", "header": "H", "multiSelect": True, "options": options}

    request = request_of(caller, make_round("question", questions=[question]))

    assert request["tool_name"] == "AskUserQuestion"
    [shown] = request["tool_input"]["questions"]
    assert shown == {
        "question": "Which⟨U+202E⟩?",
        "header": "H",
        "multiSelect": True,
        "options": [{"label": "A⟨U+200B⟩"}, {"label": "B", "description": "the other"}],
    }
    assert "answers" not in request["tool_input"]
    assert (request["can_remember"], request["remember_default"]) == (False, False)


def test_a_plan_is_known_by_its_header_and_holds_its_text(caller: Caller, make_round: MakeRound) -> None:
    [question] = request_of(caller, make_round("plan"))["tool_input"]["questions"]

    assert (question["header"], question["question"]) == ("Plan Approval", "1. Draft\n2. Send")
    assert [option["label"] for option in question["options"]] == ["Approve", "Revise"]


def test_a_call_of_unknown_result_is_a_question_with_three_options(
    caller: Caller, make_round: MakeRound
) -> None:
    request = request_of(caller, make_round("outcome"))

    [question] = request["tool_input"]["questions"]
    assert question["question"] == "What became of desk:send_email?"
    assert [option["label"] for option in question["options"]] == [
        "It happened",
        "Run it again",
        "Stop the run",
    ]
    assert request["ask_reason"] == "The worker died while the call was under way."


def test_a_form_is_a_question_for_each_of_its_fields(caller: Caller, make_round: MakeRound) -> None:
    request = request_of(caller, make_round("elicitation", requests={"parcel": form("parcel")}))

    questions = {each["question"]: each for each in request["tool_input"]["questions"]}
    assert request["tool_name"] == "AskUserQuestion"
    assert request["tool_input"]["message"] == "Where to?"
    assert list(questions) == [
        "Street",
        "How many parcels?",
        "Weight in kg",
        "Insure it?",
        "Speed",
        "Extras",
        "note",
    ]
    labels = {text: [option["label"] for option in each["options"]] for text, each in questions.items()}
    assert labels["Insure it?"] == ["Yes", "No"]
    assert labels["Speed"] == ["Standard", "Express"]
    assert labels["Extras"] == ["gift wrap", "signature, by hand", "SMS"]
    assert labels["Street"] == labels["Weight in kg"] == []
    assert [text for text, each in questions.items() if each["multiSelect"]] == ["Extras"]
    assert [text for text, each in questions.items() if each["required"]] == ["Street", "How many parcels?"]
    assert questions["Weight in kg"]["header"] == "weight"


def test_fields_that_would_ask_the_same_are_told_apart(caller: Caller, make_round: MakeRound) -> None:
    schema = {
        "type": "object",
        "properties": {
            "a": {"type": "string", "title": "Name"},
            "b": {"type": "string", "title": "Name"},
            "c": {"type": "string", "description": "Say it"},
            "d": {"type": "string", "description": "Say it"},
            "e": {"type": "string", "title": "x" * 1_000},
            "f": {"type": "string", "title": "x" * 1_001},
        },
    }

    request = request_of(caller, make_round("elicitation", requests={"f": form("f", schema)}))

    texts = [question["question"] for question in request["tool_input"]["questions"]]
    assert len(set(texts)) == 6
    assert all(len(text) < 310 for text in texts)


@pytest.mark.parametrize(
    "schema",
    [True, [], {"type": "string"}, {"properties": []}, {"anyOf": [{}]}, {"$ref": "https://x.example/y"}],
    ids=str,
)
def test_a_form_that_cannot_be_taken_apart_is_one_question(
    caller: Caller, make_round: MakeRound, schema: Any
) -> None:
    request = request_of(
        caller, make_round("elicitation", requests={"f": form("f") | {"requested_schema": schema}})
    )

    assert [question["question"] for question in request["tool_input"]["questions"]] == ["Answer"]


def test_a_link_is_to_be_allowed_and_says_where_it_leads(caller: Caller, make_round: MakeRound) -> None:
    request = request_of(caller, make_round("elicitation", requests={"terms": link("terms")}))

    assert request["tool_name"] == "UrlElicitation"
    assert request["tool_input"] == {
        "url": "https://terms.example/agree",
        "shown": "https://terms.example/agree",
        "host": "terms.example",
        "warnings": [],
        "message": "Agree to the terms",
    }


@pytest.mark.parametrize("url", ["javascript:alert(1)", "http://terms.example/", "https://a\u202eb.example"])
def test_a_link_that_no_browser_should_open_is_shown_and_not_given(
    caller: Caller, make_round: MakeRound, url: str
) -> None:
    shown = request_of(caller, make_round("elicitation", requests={"t": link("t", url)}))["tool_input"]

    assert shown["url"] is None
    assert shown["warnings"]
    assert "\u202e" not in shown["shown"]


def test_a_pause_that_asks_for_several_things_is_several_requests(
    caller: Caller, make_round: MakeRound
) -> None:
    pending = make_round("elicitation", requests={"parcel": form("parcel"), "terms:v2": link("terms:v2")})

    found = listed(caller, pending.run_id)

    assert [(each["request_id"], each["tool_name"]) for each in found] == [
        (f"{pending.pk}:parcel", "AskUserQuestion"),
        (f"{pending.pk}:terms:v2", "UrlElicitation"),
    ]


def test_requests_come_oldest_first_in_every_state_and_as_a_bare_array(
    caller: Caller, make_round: MakeRound
) -> None:
    first = make_round()
    second = make_round("question", run=first.run)
    caller.respond(first.pk, ALLOW)

    found = listed(caller, first.run_id)

    assert [(each["request_id"], each["status"]) for each in found] == [
        (first.pk, "allowed"),
        (second.pk, "pending"),
    ]


@pytest.mark.parametrize(
    ("kind", "responses", "status", "answers"),
    [
        ("approval", ALLOW, "allowed", None),
        ("approval", {"approval": {"action": "accept", "content": {"decision": "deny"}}}, "denied", None),
        (
            "question",
            {"q0": {"action": "accept", "content": {"selected": [0], "other": "and more"}}},
            "allowed",
            {"Which segment?": "enterprise, and more"},
        ),
        ("question", {"q0": {"action": "decline"}}, "denied", None),
        ("question", {"q0": {"action": "cancel"}}, "cancelled", None),
        (
            "plan",
            {"plan": {"action": "accept", "content": {"decision": "approve"}}},
            "allowed",
            {"1. Draft\n2. Send": "Approve"},
        ),
        (
            "plan",
            {"plan": {"action": "accept", "content": {"decision": "revise", "text": "Shorter"}}},
            "denied",
            {"1. Draft\n2. Send": "Revise: Shorter"},
        ),
        (
            "outcome",
            {"outcome": {"action": "accept", "content": {"decision": "happened"}}},
            "allowed",
            {"What became of desk:send_email?": "It happened"},
        ),
        (
            "elicitation",
            {"shipping_address": {"action": "accept", "content": {"street": "Main St"}}},
            "allowed",
            {"street": "Main St"},
        ),
        ("elicitation", {"shipping_address": {"action": "decline"}}, "denied", None),
    ],
)
def test_a_decided_request_says_how_and_when(
    caller: Caller, make_round: MakeRound, kind: str, responses: Any, status: str, answers: Any
) -> None:
    pending = make_round(kind)
    assert caller.respond(pending.pk, responses).status_code == 200

    request = request_of(caller, pending)

    assert request["status"] == status
    assert request["resolved_at"].endswith("Z")
    assert request["tool_input"].get("answers") == answers
    assert (request["auto_resolved"], request["remembered"]) == (False, False)


def test_a_call_that_a_switch_of_mode_let_go_was_resolved_by_itself(
    caller: Caller, make_round: MakeRound
) -> None:
    pending = make_round()
    caller.patch(
        f"runs/{pending.run_id}/permission-mode", {"permission_mode": PermissionMode.AUTONOMOUS.value}
    )

    request = request_of(caller, pending)

    assert (request["status"], request["auto_resolved"]) == ("allowed", True)


def test_an_ask_that_did_not_wait_is_there_with_the_marks_of_an_answer_nobody_gave(
    caller: Caller, make_round: MakeRound
) -> None:
    first = make_round()
    question = {
        "question": "Colour?",
        "header": "Colour",
        "multiSelect": False,
        "options": [{"label": "red"}],
    }
    Step.objects.create(
        run=first.run,
        turn=first.turn,
        seq=9,
        kind="ask",
        path="steps.9",
        params={"questions": [question], "blocking": False},
        result={"status": "done", "answers": {"Colour?": "red"}, "auto_resolved": True},
    )

    request = listed(caller, first.run_id)[-1]

    assert request["request_id"] == f"ask_{first.run_id}_9"
    assert (request["status"], request["auto_resolved"]) == ("allowed", True)
    assert request["tool_input"]["answers"] == {
        "Colour?": "red [auto-selected: the agent did not wait for an answer]"
    }


def test_requests_are_those_of_the_account_and_of_the_end_user_that_is_named(
    caller: Caller, calling: Calling, otto: User, make_run: Callable[..., Run], make_round: MakeRound
) -> None:
    run = make_round(run=make_run(user_id="cust_1")).run

    assert calling(otto).get(f"runs/{run.pk}/permissions").status_code == 404
    assert caller.get(f"runs/{run.pk}/permissions", user_id="cust_1").status_code == 200
    assert caller.get(f"runs/{run.pk}/permissions", user_id="cust_2").status_code == 404
    assert caller.get("runs/999999/permissions").status_code == 404


def test_a_viewer_may_look(calling: Calling, vera: User, make_round: MakeRound) -> None:
    assert listed(calling(vera), make_round().run_id)
