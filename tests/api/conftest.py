"""A caller of the API, as one of the usual people or as nobody."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.test import Client

from runs.models import User
from tests.api.m8tes import Sdk, demo, usual_agents

ALLOW = {"approval": {"action": "accept", "content": {"decision": "allow"}}}


class Caller:
    """Speaks JSON to /api/v2; `body` may also be raw bytes."""

    def __init__(self, client: Client) -> None:
        self.client = client

    def get(self, path: str, **query: Any) -> Any:
        return self.client.get(f"/api/v2/{path}", query)

    def post(self, path: str, body: Any = None) -> Any:
        return self.send("POST", path, body)

    def patch(self, path: str, body: Any = None) -> Any:
        return self.send("PATCH", path, body)

    def send(
        self, method: str, path: str, body: Any = None, *, content_type: str = "application/json", **more: Any
    ) -> Any:
        raw = body if isinstance(body, bytes) else json.dumps(body).encode() if body is not None else b""
        return self.client.generic(method, f"/api/v2/{path}", raw, content_type=content_type, **more)

    def respond(self, round_id: str, responses: Any, key: str = "k", **more: Any) -> Any:
        body = {"responses": responses, "idempotency_key": key, **more}
        return self.post(f"rounds/{round_id}/respond", body)


@pytest.fixture
def calling() -> Callable[[User], Caller]:
    def signed_in(user: User) -> Caller:
        client = Client(raise_request_exception=False)
        client.force_login(user)
        return Caller(client)

    return signed_in


@pytest.fixture
def nobody(db: None) -> Caller:
    return Caller(Client())


@pytest.fixture(scope="package")
def sdk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sdk]:
    """The m8tes SDK in front of a live demo installation that several files share: its start takes seconds."""
    with demo(tmp_path_factory.mktemp("sdk")) as found:
        yield found


@pytest.fixture(scope="package")
def agents(sdk: Sdk) -> dict[str, int]:
    return usual_agents(sdk)


def fields_of(response: Any) -> list[list[str | int]]:
    """The paths that a 422 names."""
    assert response.status_code == 422, response.content
    return [field["path"] for field in response.json()["error"]["details"]["fields"]]


@pytest.fixture
def caller(calling: Callable[[User], Caller], alice: User) -> Caller:
    return calling(alice)
