"""Which events reach which endpoints, and what is written for them (m8tes-http 7)."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from django.db import transaction

from runs import control
from runs.access import Actor
from runs.models import EndUser, Round, Run, User, WebhookDelivery, WebhookEndpoint
from runs.round_rows import Decider
from runs.run_states import Outcome, TurnStatus
from runs.turns import finish, set_status
from runs.webhooks import endpoints
from runs.webhooks.words import WebhookEvent

MakeRun = Callable[..., Run]
MakeRound = Callable[..., Round]
Hook = Callable[..., WebhookEndpoint]
ALL = [event.value for event in WebhookEvent]


@pytest.fixture
def hook(ada: User, acting: Callable[[User], Actor], settings: Any) -> Hook:
    settings.M3.allow_private_urls = True
    actor = acting(ada)

    def make(events: list[str] | None = ALL, **more: Any) -> WebhookEndpoint:
        return endpoints.create(actor, "http://127.0.0.1:9/hook", events, **more)

    return make


def sent() -> list[dict[str, Any]]:
    return [json.loads(row.body) for row in WebhookDelivery.objects.order_by("pk")]


def told() -> list[str]:
    return [message["type"] for message in sent()]


def end(run: Run, outcome: Outcome, **facts: Any) -> None:
    turn = run.turns.get()
    set_status(run, turn, TurnStatus.RUNNING_TURN)
    finish(run, turn, outcome, **facts)


def test_a_question_is_told_with_its_questions_as_the_sdk_shows_them(
    hook: Hook, make_round: MakeRound, make_run: MakeRun
) -> None:
    hook(["run.awaiting_input"])
    round_ = make_round("question", run=make_run(metadata={"ticket": 7}))

    (message,) = sent()
    assert message["type"] == "run.awaiting_input"
    assert message["created_at"].endswith("Z")
    assert message["id"] == WebhookDelivery.objects.get().event_id
    assert message["data"] == {
        "id": round_.run_id,
        "status": "awaiting_approval",
        "agent_id": round_.run.agent_id,
        "user_id": None,
        "metadata": {"ticket": 7},
        "request_ids": [round_.pk],
        "questions": [
            {
                "question": "Which segment?",
                "header": "Segment",
                "multiSelect": False,
                "options": [
                    {"label": "enterprise", "description": "Large orgs"},
                    {"label": "mid-market"},
                ],
            }
        ],
    }


def test_an_approval_is_told_without_questions(hook: Hook, make_round: MakeRound) -> None:
    hook(["run.awaiting_input"])
    round_ = make_round("approval")
    (message,) = sent()
    assert message["data"]["request_ids"] == [round_.pk]
    assert "questions" not in message["data"]


@pytest.mark.parametrize("kind", ["plan", "elicitation", "outcome"])
def test_every_other_pause_is_told_as_something_to_answer(
    hook: Hook, make_round: MakeRound, kind: str
) -> None:
    hook(["run.awaiting_input"])
    make_round(kind)
    (message,) = sent()
    assert message["data"]["questions"]


def test_an_endpoint_that_asks_for_nothing_in_particular_is_told_how_runs_end(
    hook: Hook, make_run: MakeRun
) -> None:
    hook(None)
    end(make_run(), Outcome.COMPLETED, output="All sent.")
    (message,) = sent()
    assert (message["type"], message["data"]["status"]) == ("run.completed", "completed")
    assert message["data"]["output"] == "All sent."


def test_an_endpoint_that_asks_for_nothing_is_told_nothing(hook: Hook, make_run: MakeRun) -> None:
    assert hook([]).events == []
    end(make_run(), Outcome.COMPLETED)
    assert sent() == []


@pytest.mark.parametrize("outcome", [Outcome.FAILED, Outcome.TIMED_OUT, Outcome.INTERRUPTED])
def test_every_bad_end_is_a_failure_with_its_code(hook: Hook, make_run: MakeRun, outcome: Outcome) -> None:
    hook(["run.failed"])
    end(make_run(), outcome, error="No.", error_code="agent_failed")
    (message,) = sent()
    data = message["data"]
    assert (data["status"], data["error"], data["error_code"]) == ("failed", "No.", "agent_failed")


def test_the_life_of_a_run_is_told_in_its_order(hook: Hook, make_run: MakeRun, alice: User) -> None:
    hook()
    run = make_run()
    control.reply(run.pk, "and now?")
    control.cancel(run.pk, decider=Decider(user=alice, via="page"))
    assert told() == ["run.started", "run.message_received", "run.cancelled", "run.message_cancelled"]


def test_a_reply_that_was_next_is_a_cancelled_run(hook: Hook, make_run: MakeRun, alice: User) -> None:
    run = make_run()
    decider = Decider(user=alice, via="page")
    control.cancel(run.pk, decider=decider)
    control.reply(run.pk, "and now?")
    hook()
    control.cancel(run.pk, decider=decider)
    assert told() == ["run.cancelled"]


def test_runs_of_a_user_reach_that_users_endpoints_and_no_others(hook: Hook, make_run: MakeRun) -> None:
    ours, anns, bens = hook(), hook(user_id="ann"), hook(user_id="ben")
    make_run()
    make_run(user_id="ann")
    reached = list(WebhookDelivery.objects.order_by("pk").values_list("endpoint", flat=True))
    assert reached == [ours.pk, anns.pk]
    assert sent()[1]["data"]["user_id"] == "ann"
    assert bens.deliveries.count() == 0


def test_an_endpoint_of_another_account_or_switched_off_is_told_nothing(
    hook: Hook, make_run: MakeRun, other_account: Any
) -> None:
    endpoint = hook()
    endpoint.account = other_account
    endpoint.save()
    off = hook()
    off.active = False
    off.save()
    make_run()
    assert sent() == []


def test_one_event_has_one_id_for_all_endpoints(hook: Hook, make_run: MakeRun) -> None:
    hook()
    hook()
    make_run()
    first, second = WebhookDelivery.objects.all()
    assert (first.event_id, first.body) == (second.event_id, second.body)


def test_what_is_rolled_back_is_told_to_nobody(hook: Hook, make_run: MakeRun) -> None:
    hook()

    def undone() -> None:
        with transaction.atomic():
            make_run()
            raise RuntimeError

    with pytest.raises(RuntimeError):
        undone()
    assert sent() == []


def test_secrets_do_not_leave_in_what_is_told(hook: Hook, make_run: MakeRun) -> None:
    """C45 for webhooks."""
    hook()
    run = make_run(metadata={"api_key": "sk-live", "link": "https://u:p@x.example/?token=t"})
    end(run, Outcome.COMPLETED, output="See https://x.example/?access_token=abc")
    text = json.dumps(sent())
    assert not [secret for secret in ("sk-live", "u:p@", "token=t", "=abc") if secret in text]


def test_a_long_output_is_cut_and_says_so(hook: Hook, make_run: MakeRun) -> None:
    hook(["run.completed"])
    end(make_run(), Outcome.COMPLETED, output="x" * 100_001)
    data = sent()[0]["data"]
    assert (len(data["output"]), data["output_truncated"]) == (100_000, True)


def test_removing_a_user_removes_what_was_told_for_them(hook: Hook, make_run: MakeRun) -> None:
    hook(user_id="ann")
    EndUser.objects.get(user_id="ann").delete()
    assert not WebhookEndpoint.objects.exists()
