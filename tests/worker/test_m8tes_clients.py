"""A client that knows permission requests only carries whole runs on a real server: calls, forms and links."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.test import Client

from runs import db
from runs.models import Run
from tests.api.conftest import Caller
from tests.worker.conftest import Desk

ANSWERS = {
    "Street and number": "High St 1",
    "City": "Hamburg",
    "Country": "Austria",
    "Leave at the door if nobody answers": "Yes",
    "Cover": "Full: loss and damage, up to the declared value",
    "Declared value in euro": "900",
    "Contents": "electronics, glass",
    "Serial number": "SN-12345",
}
BOOK = {"call": "shipping:book_shipment", "args": {"item": "Lamp"}, "as": "b"}
INSURE = {"call": "shipping:insure_shipment", "args": {"tracking_number": "NW12345678"}, "as": "i"}
END = {"finish": "{{ b.result.address.country }} {{ b.result.address.leave_at_door }} {{ i.status }}"}


def polled(caller: Caller, run_id: int) -> tuple[str, list[str]]:
    """One look as `wait()` has it: every request that waits is answered or allowed; the run's status, and which tools
    asked."""
    status = caller.get(f"runs/{run_id}").json()["status"]
    asked = []
    waiting = caller.get(f"runs/{run_id}/permissions").json() if status == "awaiting_approval" else []
    for request in (each for each in waiting if each["status"] == "pending"):
        asked.append(request["tool_name"])
        if request["tool_name"] == "AskUserQuestion":
            texts = [question["question"] for question in request["tool_input"]["questions"]]
            answers = {text: ANSWERS[text] for text in texts if text in ANSWERS}
            body = {"answers": answers, "request_id": request["request_id"]}
            response = caller.post(f"runs/{run_id}/answer", body)
        else:
            body = {"request_id": request["request_id"], "decision": "allow", "remember": False}
            response = caller.post(f"runs/{run_id}/approve", body)
        assert response.status_code == 200, response.content
    return status, asked


async def test_questions_and_approvals_are_enough_to_book_and_insure_a_parcel(
    desk_: Desk, effects: Callable[[], list[dict[str, Any]]]
) -> None:
    run = await desk_.start([BOOK, INSURE, END], mode="approval")
    client, asked = Client(), []
    await db.write(client.force_login, desk_.person)
    caller, status = Caller(client), "running"

    def pauses() -> bool:
        return not Run.objects.filter(pk=run.pk, status__in=["queued", "running_turn"]).exists()

    while status not in ("completed", "failed", "cancelled"):
        await desk_.eventually(pauses, f"a pause or the end of run {run.pk}", run)
        status, tools = await db.read(polled, caller, run.pk)
        asked.extend(tools)

    assert status == "completed"
    assert asked == [
        "shipping:book_shipment",
        "AskUserQuestion",
        "shipping:insure_shipment",
        "AskUserQuestion",
        "UrlElicitation",
        "AskUserQuestion",
    ]
    done = await db.read(Run.objects.get, pk=run.pk)
    assert done.output == "AT true done"
    assert [effect["what"] for effect in effects()] == ["book_shipment", "insure_shipment"]
