"""The m8tes SDK, unmodified, against a live server: it waits for runs, answers for people, and reads streams."""

from __future__ import annotations

import re

import pytest

from tests.api.m8tes import Sdk, ended
from tests.core.pages import examples

ADDRESS = {
    "Street and number": "High St 1",
    "City": "Hamburg",
    "Country": "Austria",
    "Leave at the door if nobody answers": "Yes",
}
COVER = {
    "Cover": "Full: loss and damage, up to the declared value",
    "Declared value in euro": "900",
    "Contents": "electronics, glass",
    "Serial number": "SN-12345",
}


# --- waiting ----------------------------------------------------------------------------------------------------


def test_wait_carries_a_question_and_a_call_through_callbacks(sdk: Sdk) -> None:
    arguments = {"agent_id": 1, "message": "weekly customer update", "permission_mode": "approval"}
    told = sdk.play("waiting.create_and_wait", answers={"Which segment?": "mid-market"}, **arguments)

    assert (told["status"], told["output"]) == (
        "completed",
        "The weekly customer update is out. Sent to all hands.",
    )
    assert told["calls"] == ["desk:send_email"]
    assert told["call_inputs"][0]["subject"] == "Weekly customer update: mid-market"
    assert [question["options"][1]["label"] for question in told["questions"][0]["questions"]] == [
        "mid-market"
    ]

    replied = sdk.play("waiting.reply_and_wait", run_id=told["id"], message="also break it down by region")

    assert (replied["id"], replied["output"]) == (told["id"], "Sent, broken down by region.")


def test_a_denied_call_does_not_fail_the_run(sdk: Sdk, agents: dict[str, int]) -> None:
    told = sdk.play("waiting.wait", run_id=sdk.start(agents["mails"]), answers={}, decision="deny")

    assert (told["status"], told["output"], told["calls"]) == ("completed", "denied", ["desk:send_email"])


def test_a_reply_to_a_run_that_waits_for_a_person_comes_after_that(sdk: Sdk, agents: dict[str, int]) -> None:
    told = sdk.play("waiting.reply_to_a_run_at_work", run_id=sdk.parked(agents["mails"]), message="and then?")

    assert (told["delivery"], told["status"]) == ("queued", "completed")
    assert told["queued"] is not None


def test_a_wait_whose_time_is_up_cancels_the_run_only_if_told_to(sdk: Sdk, agents: dict[str, int]) -> None:
    found = sdk.play("waiting.out_of_time", agent_id=agents["asks"])

    assert found == {"poll": "awaiting_approval", "owner": "cancelled"}


def test_a_pause_without_a_callback_for_it_is_the_callers_mistake(sdk: Sdk, agents: dict[str, int]) -> None:
    run = sdk.parked(agents["asks"])

    assert sdk.play("waiting.without_a_callback", run_id=run) == "RuntimeError"
    assert sdk.get(f"runs/{run}")["status"] == "awaiting_approval"


def test_a_failed_run_says_why(sdk: Sdk, agents: dict[str, int]) -> None:
    status, error, raised = sdk.play("waiting.failing", agent_id=agents["fails"])

    assert status == "failed"
    assert "The printer is on fire." in error
    assert "The printer is on fire." in raised


def test_a_plan_is_revised_under_its_text_and_approved_under_its_header(sdk: Sdk) -> None:
    steps = [{"plan": ["All of it.", "Half of it."], "as": "p"}, {"finish": "{{ p.status }}"}]
    told = sdk.play("waiting.plan", agent_id=sdk.agent("Plans", mode="plan", steps=steps))

    first, second = told["shown"]
    assert (first["header"], second["header"]) == ("Plan Approval", "Plan Approval")
    assert "All of it." in first["question"]
    assert "Half of it." in second["question"]
    assert [option["label"] for option in first["options"]] == ["Approve", "Revise"]
    assert (told["status"], told["output"]) == ("completed", "approved")


