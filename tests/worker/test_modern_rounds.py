"""A server of the 2026 generation returns its question; the run is a row until somebody answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from runs import db
from runs.models import Round
from tests.worker.conftest import Desk, results

ADDRESS = {"street": "1 Main Street", "city": "Pune"}
BOOK = [
    {"call": "shipping:book_shipment", "args": {"item": "Lamp"}, "as": "b"},
    {"finish": "{{ b.result.tracking_number }}"},
]


async def test_an_elicited_form_is_stored_answered_and_the_call_goes_on_once(
    desk_: Desk, effects: Callable[[], list[dict[str, Any]]]
) -> None:
    run = await desk_.start(BOOK)
    (round_,) = await desk_.pending(run, "elicitation")
    assert list(round_.requests) == ["shipping_address"]
    assert round_.operation_name == "book_shipment"
    assert not round_.held
    await desk_.eventually(lambda: run.pk not in desk_.engine.active, "the run to be a row and no task", run)
    await desk_.accept(round_, **ADDRESS)
    done = await desk_.finished(run)
    assert done.outcome == "completed"
    assert done.output is not None
    assert done.output.startswith("NW")
    assert [effect["what"] for effect in effects()] == ["book_shipment"]
    fresh = await db.read(Round.objects.get, pk=round_.pk)
    assert (fresh.status, fresh.outcome, fresh.delivery_attempts) == ("resolved", "answered", 1)


async def test_a_declined_form_reaches_the_server_as_a_decline(
    desk_: Desk, effects: Callable[[], list[dict[str, Any]]]
) -> None:
    run = await desk_.start([{"call": "shipping:book_shipment", "args": {"item": "Lamp"}, "as": "b"}])
    (round_,) = await desk_.pending(run)
    await desk_.answer(round_, {"shipping_address": {"action": "decline"}})
    await desk_.finished(run)
    assert (await db.read(results, run))["steps.0"]["result"]["booked"] is False
    assert effects() == []


async def test_many_keys_of_one_round_and_a_server_that_asks_for_what_it_misses(
    desk_: Desk, effects: Callable[[], list[dict[str, Any]]]
) -> None:
    run = await desk_.start(
        [{"call": "shipping:insure_shipment", "args": {"tracking_number": "NW12345678"}, "as": "i"}]
    )
    (first,) = await desk_.pending(run)
    assert set(first.requests) == {"cover", "terms"}
    assert first.requests["terms"]["mode"] == "url"
    cover = {"level": "full", "declared_value": 900, "contents": ["electronics"]}
    await desk_.answer(
        first, {"cover": {"action": "accept", "content": cover}, "terms": {"action": "accept"}}
    )
    (second,) = await desk_.pending(run)
    assert second.round_index == 1
    assert set(second.requests) == {"serial"}
    (field,) = second.requests["serial"]["requested_schema"]["required"]
    await desk_.accept(second, **{field: "SN-12345"})
    await desk_.finished(run)
    assert [effect["what"] for effect in effects()] == ["insure_shipment"]


async def test_three_rounds_of_one_call_keep_their_order(desk_: Desk) -> None:
    run = await desk_.start([{"call": "playground:three_rounds", "args": {}, "as": "r"}], server="playground")
    for number in range(3):
        (round_,) = await desk_.pending(run)
        assert round_.round_index == number
        (key,) = round_.requests
        assert key == f"q{number}"
        await desk_.accept(round_, name=f"answer {number}")
    await desk_.finished(run)
    assert "answer 0" in (await db.read(results, run))["steps.0"]["result"]


async def test_a_server_that_only_wants_its_state_back_needs_nobody(desk_: Desk) -> None:
    run = await desk_.start([{"call": "playground:state_only", "args": {}, "as": "r"}], server="playground")
    assert (await desk_.finished(run)).outcome == "completed"
    assert (await db.read(results, run))["steps.0"]["status"] == "done"


async def test_a_server_that_forgot_its_key_is_called_again_and_the_same_answer_is_reused(
    desk_: Desk,
) -> None:
    """Its state is sealed with a key of the process; each leg is a new process."""
    run = await desk_.start([{"call": "forgetful:many_keys", "args": {}, "as": "r"}], server="forgetful")
    (round_,) = await desk_.pending(run)
    answers: dict[str, Any] = {}
    for key, request in round_.requests.items():
        answers[key] = {"action": "accept"}
        if request["mode"] == "form":
            answers[key]["content"] = _sample(request["requested_schema"])
    await desk_.answer(round_, answers)

    def restarted() -> bool:
        return run.events.filter(type="tool_call.restarted").exists()

    await desk_.eventually(restarted, "the call to start over", run)
    # Reusing the answer meets another process with another key: bounded, then an honest failure.
    await desk_.finished(run)
    assert await db.read(Round.objects.filter(run=run).count) == 1, "nobody was asked the same thing twice"
    call = (await db.read(results, run))["steps.0"]
    assert call["status"] == "failed"
    assert "refusing its own state" in call["error"]


async def test_prompts_and_resources_pause_like_tools(desk_: Desk) -> None:
    run = await desk_.start(
        [
            {"prompt": "shipping:complaint", "args": {"tracking_number": "NW12345678"}, "as": "letter"},
            {"read": "shipping:shipping://labels/NW12345678", "as": "label"},
            {"finish": "{{ label.result }}"},
        ]
    )
    (asked,) = await desk_.pending(run)
    assert (asked.operation_kind, asked.operation_name) == ("prompt", "complaint")
    await desk_.accept(asked, what="late")
    (paper,) = await desk_.eventually(lambda: _resource_rounds(run), "the paper size", run)
    await desk_.accept(paper, size="A6")
    done = await desk_.finished(run)
    assert "NORTHWIND PARCEL · A6" in (done.output or "")


def _resource_rounds(run: Any) -> list[Round] | None:
    found = list(Round.objects.filter(run=run, operation_kind="resource").pending())
    return found or None


def _sample(schema: dict[str, Any]) -> dict[str, Any]:
    def value(field: dict[str, Any]) -> Any:
        if "enum" in field:
            return field["enum"][0]
        if "oneOf" in field:
            return field["oneOf"][0]["const"]
        return {"string": "x", "integer": 1, "number": 1, "boolean": True}[field["type"]]

    return {
        name: value(field)
        for name, field in schema["properties"].items()
        if name in schema.get("required", [])
    }
