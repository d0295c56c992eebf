"""The list of runs, the page of one, and what people do there."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.test import Client

from runs.models import Agent, Round, Run, User
from runs.run_states import HumanInput, TurnStatus

MakeRun = Callable[..., Run]
ClientFor = Callable[[User], Client]


def test_somebody_who_is_not_signed_in_is_sent_to_the_login(make_run: MakeRun, client: Client) -> None:
    run = make_run()
    for path in ("/runs", f"/runs/{run.pk}", f"/runs/{run.pk}/timeline", "/runs/start"):
        response = client.get(path)
        assert (response.status_code, response["Location"]) == (302, f"/login?next={path}")


def test_the_list_is_empty_with_a_way_on(account: object, alice: User, client_for: ClientFor) -> None:
    page = client_for(alice).get("/runs").content.decode()
    assert "No runs yet" in page
    assert "Start the first run" in page


def test_the_list_shows_the_newest_first_and_pages_by_id(
    make_run: MakeRun, alice: User, client_for: ClientFor
) -> None:
    runs = [make_run(f"message {number}") for number in range(45)]
    client = client_for(alice)
    first = client.get("/runs").content.decode()
    assert first.index("message 44") < first.index("message 43")
    assert "message 4<" not in first
    second = client.get(f"/runs?before={runs[5].pk}").content.decode()
    assert "message 4<" in second
    assert "message 5<" not in second


def test_the_list_filters_by_state_agent_and_end_user(
    make_run: MakeRun, make_round: Callable[..., Round], agent: Agent, alice: User, client_for: ClientFor
) -> None:
    make_run("for cust_1", user_id="cust_1")
    make_round("approval", run=make_run("waits"))
    client = client_for(alice)
    assert "for cust_1" not in client.get("/runs?status=waiting").content.decode()
    waiting = client.get("/runs?status=waiting").content.decode()
    assert "waits" in waiting
    assert "1 card waiting" in waiting
    assert ">waits<" not in client.get("/runs?user=cust_1").content.decode()
    assert "No run fits" in client.get(f"/runs?agent={agent.pk + 1}").content.decode()


@pytest.mark.parametrize(
    "query", ["before=-1", "before=" + "9" * 400, "agent=x", "agent=²", "status=<b>", "user=%00"]
)
def test_a_nonsensical_filter_is_no_error(
    make_run: MakeRun, alice: User, client_for: ClientFor, query: str
) -> None:
    make_run()
    assert client_for(alice).get(f"/runs?{query}").status_code == 200


def test_another_account_s_run_is_not_there(make_run: MakeRun, otto: User, client_for: ClientFor) -> None:
    run = make_run()
    client = client_for(otto)
    assert client.get(f"/runs/{run.pk}").status_code == 404
    assert client.get(f"/runs/{run.pk}/timeline").status_code == 404
    assert client.post(f"/runs/{run.pk}/cancel").status_code == 404
    assert "Send the update" not in client.get("/runs").content.decode()
    run.refresh_from_db()
    assert run.status == TurnStatus.QUEUED


def test_a_viewer_reads_and_does_nothing(make_run: MakeRun, vera: User, client_for: ClientFor) -> None:
    run = make_run()
    client = client_for(vera)
    page = client.get(f"/runs/{run.pk}").content.decode()
    assert "Cancel run" not in page
    assert "Switch mode" not in page
    for path in ("cancel", "reply", "mode"):
        assert client.post(f"/runs/{run.pk}/{path}", {"message": "x", "mode": "plan"}).status_code == 403
    assert client.get("/runs/start").status_code == 403


def test_an_operator_starts_a_run_that_may_ask_people(
    agent: Agent, alice: User, client_for: ClientFor
) -> None:
    response = client_for(alice).post(
        "/runs/start", {"agent": agent.pk, "message": "Go", "mode": "autonomous", "user_id": "cust_9"}
    )
    run = Run.objects.get()
    assert response["Location"] == f"/runs/{run.pk}"
    assert (run.message, run.mode, run.started_by) == ("Go", "autonomous", alice)
    assert run.human_input == HumanInput.MANAGED
    assert run.end_user is not None
    assert run.end_user.user_id == "cust_9"


def test_a_start_without_a_message_is_refused_and_keeps_what_was_typed(
    agent: Agent, alice: User, client_for: ClientFor
) -> None:
    response = client_for(alice).post("/runs/start", {"agent": agent.pk, "message": " ", "user_id": "cust_9"})
    page = response.content.decode()
    assert response.status_code == 422
    assert "error-summary" in page
    assert 'href="#id_message"' in page
    assert 'value="cust_9"' in page
    assert not Run.objects.exists()


def test_another_account_s_agent_cannot_be_started(agent: Agent, otto: User, client_for: ClientFor) -> None:
    response = client_for(otto).post("/runs/start", {"agent": agent.pk, "message": "Go"})
    assert response.status_code == 422
    assert not Run.objects.exists()


def test_an_operator_cancels_a_run_and_its_cards(
    make_round: Callable[..., Round], alice: User, client_for: ClientFor
) -> None:
    round_ = make_round("approval")
    client = client_for(alice)
    page = client.post(f"/runs/{round_.run_id}/cancel", follow=True).content.decode()
    round_.refresh_from_db()
    assert round_.outcome == "cancelled"
    assert "alice cancelled the run" in page
    again = client.post(f"/runs/{round_.run_id}/cancel")
    assert again.status_code == 409


def test_a_finished_run_takes_a_reply(make_run: MakeRun, alice: User, client_for: ClientFor) -> None:
    run = make_run()
    client = client_for(alice)
    assert "Send reply" not in client.get(f"/runs/{run.pk}").content.decode()
    client.post(f"/runs/{run.pk}/cancel")
    assert "Send reply" in client.get(f"/runs/{run.pk}").content.decode()
    response = client.post(f"/runs/{run.pk}/reply", {"message": "Also by region"})
    assert response.status_code == 302
    assert run.turns.count() == 2
    assert "alice replied" in client.get(f"/runs/{run.pk}").content.decode()


def test_an_empty_reply_is_refused_beside_its_box(
    make_run: MakeRun, alice: User, client_for: ClientFor
) -> None:
    run = make_run()
    client = client_for(alice)
    client.post(f"/runs/{run.pk}/cancel")
    response = client.post(f"/runs/{run.pk}/reply", {"message": "  "})
    assert response.status_code == 422
    assert "field-invalid" in response.content.decode()
    assert run.turns.count() == 1


def test_an_operator_switches_the_mode(make_run: MakeRun, alice: User, client_for: ClientFor) -> None:
    run = make_run()
    page = client_for(alice).post(f"/runs/{run.pk}/mode", {"mode": "plan"}, follow=True).content.decode()
    run.refresh_from_db()
    assert run.mode == "plan"
    assert "alice changed the mode from approval to plan" in page
    assert client_for(alice).post(f"/runs/{run.pk}/mode", {"mode": "yolo"}).status_code == 422


def test_what_waits_in_a_run_is_linked_to_its_card(
    make_round: Callable[..., Round], alice: User, client_for: ClientFor
) -> None:
    round_ = make_round("approval")
    page = client_for(alice).get(f"/runs/{round_.run_id}").content.decode()
    assert f'href="/rounds/{round_.pk}/"' in page
    assert f'data-run="{round_.run_id}"' in page


def test_catching_up_returns_rows_and_the_parts_that_follow_the_status(
    make_round: Callable[..., Round], alice: User, client_for: ClientFor
) -> None:
    round_ = make_round("approval")
    page = client_for(alice).get(f"/runs/{round_.run_id}/timeline?after=1").content.decode()
    assert 'id="step-1"' in page
    assert 'id="run-head"' in page
    assert 'id="run-foot"' in page
    assert "<html" not in page


def test_a_part_of_a_step_that_is_not_there_is_not_found(
    make_round: Callable[..., Round], alice: User, client_for: ClientFor
) -> None:
    round_ = make_round("approval")
    client = client_for(alice)
    assert client.get(f"/runs/{round_.run_id}/steps/1/arguments.txt").status_code == 200
    for path in ("steps/1/result.txt", "steps/1/secrets.txt", "steps/9/arguments.txt", "output/99.txt"):
        assert client.get(f"/runs/{round_.run_id}/{path}").status_code == 404
