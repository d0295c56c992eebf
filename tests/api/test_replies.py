"""Replies over the API: whether one is the run's next turn or waits, and what it may change (m8tes-http 5.8)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from runs import control, turns
from runs.models import Event, Round, Run, User
from runs.run_states import Outcome, TurnStatus
from tests.api.conftest import Caller, fields_of

Calling = Callable[[User], Caller]
MakeRun = Callable[..., Run]
MakeRound = Callable[..., Round]


@pytest.fixture
def over(make_run: MakeRun) -> Run:
    """A run whose only turn has completed."""
    run = make_run(mode="approval")
    turns.set_status(run, run.turns.get(), TurnStatus.RUNNING_TURN)
    turns.finish(run, run.turns.get(), Outcome.COMPLETED, output="Sent.")
    return run


def test_a_reply_to_a_run_that_is_over_is_its_next_turn_at_once(
    calling: Calling, alice: User, over: Run
) -> None:
    caller = calling(alice)
    before = caller.get(f"runs/{over.pk}").json()
    assert (before["status"], before["output"], before["delivery"]) == ("completed", "Sent.", None)

    shown = caller.post(f"runs/{over.pk}/reply", {"message": "And then?", "stream": False}).json()

    assert (shown["id"], shown["status"]) == (over.pk, "running")
    assert (shown["delivery"], shown["queued_message_id"], shown["pending_queued_message_ids"]) == (
        "resumed",
        None,
        [],
    )
    assert shown["turn_started_at"] is None
    assert shown["started_at"] == before["turn_started_at"] is not None
    assert shown["last_activity_at"] > before["last_activity_at"]
    looked = caller.get(f"runs/{over.pk}").json()
    assert (looked["status"], looked["delivery"]) == ("running", None)


def test_replies_to_a_run_at_work_wait_in_order_until_their_turn_has_come(
    calling: Calling, alice: User, make_run: MakeRun
) -> None:
    run, caller = make_run(), calling(alice)

    first = caller.post(f"runs/{run.pk}/reply", {"message": "one"}).json()
    second = caller.post(f"runs/{run.pk}/reply", {"message": "two"}).json()

    assert (first["delivery"], first["queued_message_id"], first["pending_queued_message_ids"]) == (
        "queued",
        1,
        [1],
    )
    assert (second["delivery"], second["queued_message_id"]) == ("queued", 2)
    assert second["pending_queued_message_ids"] == [1, 2]
    waiting = caller.get(f"runs/{run.pk}").json()
    assert (waiting["delivery"], waiting["queued_message_id"]) == ("queued", 1)

    turns.finish(Run.objects.get(), run.turns.get(index=0), Outcome.COMPLETED, output="first answer")

    shown = caller.get(f"runs/{run.pk}").json()
    assert (shown["status"], shown["queued_message_id"], shown["pending_queued_message_ids"]) == (
        "running",
        2,
        [2],
    )


def test_a_reply_that_was_cancelled_before_its_turn_came_is_named(
    calling: Calling, alice: User, make_round: MakeRound
) -> None:
    run_id, caller = make_round().run_id, calling(alice)
    caller.post(f"runs/{run_id}/reply", {"message": "And then?"})

    shown = caller.post(f"runs/{run_id}/cancel").json()

    assert (shown["status"], shown["delivery"], shown["pending_queued_message_ids"]) == (
        "cancelled",
        None,
        [],
    )
    assert shown["cancelled_queued_message_ids"] == [1]


def test_messages_do_not_wait_without_end(
    calling: Calling, alice: User, make_run: MakeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, caller = make_run(), calling(alice)
    monkeypatch.setattr(control, "MAX_WAITING", 2)

    answers = [caller.post(f"runs/{run.pk}/reply", {"message": "more"}).status_code for _ in range(3)]

    assert answers == [200, 200, 409]
    assert run.turns.count() == 3


@pytest.mark.parametrize(
    ("change", "mode", "human", "tools"),
    [
        ({}, "approval", True, None),
        ({"permission_mode": None, "human_in_the_loop": None, "tools": None}, "approval", True, None),
        ({"tools": []}, "approval", True, None),
        ({"permission_mode": "autonomous"}, "autonomous", True, None),
        ({"permission_mode": "autonomous", "human_in_the_loop": False}, "autonomous", False, None),
        ({"permission_mode": "plan"}, "plan", True, None),
        ({"tools": ["desk:send_email"]}, "approval", True, ["desk:send_email"]),
    ],
    ids=str,
)
def test_a_reply_keeps_the_runs_settings_unless_it_says_otherwise(
    calling: Calling, alice: User, over: Run, change: dict[str, Any], mode: str, human: bool, tools: Any
) -> None:
    shown = calling(alice).post(f"runs/{over.pk}/reply", {"message": "Go on", **change}).json()

    assert (shown["permission_mode"], shown["human_in_the_loop"], shown["tools"]) == (mode, human, tools)
    assert over.turns.get(index=1).tools == tools
    switched = Event.objects.filter(run=over, type="run.mode").values_list("payload", flat=True)
    assert list(switched) == ([] if mode == "approval" else [{"from": "approval", "to": mode}])


def test_a_reply_that_asks_for_plan_mode_needs_a_new_plan(calling: Calling, alice: User, over: Run) -> None:
    Run.objects.update(plan_approved=True)

    calling(alice).post(f"runs/{over.pk}/reply", {"message": "Go on", "permission_mode": "plan"})

    assert not Run.objects.get().plan_approved


@pytest.mark.parametrize(
    "change", [{"permission_mode": "autonomous"}, {"human_in_the_loop": False}, {"tools": ["desk"]}], ids=str
)
def test_what_a_reply_would_change_is_refused_while_the_run_is_at_work(
    calling: Calling, alice: User, make_run: MakeRun, change: dict[str, Any]
) -> None:
    run = make_run()

    response = calling(alice).post(f"runs/{run.pk}/reply", {"message": "Go on", **change})

    assert (response.status_code, response.json()["error"]["details"]["status"]) == (409, "queued")
    run.refresh_from_db()
    assert (run.mode, run.tools, run.turns.count()) == ("approval", None, 1)


@pytest.mark.parametrize(
    ("body", "path"),
    [
        ({}, ["message"]),
        ({"message": "Go", "stream": "no"}, ["stream"]),
        ({"message": "Go", "permission_mode": "yolo"}, ["permission_mode"]),
        ({"message": "Go", "human_in_the_loop": False}, None),
        ({"message": "Go", "tools": ["desk", "desk"]}, None),
        ({"message": " "}, None),
    ],
    ids=str,
)
def test_a_reply_that_does_not_fit_is_a_422_and_opens_nothing(
    calling: Calling, alice: User, over: Run, body: dict[str, Any], path: list[str] | None
) -> None:
    response = calling(alice).post(f"runs/{over.pk}/reply", body)

    assert response.status_code == 422
    if path is not None:
        assert fields_of(response) == [path]
    assert over.turns.count() == 1


def test_a_reply_may_be_followed_as_a_stream(calling: Calling, alice: User, over: Run) -> None:
    response = calling(alice).post(f"runs/{over.pk}/reply", {"message": "Go on", "stream": True})

    assert (response.status_code, response["X-Run-Id"]) == (200, str(over.pk))
    assert response["Content-Type"].startswith("text/event-stream")
    assert over.turns.count() == 2