def test_the_documented_example_runs_as_it_is_printed(sdk: Sdk) -> None:
    [example] = [text for _, text in examples("docs/api.md", "python") if "from m8tes import" in text]

    printed = sdk.run(["-c", example]).splitlines()

    assert printed == [
        "['Which segment?']",
        "Send an e-mail to all-hands@northwind.example",
        "completed The weekly customer update is out. Sent to all hands.",
    ]


@pytest.mark.parametrize(
    ("message", "answers", "said"),
    [
        ("Book the lamp for order 77", ADDRESS, r"Booked\. Tracking number NW[0-9A-F]{8}\."),
        ("Insure parcel NW7F3A09C2", COVER, r"Insurance: done\. POL-[0-9A-F]{6}"),
    ],
)
def test_forms_and_links_of_a_server_are_answered_through_the_callbacks(
    sdk: Sdk, agents: dict[str, int], message: str, answers: dict[str, str], said: str
) -> None:
    run = sdk.start(agents["ships"], message, permission_mode="autonomous")

    told = sdk.play("waiting.wait", run_id=run, answers=answers)

    assert told["status"] == "completed"
    assert re.fullmatch(said, told["output"]), told["output"]
    links = [each["url"] for each in told["call_inputs"]]
    terms = "https://insurance.northwind.example/terms?parcel=NW7F3A09C2"
    assert (told["calls"], links) == ((["UrlElicitation"], [terms]) if "Insure" in message else ([], []))


# --- streams ----------------------------------------------------------------------------------------------------


def test_a_streamed_run_arrives_whole_and_in_known_events(sdk: Sdk, agents: dict[str, int]) -> None:
    told = sdk.play("streaming.create", agent_id=agents["talks"], message="go")

    assert told["text"].startswith("Hällo\u2028there.")
    assert (told["types"][0], told["types"][-1]) == ("metadata", "done")
    assert "unknown" not in told["known"]
    assert sdk.get(f"runs/{told['run_id']}")["status"] == "completed"
    assert sdk.play("streaming.over", run_id=ended(sdk, agents)) == [409, "run_not_active"]


def test_a_stream_ends_at_the_gate_and_goes_on_after_the_decision(sdk: Sdk, agents: dict[str, int]) -> None:
    told = sdk.play("streaming.decide_and_join", agent_id=agents["mails"], message="go")

    assert told["first"]["types"][-1] == "awaiting_approval"
    assert told["second"]["types"][-1] == "done"
    assert told["second"]["resolved"] == [["allowed", False]]
    assert len(told["second"]["results"]) == 1
    assert "unknown" not in told["second"]["known"]
    assert told["run"] == "completed"


def test_replies_tasks_and_plain_text_stream_too(sdk: Sdk, agents: dict[str, int]) -> None:
    run = ended(sdk, agents)
    task = sdk.post("tasks/", {"agent_id": agents["talks"], "instructions": "go"})["id"]

    assert sdk.play("streaming.reply", run_id=run, message="and?")["types"][-1] == "done"
    assert sdk.play("streaming.task", task_id=task)["text"].startswith("Hällo")
    assert "".join(sdk.play("streaming.text", agent_id=agents["talks"], message="go")).startswith("Hällo")


def test_a_stream_of_a_run_that_fails_raises_if_asked_to(sdk: Sdk, agents: dict[str, int]) -> None:
    assert "The printer is on fire." in sdk.play("streaming.failing", agent_id=agents["fails"])


def test_a_streamed_start_that_is_sent_twice_joins_the_first(sdk: Sdk, agents: dict[str, int]) -> None:
    told = sdk.play("streaming.sent_twice", agent_id=agents["mails"], key="streamed-twice")

    assert told["first"]["run_id"] == told["second"]["run_id"]
    assert told["second"]["types"][-1] == "awaiting_approval"
    assert told["third"] == "idempotent_replay_terminal"
