"""What the tests of the inbox share: posting a card's form as a browser does, and looking at what came back."""

from __future__ import annotations

from typing import Any

from django.http import HttpResponse
from django.test import Client

from runs.models import Round

HTMX = {"HX-Request": "true"}


def decide(
    client: Client, round_: Round, *, htmx: bool = False, query: str = "", **fields: Any
) -> HttpResponse:
    """Post a decision; digest and key are those of a card that was just drawn unless `fields` says otherwise."""
    data = {"idempotency_key": "key-1", "digest": round_.shown_digest, **fields}
    headers = HTMX if htmx else {}
    return client.post(f"/rounds/{round_.pk}/decide{query}", data, headers=headers)


def fresh(round_: Round) -> Round:
    return Round.objects.get(pk=round_.pk)


def text(response: HttpResponse) -> str:
    return response.content.decode()
