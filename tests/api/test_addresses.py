"""Exact addresses: collections end in a slash, items and actions never, and nothing ever redirects."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.test import Client

from runs.models import Round, User
from tests.api.conftest import ALLOW, Caller

Calling = Callable[[User], Caller]


@pytest.mark.parametrize(
    ("method", "wrong", "right"),
    [
        ("GET", "runs", "runs/"),
        ("POST", "runs", "runs/"),
        ("GET", "rounds", "rounds/"),
        ("GET", "runs/1/", "runs/1"),
        ("GET", "rounds/abc/", "rounds/abc"),
        ("POST", "rounds/abc/respond/", "rounds/abc/respond"),
        ("POST", "runs/1/cancel/", "runs/1/cancel"),
        ("POST", "runs/1/reply/", "runs/1/reply"),
        ("PATCH", "runs/1/permission-mode/", "runs/1/permission-mode"),
        ("GET", "runs/1/events/", "runs/1/events"),
        ("POST", "runs/with-files/", "runs/with-files"),
        ("POST", "runs/1/reply/with-files/", "runs/1/reply/with-files"),
        ("GET", "runs/1/files/", "runs/1/files"),
        ("POST", "agents", "agents/"),
        ("PATCH", "agents/1/", "agents/1"),
        ("POST", "tasks", "tasks/"),
        ("DELETE", "tasks/1/", "tasks/1"),
        ("POST", "tasks/1/runs/", "tasks/1/runs"),
        ("POST", "users", "users/"),
        ("PATCH", "users/ann%40example.com/", "users/ann@example.com"),
        ("PATCH", "settings", "settings/"),
    ],
)
def test_the_wrong_slash_is_a_404_that_names_the_right_address(
    calling: Calling, alice: User, method: str, wrong: str, right: str
) -> None:
    response = calling(alice).send(method, wrong, {})

    assert response.status_code == 404
    assert response.json()["error"]["message"].endswith(f"try /api/v2/{right}")


def test_a_decision_at_the_wrong_address_decides_nothing(
    calling: Calling, alice: User, make_round: Callable[..., Round]
) -> None:
    pending = make_round()

    assert calling(alice).respond(f"{pending.pk}/", ALLOW).status_code == 404
    assert Round.objects.pending().filter(pk=pending.pk).exists()


@pytest.mark.parametrize(
    "path", ["", "nothing", "runs/x", "runs/-1", "runs/1/nothing", "rounds/a/b/c", "runs//", "%00"]
)
@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
def test_an_unknown_address_is_a_json_404_for_everybody(nobody: Caller, path: str, method: str) -> None:
    response = nobody.send(method, path, {})

    assert response.status_code == 404
    assert response.json()["error"]["error_code"] == "not_found"


@pytest.mark.parametrize("path", ["/api/v2", "/api/v1/runs/", "/api/nothing"])
def test_an_unknown_address_beside_this_version_is_a_json_404_too(path: str) -> None:
    for response in (Client().get(path), Client(enforce_csrf_checks=True).post(path)):
        assert response.status_code == 404
        assert response.json()["error"]["error_code"] == "not_found"


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("DELETE", "runs/", "GET, POST"),
        ("PUT", "runs/1", "GET"),
        ("POST", "rounds/", "GET"),
        ("GET", "rounds/abc/respond", "POST"),
        ("GET", "runs/1/cancel", "POST"),
        ("POST", "runs/1/permission-mode", "PATCH"),
        ("POST", "runs/1/events", "GET"),
        ("GET", "runs/with-files", "POST"),
        ("POST", "runs/1/files", "GET"),
        ("PUT", "agents/", "GET, POST"),
        ("POST", "agents/1", "GET, PATCH, DELETE"),
        ("DELETE", "tasks/", "GET, POST"),
        ("PUT", "tasks/1", "GET, PATCH, DELETE"),
        ("GET", "tasks/1/runs", "POST"),
        ("PATCH", "users/", "GET, POST"),
        ("PUT", "users/ann", "GET, PATCH, DELETE"),
        ("POST", "settings/", "GET, PATCH"),
    ],
)
def test_a_method_that_an_address_does_not_have_is_a_json_405(
    calling: Calling, vera: User, method: str, path: str, allowed: str
) -> None:
    response = calling(vera).send(method, path, {})

    assert response.status_code == 405
    assert response.json()["error"]["error_code"] == "method_not_allowed"
    assert response["Allow"].startswith(allowed)


@pytest.mark.parametrize("path", ["runs/", "agents/", "tasks/", "users/", "settings/", "rounds/"])
def test_head_is_get_without_a_body_and_options_tells_the_methods_alone(
    calling: Calling, vera: User, path: str
) -> None:
    caller = calling(vera)

    head, options = caller.send("HEAD", path), caller.send("OPTIONS", path)

    assert (head.status_code, head.content) == (200, b"")
    assert (options.status_code, options.content) == (204, b"")
    assert options["Allow"].startswith("GET")
