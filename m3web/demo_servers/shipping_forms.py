"""The questions of the parcel service, as JSON Schema forms and a URL."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Any

from mcp.types import ElicitRequest, ElicitRequestFormParams, ElicitRequestURLParams

COUNTRIES = {"DE": "Germany", "AT": "Austria", "CH": "Switzerland", "FR": "France", "NL": "Netherlands"}


def form(message: str, properties: dict[str, Any], required: list[str]) -> ElicitRequest:
    schema = {"type": "object", "properties": properties, "required": required}
    return ElicitRequest(params=ElicitRequestFormParams(message=message, requested_schema=schema))


def address_form(missing: list[str]) -> ElicitRequest:
    message = "Where should the parcel go?"
    if missing:
        message += f" The address still lacks: {', '.join(missing)}."
    first_day = date.today() + timedelta(days=1)
    properties = {
        "recipient": {"type": "string", "title": "Recipient", "maxLength": 80},
        "street": {
            "type": "string",
            "title": "Street and number",
            "minLength": 1,
            "maxLength": 120,
            "description": "No post office boxes.",
        },
        "postal_code": {
            "type": "string",
            "title": "Postal code",
            "pattern": "^[0-9A-Z][0-9A-Z -]{2,9}$",
            "description": "Capital letters and digits, as on an envelope.",
        },
        "city": {"type": "string", "title": "City", "minLength": 1, "maxLength": 80},
        "country": {
            "type": "string",
            "title": "Country",
            "oneOf": [{"const": code, "title": name} for code, name in COUNTRIES.items()],
            "default": "DE",
        },
        "delivery_date": {
            "type": "string",
            "format": "date",
            "title": "Deliver on",
            "description": f"Not before {first_day:%d %B %Y}. Leave empty for the next working day.",
        },
        "leave_at_door": {
            "type": "boolean",
            "title": "Leave at the door if nobody answers",
            "default": False,
        },
        "instructions": {
            "type": "string",
            "title": "Instructions for the driver",
            "maxLength": 500,
        },
    }
    return form(message, properties, ["street", "city"])


def cover_form() -> ElicitRequest:
    properties = {
        "level": {
            "type": "string",
            "title": "Cover",
            "oneOf": [
                {"const": "basic", "title": "Basic: loss only, up to 500 €"},
                {"const": "full", "title": "Full: loss and damage, up to the declared value"},
            ],
            "default": "basic",
        },
        "declared_value": {
            "type": "number",
            "title": "Declared value in euro",
            "minimum": 1,
            "maximum": 25000,
        },
        "contents": {
            "type": "array",
            "title": "Contents",
            "items": {"type": "string", "enum": ["electronics", "glass", "documents", "clothing", "other"]},
            "minItems": 1,
            "maxItems": 3,
        },
    }
    return form("What should the insurance cover?", properties, ["level", "declared_value"])


def serial_form() -> ElicitRequest:
    properties = {
        "serial_number": {"type": "string", "title": "Serial number", "minLength": 4, "maxLength": 40}
    }
    return form("Full cover of electronics needs the serial number.", properties, ["serial_number"])


def terms_request(tracking_number: str) -> ElicitRequest:
    url = f"https://insurance.northwind.example/terms?parcel={tracking_number}"
    return ElicitRequest(
        params=ElicitRequestURLParams(message="Read and accept the insurance terms.", url=url)
    )
