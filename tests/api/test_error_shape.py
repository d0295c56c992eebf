"""Every refusal has one shape, wherever in the stack it comes from (m8tes-http 1.11)."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, NoReturn

import pytest
from django.conf import settings

from runs import control
from runs.models import Run, User
from tests.api.conftest import Caller

Calling = Callable[[User], Caller]

BIG = b'"' + b"x" * settings.DATA_UPLOAD_MAX_MEMORY_SIZE + b'"'

REFUSALS: dict[str, tuple[int, str, str, Callable[[Caller, Run], Any]]] = {
    "no JSON": (422, "validation_error", "invalid_json", lambda c, run: c.post("runs/", b"{")),
    "wrong types": (422, "validation_error", "invalid_argument", lambda c, run: c.post("runs/", {})),
    "wrong query": (422, "validation_error", "invalid_argument", lambda c, run: c.get("runs/", limit="x")),
    "not storable": (422, "validation_error", "invalid_argument", lambda c, run: c.post("runs/", b"1e999")),
    "service refuses": (
        422,
        "validation_error",
        "invalid_argument",
        lambda c, run: c.post(f"runs/{run.pk}/reply", {"message": " "}),
    ),
    "not there": (404, "not_found_error", "not_found", lambda c, run: c.get("rounds/nothing")),
    "no address": (404, "not_found_error", "not_found", lambda c, run: c.get("nothing")),
    "no method": (
        405,
        "invalid_request_error",
        "method_not_allowed",
        lambda c, run: c.post(f"runs/{run.pk}"),
    ),
    "not acceptable": (
        406,
        "invalid_request_error",
        "not_acceptable",
        lambda c, run: c.client.get("/api/v2/runs/", headers={"accept": "text/xml"}),
    ),
    "too large": (413, "invalid_request_error", "payload_too_large", lambda c, run: c.post("runs/", BIG)),
    "no JSON type": (
        415,
        "invalid_request_error",
        "unsupported_media_type",
        lambda c, run: c.send("POST", "runs/", b"x", content_type="text/plain"),
    ),
    "too late": (
        409,
        "conflict_error",
        "state_conflict",
        lambda c, run: [c.post(f"runs/{run.pk}/cancel") for _ in range(2)][1],
    ),
}


def assert_one_shape(response: Any, status: int, kind: str, code: str) -> None:
    assert response.status_code == status, response.content
    assert response["Content-Type"] == "application/json"
    assert response.json().keys() == {"error"}
    error = response.json()["error"]
    assert error.keys() == {"type", "message", "code", "error_code", "request_id", "details"}
    assert (error["type"], error["code"], error["error_code"]) == (kind, status, code)
    assert error["details"]["error_code"] == code
    assert error["message"].strip()
    assert len(error["request_id"]) == 32
    assert isinstance(error["details"].get("fields", []), list)
    assert ("fields" in error["details"]) == (status == 422)


@pytest.mark.parametrize(("status", "kind", "code", "call"), REFUSALS.values(), ids=REFUSALS)
def test_every_refusal_has_one_shape(
    calling: Calling,
    alice: User,
    make_run: Callable[..., Run],
    status: int,
    kind: str,
    code: str,
    call: Callable[[Caller, Run], Any],
) -> None:
    assert_one_shape(call(calling(alice), make_run()), status, kind, code)


def test_a_missing_session_has_the_same_shape(nobody: Caller) -> None:
    assert_one_shape(nobody.get("runs/"), 401, "authentication_error", "not_authenticated")


def test_a_role_that_may_not_has_the_same_shape(calling: Calling, vera: User) -> None:
    assert_one_shape(calling(vera).post("runs/", {}), 403, "permission_error", "not_allowed")


def test_a_failure_of_ours_has_the_same_shape_and_its_request_id_is_in_the_log(
    calling: Calling,
    alice: User,
    make_run: Callable[..., Run],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    run = make_run()

    def fail(*args: Any, **kwargs: Any) -> NoReturn:
        raise RuntimeError("the secret inside")

    monkeypatch.setattr(control, "cancel", fail)
    with caplog.at_level(logging.ERROR):
        response = calling(alice).post(f"runs/{run.pk}/cancel")

    assert_one_shape(response, 500, "api_error", "internal_error")
    assert "secret" not in response.content.decode()
    assert response.json()["error"]["request_id"] in caplog.text
    assert "the secret inside" in caplog.text
