"""Answering the agent itself: questions, plans, calls whose result nobody knows (R22, R32)."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from runs.requests import plan
from tests.pages.inbox_page import decide, fresh, text

CHANNELS = {
    "question": "Which channels?",
    "header": "Channels",
    "multiSelect": True,
    "options": [{"label": "E-mail"}, {"label": "Chat", "description": "Office hours only"}],
}
SEGMENT = {
    "question": "Which segment?",
    "header": "Segment",
    "multiSelect": False,
    "options": [{"label": "enterprise"}],
}


@pytest.fixture
def client(client_for: Any, alice: Any) -> Client:
    return client_for(alice)


def test_a_question_shows_its_options_with_their_descriptions(client: Client, make_round: Any) -> None:
    page = text(client.get(f"/rounds/{make_round('question', questions=[CHANNELS]).pk}/"))
    assert "Which channels?" in page
    assert "Office hours only" in page
    assert 'type="checkbox" name="q0" value="1"' in page


def test_other_text_is_kept_beside_the_chosen_options(client: Client, make_round: Any) -> None:
    round_ = make_round("question", questions=[CHANNELS])
    decide(client, round_, answer="accept", q0=["1", "0"], **{"q0-other": "and by post"})
    assert fresh(round_).responses == {
        "q0": {"action": "accept", "content": {"selected": [0, 1], "other": "and by post"}}
    }


def test_an_answer_without_choice_and_text_is_refused_and_the_rest_is_kept(
    client: Client, make_round: Any
) -> None:
    round_ = make_round("question", questions=[SEGMENT, CHANNELS])
    response = decide(client, round_, answer="accept", q1=["1"], **{"q1-other": "typed too"})
    page = text(response)
    assert response.status_code == 422
    assert page.count("Question 1: choose an option or write an answer.") == 2
    assert 'name="q1" value="1" checked' in page
    assert "typed too" in page
    assert fresh(round_).status == "pending"


@pytest.mark.parametrize("index", ["9", "-1", "1e3", "99999"])
def test_an_option_that_was_not_offered_is_refused(index: str, client: Client, make_round: Any) -> None:
    round_ = make_round("question", questions=[SEGMENT])
    assert decide(client, round_, answer="accept", q0=[index]).status_code == 422
    assert fresh(round_).status == "pending"


def test_declining_declines_every_question(client: Client, make_round: Any) -> None:
    round_ = make_round("question", questions=[SEGMENT, CHANNELS])
    decide(client, round_, answer="decline", q0=["0"])
    assert fresh(round_).responses == {"q0": {"action": "decline"}, "q1": {"action": "decline"}}
    assert "<b>Declined</b> by alice" in text(client.get(f"/rounds/{round_.pk}/"))


def test_a_plan_is_shown_as_plain_text_and_approved(client: Client, make_round: Any) -> None:
    round_ = make_round("plan", text="# Title\n<b>bold</b>\n1. Step")
    page = text(client.get(f"/rounds/{round_.pk}/"))
    assert "# Title\n&lt;b&gt;bold&lt;/b&gt;\n1. Step" in page
    decide(client, round_, decision="approve")
    assert fresh(round_).responses == {"plan": {"action": "accept", "content": {"decision": "approve"}}}
    assert "<b>Approved</b> by alice" in text(client.get(f"/rounds/{round_.pk}/"))


def test_a_revision_needs_to_say_what_should_change(client: Client, make_round: Any) -> None:
    round_ = make_round("plan")
    response = decide(client, round_, decision="revise", text=" ")
    assert response.status_code == 422
    assert text(response).count("Say what should change in the plan.") == 2
    decide(client, round_, decision="revise", text="Staging first")
    content = (fresh(round_).responses or {})["plan"]["content"]
    assert content == {"decision": "revise", "text": "Staging first"}


def test_approving_a_plan_may_name_the_mode_that_follows(client: Client, make_round: Any) -> None:
    round_ = make_round("plan", requests=plan("1. Step", ["approval", "autonomous"]))
    page = text(client.get(f"/rounds/{round_.pk}/"))
    assert '<option value="">Stay in the mode plan</option>' in page
    assert '<option value="autonomous">Go on in the mode autonomous</option>' in page
    refused = decide(client, round_, decision="revise", text="", then="autonomous")
    assert '<option value="autonomous" selected>' in text(refused), "what was chosen is kept"
    decide(client, round_, decision="approve", text="", then="autonomous")
    content = (fresh(round_).responses or {})["plan"]["content"]
    assert content == {"decision": "approve", "then": "autonomous"}
    assert fresh(round_).run.mode == "autonomous"


def test_a_mode_that_was_chosen_beside_a_revision_counts_for_nothing(client: Client, make_round: Any) -> None:
    round_ = make_round("plan", requests=plan("1. Step", ["autonomous"]))
    decide(client, round_, decision="revise", text="Staging first", then="autonomous")
    assert (fresh(round_).status, fresh(round_).run.mode) == ("response_validated", "approval")


def test_a_plan_without_a_choice_of_modes_shows_none(client: Client, make_round: Any) -> None:
    assert 'name="then"' not in text(client.get(f"/rounds/{make_round('plan').pk}/"))


def test_a_plan_that_is_not_the_one_shown_is_not_approved(client: Client, make_round: Any) -> None:
    round_ = make_round("plan")
    assert decide(client, round_, decision="approve", digest="sha256:older").status_code == 409
    assert fresh(round_).status == "pending"


@pytest.mark.parametrize("decision", ["happened", "run_again", "stop"])
def test_a_person_says_what_became_of_a_call(decision: str, client: Client, make_round: Any) -> None:
    round_ = make_round("outcome")
    assert "Did this happen?" in text(client.get(f"/rounds/{round_.pk}/"))
    decide(client, round_, decision=decision, text="Looked into the mailbox")
    content = (fresh(round_).responses or {})["outcome"]["content"]
    assert content == {"decision": decision, "text": "Looked into the mailbox"}


def test_saying_nothing_about_a_call_changes_nothing(client: Client, make_round: Any) -> None:
    round_ = make_round("outcome")
    assert decide(client, round_, decision="allow").status_code == 422
    assert fresh(round_).status == "pending"
