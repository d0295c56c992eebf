"""What is sent twice under one key happens once, and what is another request is told so (m8tes-http 1.10)."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from runs import idempotency
from runs.canonical import digest
from runs.control import Submission, create_run
from runs.idempotency import Receipt
from runs.models import Account, Agent, EndUser, IdempotencyKey, Run, Task, Turn, User
from tests.api.conftest import Caller
from tests.services.test_contention import TIMES, at_once

Calling = Callable[[User], Caller]
MakeRun = Callable[..., Run]


def keyed(caller: Caller, path: str, body: Any, key: str = "k-1") -> Any:
    return caller.send("POST", path, body, headers={"Idempotency-Key": key})


@pytest.fixture(params=["create", "reply", "task"])
def request_of(
    request: Any, agent: Agent, make_run: MakeRun, account: Account
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each kind of request that takes a key: its path, and its body."""
    if request.param == "create":
        yield "runs/", {"agent_id": agent.pk, "message": "Go"}
    elif request.param == "reply":
        yield f"runs/{make_run().pk}/reply", {"message": "And then?"}
    else:
        task = Task.objects.create(account=account, agent=agent, instructions="Go")
        yield f"tasks/{task.pk}/runs", {"metadata": {"n": 1}}


def test_the_same_request_again_gets_the_same_run_and_opens_nothing(
    calling: Calling, alice: User, request_of: tuple[str, dict[str, Any]]
) -> None:
    caller, (path, body) = calling(alice), request_of

    first = keyed(caller, path, body)
    counts = (Run.objects.count(), Turn.objects.count())
    again = keyed(caller, path, dict(reversed(body.items())))

    assert first.status_code in (200, 201)
    assert "Idempotent-Replay" not in first
    assert (again.status_code, again["Idempotent-Replay"], again["Content-Type"]) == (
        200,
        "true",
        "application/json",
    )
    assert again.json()["id"] == first.json()["id"]
    assert (Run.objects.count(), Turn.objects.count()) == counts


def test_without_a_key_the_same_request_happens_again(
    calling: Calling, alice: User, request_of: tuple[str, dict[str, Any]]
) -> None:
    caller, (path, body) = calling(alice), request_of
    before = Turn.objects.count()

    for _ in range(2):
        assert caller.post(path, body).status_code in (200, 201)

    assert Turn.objects.count() == before + 2


def test_a_replay_shows_the_run_as_it_is_now_and_is_json_though_a_stream_was_asked_for(
    calling: Calling, alice: User, agent: Agent
) -> None:
    caller = calling(alice)
    body = {"agent_id": agent.pk, "message": "Go", "stream": True}

    first = keyed(caller, "runs/", body)
    run = Run.objects.get()
    caller.post(f"runs/{run.pk}/cancel")
    again = keyed(caller, "runs/", body)

    assert first["Content-Type"].startswith("text/event-stream")
    assert first["X-Run-Id"] == str(run.pk)
    assert (again["Content-Type"], again["Idempotent-Replay"]) == ("application/json", "true")
    assert (again.json()["id"], again.json()["status"]) == (run.pk, "cancelled")


@pytest.mark.parametrize("change", ["body", "path"])
def test_another_request_under_the_key_is_a_409_and_opens_nothing(
    calling: Calling, alice: User, agent: Agent, make_run: MakeRun, change: str
) -> None:
    run, caller = make_run(), calling(alice)
    path, body = f"runs/{run.pk}/reply", {"message": "Go", "agent_id": agent.pk}
    keyed(caller, path, body)
    before = Turn.objects.count()

    refused = (
        keyed(caller, path, {**body, "message": "Stop"}) if change == "body" else keyed(caller, "runs/", body)
    )

    assert refused.status_code == 409
    error = refused.json()["error"]
    assert (error["error_code"], error["details"]["error_code"]) == ("idempotency_key_reuse",) * 2
    assert error["details"]["run_id"] == run.pk
    assert Turn.objects.count() == before


def test_a_refused_request_leaves_its_key_free(calling: Calling, alice: User, agent: Agent) -> None:
    caller = calling(alice)
    body = {"agent_id": agent.pk, "message": "Go", "permission_mode": "plan", "human_in_the_loop": False}

    assert keyed(caller, "runs/", body).status_code == 422
    assert keyed(caller, "runs/", {**body, "agent_id": 10**6}).status_code == 404
    assert not IdempotencyKey.objects.exists()
    assert keyed(caller, "runs/", {**body, "human_in_the_loop": True}).status_code == 201


@pytest.mark.parametrize("key", ["", "x" * 201, "a\x80b"], ids=["empty", "too long", "unprintable"])
def test_a_key_that_is_none_is_a_422(calling: Calling, alice: User, agent: Agent, key: str) -> None:
    response = keyed(calling(alice), "runs/", {"agent_id": agent.pk, "message": "Go"}, key)

    assert response.status_code == 422
    assert not Run.objects.exists()


def test_a_key_of_another_account_is_another_key(
    calling: Calling, alice: User, otto: User, other_account: Account, agent: Agent
) -> None:
    theirs = Agent.objects.create(account=other_account, name="Theirs", definition={"steps": []})

    ours = keyed(calling(alice), "runs/", {"agent_id": agent.pk, "message": "Go"})
    other = keyed(calling(otto), "runs/", {"agent_id": theirs.pk, "message": "Go"})

    assert (ours.status_code, other.status_code) == (201, 201)
    assert ours.json()["id"] != other.json()["id"]


def test_a_replayed_reply_says_again_that_it_waits(calling: Calling, alice: User, make_run: MakeRun) -> None:
    run, caller = make_run(), calling(alice)

    for _ in range(2):
        shown = keyed(caller, f"runs/{run.pk}/reply", {"message": "And then?"}).json()
        assert (shown["delivery"], shown["queued_message_id"]) == ("queued", 1)


def test_keys_are_forgotten_after_a_week_and_their_runs_are_not(
    calling: Calling, alice: User, agent: Agent
) -> None:
    caller = calling(alice)
    for key in ("old", "new"):
        keyed(caller, "runs/", {"agent_id": agent.pk, "message": "Go"}, key)
    IdempotencyKey.objects.filter(key="old").update(created_at=timezone.now() - dt.timedelta(days=8))

    assert idempotency.forget() == 1

    assert IdempotencyKey.objects.get().key == "new"
    assert Run.objects.count() == 2


@pytest.mark.django_db(transaction=True)
def test_of_many_at_once_one_starts_a_run_and_the_others_get_it(account: Account, agent: Agent) -> None:
    def start() -> Receipt:
        return idempotency.once(
            account,
            "k",
            digest("the request"),
            lambda: create_run(agent, Submission(message="Go", user_id="cust_1")).turns.get(),
        )

    for _ in range(TIMES):
        Run.objects.all().delete()

        receipts = at_once(*[start] * 6)

        (run,) = Run.objects.all()
        assert [receipt.turn.run_id for receipt in receipts] == [run.pk] * 6
        assert sorted(receipt.replayed for receipt in receipts) == [False, *[True] * 5]
    assert EndUser.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_of_two_that_are_sent_at_once_over_http_both_get_the_one_run(alice: User, agent: Agent) -> None:
    def send() -> Any:
        client = Client()
        client.force_login(alice)
        return keyed(Caller(client), "runs/", {"agent_id": agent.pk, "message": "Go"})

    responses = at_once(send, send)

    (run,) = Run.objects.all()
    assert {response.json()["id"] for response in responses} == {run.pk}
    assert sorted(response.status_code for response in responses) == [200, 201]
