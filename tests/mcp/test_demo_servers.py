"""The shipped demo servers, as the product meets them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from runs.mcp_client import (
    Answer,
    Completed,
    FormRequest,
    HttpBinding,
    InputRequired,
    Request,
    StdioBinding,
    UrlRequest,
    answer_to_wire,
    inspect,
)
from runs.schema_check import check_schema, validate
from tests.mcp.bindings import PATIENCE, STATE_KEY, effects_in, module
from tests.mcp.recorder import Recorder, accepting, text_of

ADDRESS = {"street": "Hauptstr. 1", "city": "Ulm", "country": "DE"}


def wire(**content: Any) -> dict[str, Any]:
    return answer_to_wire(Answer(action="accept", content=content or None))


@pytest.fixture(scope="session")
def shipping_effects(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("shipping") / "effects"


@pytest.fixture(scope="session")
def shipping(serve_http: Any, shipping_effects: Path) -> HttpBinding:
    url = serve_http(
        "m3web.demo_servers.shipping", M3_EFFECTS=str(shipping_effects), M3_SHIPPING_STATE_KEY=STATE_KEY
    )
    return HttpBinding(url=url, allow_private=True)


@pytest.fixture(scope="session")
def desk_effects(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("desk") / "effects"


@pytest.fixture(scope="session")
def desk(serve_http: Any, desk_effects: Path) -> HttpBinding:
    return HttpBinding(
        url=serve_http("m3web.demo_servers.desk", M3_EFFECTS=str(desk_effects)), allow_private=True
    )


async def test_every_schema_of_both_servers_can_be_checked(shipping: HttpBinding, desk: HttpBinding) -> None:
    for server, version in ((shipping, "2026-07-28"), (desk, "2025-11-25")):
        found = await inspect(server, timeout=PATIENCE)
        assert (found.protocol_version, found.problems) == (version, ())
        assert all(tool.description and tool.title for tool in found.tools)


async def test_booking_asks_for_the_address_and_books_once(
    shipping: HttpBinding, shipping_effects: Path, recorder: Recorder
) -> None:
    first = await recorder.perform(shipping, "book_shipment", {"item": "Lamp", "quantity": 2})
    assert isinstance(first, InputRequired)
    request = first.requests["shipping_address"]
    assert isinstance(request, FormRequest)
    check_schema(request.schema)
    assert validate(request.schema, ADDRESS) == []
    assert validate(request.schema, {"street": "x"}) != []
    assert effects_in(shipping_effects) == []
    done = await recorder.perform(
        shipping,
        "book_shipment",
        {"item": "Lamp", "quantity": 2},
        input_responses={"shipping_address": wire(**ADDRESS)},
        request_state=first.request_state,
    )
    assert re.search(r"Booked 2 × Lamp to Hauptstr. 1, Ulm. Tracking number NW[0-9A-F]{8}", text_of(done))
    assert [effect["what"] for effect in effects_in(shipping_effects)] == ["book_shipment"]


async def test_booking_asks_again_for_what_the_address_lacks(
    shipping: HttpBinding, recorder: Recorder
) -> None:
    first: Any = await recorder.perform(shipping, "book_shipment", {"item": "Lamp"})
    second = await recorder.perform(
        shipping,
        "book_shipment",
        {"item": "Lamp"},
        input_responses={"shipping_address": wire(street="Hauptstr. 1")},
        request_state=first.request_state,
    )
    assert isinstance(second, InputRequired)
    assert "city" in second.requests["shipping_address"].message


async def test_a_declined_address_books_nothing(shipping: HttpBinding, recorder: Recorder) -> None:
    declined = answer_to_wire(Answer(action="decline"))
    done = await recorder.perform(
        shipping, "book_shipment", {"item": "Lamp"}, input_responses={"shipping_address": declined}
    )
    assert text_of(done).startswith("No shipment was booked")


async def test_a_booking_is_continued_by_another_process_of_the_server(recorder: Recorder) -> None:
    server = module("m3web.demo_servers.shipping", M3_SHIPPING_STATE_KEY=STATE_KEY)
    first: Any = await recorder.perform(server, "book_shipment", {"item": "Lamp"})
    done = await recorder.perform(
        server,
        "book_shipment",
        {"item": "Lamp"},
        saved=first.negotiated,
        input_responses={"shipping_address": wire(**ADDRESS)},
        request_state=first.request_state,
    )
    assert isinstance(done, Completed)


async def test_insurance_asks_a_form_and_a_url_together_and_a_further_round_if_needed(
    shipping: HttpBinding, recorder: Recorder
) -> None:
    call: Any = {"tracking_number": "NW00C0FFEE"}
    first: Any = await recorder.perform(shipping, "insure_shipment", call)
    assert isinstance(first.requests["cover"], FormRequest)
    assert isinstance(first.requests["terms"], UrlRequest)
    second: Any = await recorder.perform(
        shipping,
        "insure_shipment",
        call,
        input_responses={
            "cover": wire(level="full", declared_value=900, contents=["electronics"]),
            "terms": wire(),
        },
        request_state=first.request_state,
    )
    assert set(second.requests) == {"serial"}
    done = await recorder.perform(
        shipping,
        "insure_shipment",
        call,
        input_responses={"serial": wire(serial_number="SN-2231")},
        request_state=second.request_state,
    )
    assert "Insured NW00C0FFEE with full cover" in text_of(done)


async def test_the_letter_and_the_label_ask_before_they_are_given(
    shipping: HttpBinding, recorder: Recorder
) -> None:
    call = {"tracking_number": "NW00C0FFEE"}
    letter: Any = await recorder.perform(shipping, "complaint", call, kind="prompt")
    assert set(letter.requests) == {"incident"}
    written: Any = await recorder.perform(
        shipping, "complaint", call, kind="prompt", input_responses={"incident": wire(what="late")}
    )
    assert "it was late" in written.raw["messages"][0]["content"]["text"]
    uri = "shipping://labels/NW00C0FFEE"
    label: Any = await recorder.perform(shipping, uri, kind="resource")
    assert set(label.requests) == {"paper"}
    printed: Any = await recorder.perform(
        shipping, uri, kind="resource", input_responses={"paper": wire(size="A4")}
    )
    assert "A4" in printed.raw["contents"][0]["text"]


async def test_reading_tools_say_that_they_only_read(shipping: HttpBinding, desk: HttpBinding) -> None:
    reading = set()
    for server in (shipping, desk):
        for tool in (await inspect(server, timeout=PATIENCE)).tools:
            if tool.annotations.get("readOnlyHint"):
                reading.add(tool.name)
    assert reading == {"track_shipment", "quote", "list_customers", "get_customer"}


async def test_a_refund_asks_by_form_then_by_url_and_pays_once(
    desk: HttpBinding, desk_effects: Path, recorder: Recorder
) -> None:
    async def answer(request: Request) -> Answer:
        content = {"reason_code": "late", "confirm_amount": 249}
        return Answer(action="accept", content=content if isinstance(request, FormRequest) else None)

    recorder.answer = answer
    call = {"order_id": "O-5001", "amount": 249, "reason": "Two weeks late"}
    done = await recorder.perform(desk, "refund", call)
    assert "Refunded 249.00 EUR for order O-5001" in text_of(done)
    form, consent = recorder.asked
    assert isinstance(form, FormRequest)
    assert isinstance(consent, UrlRequest)
    assert recorder.completed == [consent.elicitation_id]
    assert [effect["what"] for effect in effects_in(desk_effects)] == ["refund"]


async def test_a_refund_with_another_amount_confirmed_pays_nothing(
    desk: HttpBinding, recorder: Recorder
) -> None:
    recorder.answer = accepting(reason_code="late", confirm_amount=1)
    done = await recorder.perform(desk, "refund", {"order_id": "O-5002", "amount": 5, "reason": "x"})
    assert isinstance(done, Completed)
    assert done.is_error
    assert "No refund was made" in text_of(done)


async def test_what_the_desk_changes_is_there_for_its_next_process(
    tmp_path: Path, recorder: Recorder
) -> None:
    server = StdioBinding(
        command=module("m3web.demo_servers.desk").command,
        args=("-m", "m3web.demo_servers.desk"),
        env={"M3_DESK_DATA": str(tmp_path / "desk.json")},
        cwd=module("m3web.demo_servers.desk").cwd,
    )
    first: Any = await recorder.perform(server, "update_customer", {"customer_id": "C-101", "note": "VIP"})
    second = await recorder.perform(server, "get_customer", {"customer_id": "C-101"}, saved=first.negotiated)
    assert json.loads(text_of(second))["note"] == "VIP"
