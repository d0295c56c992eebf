"""What the tests of permission requests share: forms of servers, and the requests of a run."""

from __future__ import annotations

from typing import Any

from runs.models import Round
from tests.api.conftest import Caller

PARCEL = {
    "type": "object",
    "properties": {
        "street": {"type": "string", "title": "Street", "minLength": 2},
        "parcels": {"type": "integer", "title": "How many parcels?", "minimum": 1},
        "weight": {"type": "number", "description": "Weight in kg"},
        "insured": {"type": "boolean", "title": "Insure it?"},
        "speed": {
            "title": "Speed",
            "oneOf": [{"const": "std", "title": "Standard"}, {"const": "xp", "title": "Express"}],
        },
        "extras": {
            "type": "array",
            "title": "Extras",
            "items": {"type": "string", "enum": ["gift wrap", "signature, by hand", "SMS"]},
        },
        "note": {"type": "string"},
    },
    "required": ["street", "parcels"],
}
"""A form with a field of every kind that questions tell apart."""


def form(key: str, schema: dict[str, Any] | None = None, message: str = "Where to?") -> dict[str, Any]:
    return {
        "request_key": key,
        "mode": "form",
        "message": message,
        "requested_schema": schema or PARCEL,
    }


def link(key: str, url: str = "https://terms.example/agree") -> dict[str, Any]:
    return {"request_key": key, "mode": "url", "message": "Agree to the terms", "url": url}


def listed(caller: Caller, run_id: int) -> list[dict[str, Any]]:
    response = caller.get(f"runs/{run_id}/permissions")
    assert response.status_code == 200, response.content
    found: list[dict[str, Any]] = response.json()
    return found


def request_of(caller: Caller, round_: Round) -> dict[str, Any]:
    """The one request of a pause."""
    [found] = [each for each in listed(caller, round_.run_id) if each["request_id"].startswith(round_.pk)]
    return found


def error_code(response: Any) -> str:
    """The code of a refusal, which stands in both places."""
    error = response.json()["error"]
    assert error["error_code"] == error["details"]["error_code"]
    return str(error["error_code"])


def decide(caller: Caller, round_: Round, decision: str = "allow", **more: Any) -> Any:
    body = {"request_id": round_.pk, "decision": decision, "remember": False, **more}
    return caller.post(f"runs/{round_.run_id}/approve", body)


def fresh(round_: Round) -> Round:
    return Round.objects.select_related("run", "turn").get(pk=round_.pk)
