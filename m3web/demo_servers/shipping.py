"""Parcel service on MCP 2026-07-28: a call that needs an answer *returns* its question and is called again.

Environment: M3_SHIPPING_STATE_KEY, at least 32 bytes in hex, seals the state between two legs, so that a
later process can continue what an earlier one asked. Without it a key of this process is used.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
from typing import Annotated, Any, Literal

from mcp.server.mcpserver import Context, MCPServer, RequestStateSecurity
from mcp.types import (
    CallToolResult,
    ElicitRequest,
    ElicitResult,
    InputRequiredResult,
    TextContent,
    ToolAnnotations,
)
from pydantic import BaseModel, Field

from m3web.demo_servers import http_port, record_effect
from m3web.demo_servers.shipping_forms import address_form, cover_form, form, serial_form, terms_request

STATE_SECONDS = 30 * 24 * 3600.0
"""How long a question may stay open: people answer after a weekend, not within ten minutes."""

READ_ONLY = ToolAnnotations(
    read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False
)
RATES = {"economy": (4.90, 1.10, 6), "standard": (7.50, 1.60, 3), "express": (14.00, 3.20, 1)}
"""Base price and price per kilogram in euro, and days, per service."""

Service = Literal["economy", "standard", "express"]
Tracking = Annotated[
    str, Field(pattern=r"^NW[0-9A-F]{8}$", description="As printed on the label, NW and 8 digits.")
]


def security() -> RequestStateSecurity:
    """The policy for sealed state, from the environment."""
    key = os.environ.get("M3_SHIPPING_STATE_KEY")
    if not key:
        return RequestStateSecurity.ephemeral(ttl=STATE_SECONDS)
    return RequestStateSecurity(keys=[bytes.fromhex(key)], ttl=STATE_SECONDS)


server = MCPServer(
    "shipping",
    title="Northwind Parcel",
    version="1.4.0",
    instructions="Quotes, books, tracks and insures parcels. Ask for a quote before you book.",
    request_state_security=security(),
    log_level="WARNING",
)


def said(text: str, **structured: Any) -> CallToolResult:
    return CallToolResult(
        content=[TextContent(type="text", text=text)], structured_content=structured or None
    )


def answers(context: Context) -> dict[str, ElicitResult]:
    """This round's answers by key; only elicitations are ever asked here."""
    got = context.input_responses or {}
    return {key: value for key, value in got.items() if isinstance(value, ElicitResult)}


@server.tool(
    title="Book a shipment",
    annotations=ToolAnnotations(read_only_hint=False, destructive_hint=False, idempotent_hint=False),
)
async def book_shipment(
    item: Annotated[str, Field(min_length=1, max_length=200)],
    context: Context,
    quantity: Annotated[int, Field(ge=1, le=500)] = 1,
) -> CallToolResult | InputRequiredResult:
    """Book a pick-up and delivery. Asks for the delivery address before it books."""
    answer = answers(context).get("shipping_address")
    if answer is not None and answer.action != "accept":
        return said(f"No shipment was booked: the address was not given ({answer.action}).", booked=False)
    address = (answer.content if answer else None) or {}
    missing = [field for field in ("street", "city") if not address.get(field)]
    if missing:
        reference = context.request_state or f"draft-{secrets.token_hex(4)}"
        request = address_form(missing if answer else [])
        return InputRequiredResult(input_requests={"shipping_address": request}, request_state=reference)
    tracking = f"NW{secrets.token_hex(4).upper()}"
    record_effect("book_shipment", tracking_number=tracking, item=item, quantity=quantity)
    to = f"{address['street']}, {address.get('postal_code') or ''} {address['city']}".replace("  ", " ")
    return said(
        f"Booked {quantity} × {item} to {to}. Tracking number {tracking}.",
        booked=True,
        tracking_number=tracking,
        item=item,
        quantity=quantity,
        address=address,
    )


class Progress(BaseModel):
    tracking_number: str
    status: Literal["label created", "picked up", "in transit", "out for delivery", "delivered"]
    place: str


@server.tool(title="Track a shipment", annotations=READ_ONLY)
async def track_shipment(tracking_number: Tracking) -> Progress:
    """Where a parcel is now."""
    stops: list[tuple[Any, str]] = [
        ("label created", "sender"),
        ("picked up", "Hamburg depot"),
        ("in transit", "Hannover hub"),
        ("out for delivery", "recipient's district"),
        ("delivered", "recipient"),
    ]
    status, place = stops[hashlib.sha256(tracking_number.encode()).digest()[0] % len(stops)]
    return Progress(tracking_number=tracking_number, status=status, place=place)


