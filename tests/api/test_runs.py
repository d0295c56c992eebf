"""Runs over the API: start, look, reply, cancel, switch the mode, and read what happened."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from runs.control import Submission, create_run
from runs.models import Agent, Event, Round, Run, Step, User
from tests.api.conftest import Caller, fields_of

Calling = Callable[[User], Caller]
MakeRun = Callable[..., Run]
MakeRound = Callable[..., Round]


def body_for(agent: Agent, **more: Any) -> dict[str, Any]:
    return {"agent_id": agent.pk, "message": "Send the update", **more}


def test_a_run_starts_with_everything_that_was_asked_for(calling: Calling, alice: User, agent: Agent) -> None:
    asked = {
        "permission_mode": "plan",
        "human_in_the_loop": True,
        "user_id": "cust 123",
        "tools": ["desk:send_email"],
        "metadata": {"ticket": 7},
    }

    response = calling(alice).post("runs/", body_for(agent, **asked, from_the_future=[1]))

    assert response.status_code == 201, response.content
    shown = response.json()
    assert {name: shown[name] for name in asked} == asked
    assert (shown["status"], shown["agent_id"], shown["message"]) == ("running", agent.pk, "Send the update")
    run = Run.objects.get(pk=shown["id"])
    assert run.started_by == alice
    assert shown["created_at"] == f"{run.created_at:%Y-%m-%dT%H:%M:%S.%fZ}"


def test_an_agent_may_be_named_as_m8tes_clients_name_it(calling: Calling, alice: User, agent: Agent) -> None:
    caller = calling(alice)
    pk, body = agent.pk, {"message": "Go"}

    for named in (
        {"teammate_id": pk},
        {"teammate_id": pk, "agent_id": pk},
        {"teammate_id": pk, "agent_id": None},
    ):
        shown = caller.post("runs/", {**body, **named}).json()
        assert (shown["agent_id"], shown["teammate_id"]) == (pk, pk)
    assert fields_of(caller.post("runs/", {**body, "teammate_id": pk, "agent_id": pk + 1})) == [
        ["teammate_id"]
    ]
    assert fields_of(caller.post("runs/", {**body, "teammate_id": None})) == [["agent_id"]]
    assert caller.post("runs/", {**body, "teammate_id": pk + 1}).status_code == 404
    assert Run.objects.count() == 3


def test_a_run_shows_what_is_known_of_it_and_no_more(
    calling: Calling, alice: User, agent: Agent, make_run: MakeRun
) -> None:
    parent = make_run()
    step = Step.objects.create(
        run=parent, turn=parent.turns.get(), seq=1, kind="run", path="steps.1", params={}
    )
    child = create_run(agent, Submission(message="Go"), parent_step=step)

    shown = calling(alice).get(f"runs/{child.pk}").json()

    assert shown["started_by"] == {"run_id": parent.pk, "teammate_id": agent.pk}
    assert (shown["started_at"], shown["turn_started_at"], shown["task_name"]) == (None, None, None)
    assert (shown["files"], shown["failure_kind"], shown["needs_reply"]) == ([], None, False)
    assert shown["last_activity_at"] >= shown["created_at"]


def test_a_started_run_may_be_followed_as_a_stream(calling: Calling, alice: User, agent: Agent) -> None:
    caller, headers = calling(alice), {"Accept": "text/event-stream"}

    response = caller.send("POST", "runs/", body_for(agent, stream=True), headers=headers)

    assert fields_of(caller.send("POST", "runs/", body_for(agent, message=5), headers=headers)) == [
        ["message"]
    ]
    assert (response.status_code, response["X-Run-Id"]) == (200, str(Run.objects.get().pk))
    assert response["Content-Type"].startswith("text/event-stream")


@pytest.mark.parametrize("path", ["runs/with-files", "runs/{}/reply/with-files"])
def test_files_are_refused_by_a_code_and_nothing_starts(
    calling: Calling, alice: User, make_run: MakeRun, path: str
) -> None:
    run, caller = make_run(), calling(alice)
    form = 'multipart/form-data; boundary="x"'

    response = caller.send("POST", path.format(run.pk), b"--x--", content_type=form)

    assert (response.status_code, response.json()["error"]["error_code"]) == (422, "files_not_supported")
    assert (Run.objects.count(), run.turns.count()) == (1, 1)
    assert caller.get(f"runs/{run.pk}/files").json() == []


def test_a_run_is_found_by_the_right_end_user_only_where_one_is_named(
    calling: Calling, alice: User, make_run: MakeRun
) -> None:
    anns, nobodys, caller = make_run(user_id="ann"), make_run(), calling(alice)

    assert caller.get(f"runs/{anns.pk}", user_id="ann").json()["user_id"] == "ann"
    assert caller.get(f"runs/{anns.pk}").status_code == 200
    assert caller.get(f"runs/{anns.pk}", user_id="ben").status_code == 404
    assert caller.get(f"runs/{nobodys.pk}", user_id="ann").status_code == 404
    assert fields_of(caller.get(f"runs/{anns.pk}", user_id="")) == [["user_id"]]
    assert caller.post(f"runs/{anns.pk}/cancel?user_id=ben").status_code == 404
    assert caller.get(f"runs/{anns.pk}").json()["status"] == "running"
    assert caller.post(f"runs/{anns.pk}/cancel?user_id=ann").json()["status"] == "cancelled"


def test_what_is_left_out_or_null_follows_the_agent(calling: Calling, alice: User, agent: Agent) -> None:
    nulls = dict.fromkeys(("permission_mode", "human_in_the_loop", "user_id", "tools", "metadata"))

    for body in (body_for(agent), body_for(agent, **nulls)):
        shown = calling(alice).post("runs/", body).json()
        assert (shown["permission_mode"], shown["human_in_the_loop"]) == ("approval", True)
        assert (shown["user_id"], shown["tools"], shown["metadata"]) == (None, None, {})


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"agent_id": "1"}, ["agent_id"]),
        ({"agent_id": True}, ["agent_id"]),
        ({"agent_id": 1.5}, ["agent_id"]),
        ({"agent_id": 10**30}, ["agent_id"]),
        ({"agent_id": None}, ["agent_id"]),
        ({"message": 5}, ["message"]),
        ({"message": None}, ["message"]),
        ({"permission_mode": "yolo"}, ["permission_mode"]),
        ({"permission_mode": ""}, ["permission_mode"]),
        ({"permission_mode": {}}, ["permission_mode"]),
        ({"human_in_the_loop": "yes"}, ["human_in_the_loop"]),
        ({"human_in_the_loop": 1}, ["human_in_the_loop"]),
        ({"user_id": 123}, ["user_id"]),
        ({"tools": "desk"}, ["tools"]),
        ({"tools": ["desk", 5]}, ["tools", 1]),
        ({"tools": ["t"] * 501}, ["tools"]),
        ({"metadata": []}, ["metadata"]),
        ({"stream": "yes"}, ["stream"]),
        ({"metadata": {"text": "x" * 20_000}}, ["metadata"]),
        ({"user_id": ""}, ["user_id"]),
    ],
    ids=lambda value: str(value)[:40],
)
def test_a_wrong_type_names_its_field_and_starts_nothing(
    calling: Calling, alice: User, agent: Agent, change: dict[str, Any], path: list[str | int]
) -> None:
    assert fields_of(calling(alice).post("runs/", body_for(agent, **change))) == [path]
    assert not Run.objects.exists()


@pytest.mark.parametrize(
    "change",
    [
        {"message": "   "},
        {"message": "x" * 20_001},
        {"permission_mode": "approval", "human_in_the_loop": False},
        {"tools": ["desk", "desk"]},
    ],
    ids=lambda value: str(value)[:40],
)
def test_a_refusal_of_the_service_is_a_422_with_its_sentence(
    calling: Calling, alice: User, agent: Agent, change: dict[str, Any]
) -> None:
    response = calling(alice).post("runs/", body_for(agent, **change))

    assert fields_of(response) == []
    assert response.json()["error"]["message"].endswith(".")
    assert not Run.objects.exists()


def test_a_body_that_lacks_everything_names_everything(calling: Calling, alice: User) -> None:
    assert fields_of(calling(alice).post("runs/", {})) == [["agent_id"], ["message"]]


def test_another_accounts_agent_and_runs_are_not_there(
    calling: Calling, otto: User, agent: Agent, make_run: MakeRun
) -> None:
    run = make_run()
    caller = calling(otto)

    assert caller.post("runs/", body_for(agent)).status_code == 404
    assert caller.get("runs/").json()["data"] == []
    assert caller.get(f"runs/{run.pk}").status_code == 404
    assert caller.get(f"runs/{run.pk}/events").status_code == 404
    assert caller.post(f"runs/{run.pk}/cancel").status_code == 404
    assert caller.post(f"runs/{run.pk}/reply", {"message": "Go on"}).status_code == 404
    assert caller.patch(f"runs/{run.pk}/permission-mode", {"permission_mode": "plan"}).status_code == 404
    run.refresh_from_db()
    assert (run.status, run.mode, run.turns.count()) == ("queued", "approval", 1)


def test_an_id_that_no_database_could_hold_is_not_there(calling: Calling, alice: User) -> None:
    assert calling(alice).get(f"runs/{10**40}").status_code == 404


def test_the_list_is_newest_first_in_pages(calling: Calling, vera: User, make_run: MakeRun) -> None:
    made = [make_run().pk for _ in range(3)]

    first = calling(vera).get("runs/", limit=2).json()
    rest = calling(vera).get("runs/", limit=2, starting_after=first["next_starting_after"]).json()

    assert [run["id"] for run in first["data"]] == [made[2], made[1]]
    assert (first["has_more"], first["next_starting_after"]) == (True, made[1])
    assert [run["id"] for run in rest["data"]] == [made[0]]
    assert (rest["has_more"], rest["next_starting_after"]) == (False, None)


def test_a_list_holds_twenty_unless_more_are_asked_for(
    calling: Calling, alice: User, make_run: MakeRun
) -> None:
    for _ in range(21):
        make_run()

    assert len(calling(alice).get("runs/").json()["data"]) == 20
    assert len(calling(alice).get("runs/", limit=100).json()["data"]) == 21


def test_a_run_that_waits_for_a_person_says_awaiting_approval(
    calling: Calling, alice: User, make_round: MakeRound
) -> None:
    assert calling(alice).get(f"runs/{make_round().run_id}").json()["status"] == "awaiting_approval"


def test_cancelling_ends_the_run_once(calling: Calling, alice: User, make_round: MakeRound) -> None:
    pending = make_round()
    caller = calling(alice)

    response = caller.post(f"runs/{pending.run_id}/cancel")

    assert (response.status_code, response.json()["status"]) == (200, "cancelled")
    assert caller.get(f"rounds/{pending.pk}").json()["outcome"] == "cancelled"
    again = caller.post(f"runs/{pending.run_id}/cancel")
    assert (again.status_code, again.json()["error"]["details"]["status"]) == (409, "finished")


def test_a_reply_opens_the_next_turn_and_the_run_is_running_at_once(
    calling: Calling, alice: User, make_run: MakeRun
) -> None:
    run = make_run()
    caller = calling(alice)
    caller.post(f"runs/{run.pk}/cancel")

    response = caller.post(f"runs/{run.pk}/reply", {"message": "also break it down by region"})

    assert (response.status_code, response.json()["status"]) == (200, "running")
    assert run.turns.count() == 2
    assert Event.objects.get(run=run, type="run.message").actor == alice
    assert fields_of(caller.post(f"runs/{run.pk}/reply", {"message": 5})) == [["message"]]


def test_switching_to_autonomous_lets_a_waiting_call_go(
    calling: Calling, alice: User, make_round: MakeRound
) -> None:
    pending = make_round()
    caller = calling(alice)

    response = caller.patch(f"runs/{pending.run_id}/permission-mode", {"permission_mode": "autonomous"})

    assert (response.status_code, response.json()) == (200, {"permission_mode": "autonomous"})
    shown = caller.get(f"rounds/{pending.pk}").json()
    assert (shown["outcome"], shown["decided_via"]) == ("allowed", "mode")


def test_the_mode_of_a_finished_run_cannot_be_switched(
    calling: Calling, alice: User, make_run: MakeRun
) -> None:
    run, caller = make_run(), calling(alice)
    path = f"runs/{run.pk}/permission-mode"
    caller.post(f"runs/{run.pk}/cancel")

    assert caller.patch(path, {"permission_mode": "plan"}).status_code == 409
    assert fields_of(caller.patch(path, {"permission_mode": "yolo"})) == [["permission_mode"]]


def test_the_events_come_in_order_and_in_pages(calling: Calling, vera: User, make_round: MakeRound) -> None:
    run = make_round().run

    first = calling(vera).get(f"runs/{run.pk}/events", limit=1).json()
    rest = calling(vera).get(f"runs/{run.pk}/events", starting_after=first["next_starting_after"]).json()

    assert [event["seq"] for event in first["data"] + rest["data"]] == list(range(1, run.event_seq + 1))
    assert first["data"][0]["type"] == "run.started"
    assert first["data"][0]["at"].endswith("Z")
    assert rest["data"][-1]["payload"]["kind"] == "approval"
    assert not rest["has_more"]


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "runs/", {}),
        ("POST", "runs/{}/cancel", None),
        ("POST", "runs/{}/reply", {"message": "Go on"}),
        ("PATCH", "runs/{}/permission-mode", {"permission_mode": "autonomous"}),
    ],
)
def test_a_viewer_reads_and_changes_nothing(
    calling: Calling, vera: User, make_run: MakeRun, method: str, path: str, body: Any
) -> None:
    run = make_run()

    assert calling(vera).get(f"runs/{run.pk}").status_code == 200
    assert calling(vera).send(method, path.format(run.pk), body).status_code == 403
    run.refresh_from_db()
    assert (run.status, run.mode, run.turns.count()) == ("queued", "approval", 1)
