"""From the MCP client's requests to the stored shape of a round, and back from answers to the wire."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from runs.mcp_client import Answer, FormRequest, PromptOrigin, UrlRequest


def stored_requests(asked: Mapping[str, FormRequest | UrlRequest]) -> dict[str, dict[str, Any]]:
    """{key: request} as `Round.requests` keeps them (C9)."""
    return {key: stored_request(request) for key, request in asked.items()}


def stored_request(request: FormRequest | UrlRequest) -> dict[str, Any]:
    stored: dict[str, Any] = {"request_key": request.key, "message": request.message}
    if isinstance(request, FormRequest):
        stored |= {"mode": "form", "requested_schema": dict(request.schema)}
    else:
        stored |= {"mode": "url", "url": request.url}
        if request.elicitation_id is not None:
            stored["elicitation_id"] = request.elicitation_id
    return stored | ({"meta": dict(request.meta)} if request.meta else {})


def request_of(key: str, stored: Mapping[str, Any], origin: PromptOrigin) -> FormRequest | UrlRequest:
    """A stored request as the client knew it; the other way round of `stored_request`."""
    facts: dict[str, Any] = {"key": key, "message": stored["message"], "meta": stored.get("meta", {})}
    if stored["mode"] == "form":
        return FormRequest(schema=stored["requested_schema"], origin=origin, **facts)
    return UrlRequest(url=stored["url"], elicitation_id=stored.get("elicitation_id"), origin=origin, **facts)


def answer_of(response: Mapping[str, Any]) -> Answer:
    """A stored response as the client sends it."""
    return Answer(action=response["action"], content=response.get("content"))