class Quote(BaseModel):
    service: Service
    price_eur: float
    days: int


@server.tool(title="Quote a price", annotations=READ_ONLY)
async def quote(
    weight_kg: Annotated[float, Field(gt=0, le=31.5, description="Weight in kilograms.")],
    country: Literal["DE", "AT", "CH", "FR", "NL"] = "DE",
    service: Service = "standard",
) -> Quote:
    """Price and delivery time of one parcel."""
    base, per_kilogram, days = RATES[service]
    abroad = country != "DE"
    price = (base + per_kilogram * weight_kg) * (1.6 if abroad else 1.0)
    return Quote(service=service, price_eur=round(price, 2), days=days + 2 * abroad)


def wanted(got: dict[str, Any], tracking_number: str) -> dict[str, ElicitRequest]:
    """What is still to be asked, given the accepted contents so far."""
    requests: dict[str, ElicitRequest] = {}
    cover = got.get("cover") or {}
    if not cover.get("level") or not cover.get("declared_value"):
        requests["cover"] = cover_form()
    if "terms" not in got:
        requests["terms"] = terms_request(tracking_number)
    needs_serial = cover.get("level") == "full" and "electronics" in (cover.get("contents") or [])
    if needs_serial and not (got.get("serial") or {}).get("serial_number"):
        requests["serial"] = serial_form()
    return requests


@server.tool(
    title="Insure a shipment",
    annotations=ToolAnnotations(read_only_hint=False, destructive_hint=False, idempotent_hint=False),
)
async def insure_shipment(
    tracking_number: Tracking, context: Context
) -> CallToolResult | InputRequiredResult:
    """Insure a parcel. Asks for the cover and for consent to the terms, and again for what is missing."""
    got: dict[str, Any] = json.loads(context.request_state) if context.request_state else {}
    for key, answer in answers(context).items():
        if answer.action != "accept":
            return said(
                f"The parcel was not insured: “{key}” was not accepted ({answer.action}).", insured=False
            )
        got[key] = answer.content or {}
    requests = wanted(got, tracking_number)
    if requests:
        return InputRequiredResult(input_requests={**requests}, request_state=json.dumps(got))
    policy = f"POL-{secrets.token_hex(3).upper()}"
    record_effect("insure_shipment", tracking_number=tracking_number, policy=policy)
    cover = got["cover"]
    text = f"Insured {tracking_number} with {cover['level']} cover for {cover['declared_value']} €: {policy}."
    return said(text, insured=True, policy=policy, cover=cover)


@server.prompt(title="Complaint about a parcel")
async def complaint(tracking_number: str, context: Context) -> str | InputRequiredResult:
    """A letter to the carrier; asks what went wrong first."""
    answer = answers(context).get("incident")
    if answer is None:
        kinds = ["damaged", "late", "lost", "wrong address"]
        properties = {
            "what": {"type": "string", "title": "What happened?", "enum": kinds},
            "details": {"type": "string", "title": "Details", "maxLength": 1000},
        }
        return InputRequiredResult(
            input_requests={"incident": form("What went wrong?", properties, ["what"])}
        )
    incident = answer.content or {}
    what = incident.get("what") or "not as agreed"
    details = incident.get("details") or ""
    return f"Write a polite complaint about parcel {tracking_number}: it was {what}. {details}"


@server.resource("shipping://labels/{tracking_number}", title="Label", mime_type="text/plain")
async def label(tracking_number: str, context: Context) -> str | InputRequiredResult:
    """The label of a parcel; asks for the paper size first."""
    answer = answers(context).get("paper")
    if answer is None:
        properties = {
            "size": {"type": "string", "title": "Paper", "enum": ["A4", "A6", "4x6 in"], "default": "A6"}
        }
        request = form("Which paper is in the printer?", properties, ["size"])
        return InputRequiredResult(input_requests={"paper": request})
    size = (answer.content or {}).get("size") or "A6"
    return f"NORTHWIND PARCEL · {size}\n{tracking_number}\n||| || ||| | ||||"


def main() -> None:
    port = http_port("Demo MCP server: parcel service (protocol 2026-07-28).")
    if port is None:
        server.run("stdio")
    else:
        server.run("streamable-http", host="127.0.0.1", port=port)


if __name__ == "__main__":
    main()
