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
    """Post a decision; what the form holds unseen is that of a card just drawn, unless `fields` says otherwise."""
    data = {
        "idempotency_key": "key-1",
        "digest": round_.shown_digest,
        **_previews(client, round_, fields),
        **fields,
    }
    headers = HTMX if htmx else {}
    return client.post(f"/rounds/{round_.pk}/decide{query}", data, headers=headers)


def _previews(client: Client, round_: Round, fields: dict[str, Any]) -> dict[str, str]:
    """Beside every way to remember stands the digest of what the card showed of its rule."""
    if not fields.get("remember"):
        return {}
    card = client.get(f"/rounds/{round_.pk}/card").context["card"]
    return {f"shown:{choice.value}": choice.shown for choice in card.remember}


def fresh(round_: Round) -> Round:
    return Round.objects.get(pk=round_.pk)


def text(response: HttpResponse) -> str:
    return response.content.decode()
