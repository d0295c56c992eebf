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
    ],
)
def test_a_method_that_an_address_does_not_have_is_a_json_405(
    calling: Calling, alice: User, method: str, path: str, allowed: str
) -> None:
    response = calling(alice).send(method, path, {})

    assert response.status_code == 405
    assert response.json()["error"]["error_code"] == "method_not_allowed"
    assert response["Allow"].startswith(allowed)
