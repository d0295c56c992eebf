"""Bodies that are refused unread, and errors that become answers (`m3web.middleware`)."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.conf import LazySettings
from django.core.exceptions import RequestDataTooBig
from django.http import HttpRequest, HttpResponse
from django.test import Client, RequestFactory

from m3web.middleware import BoundedBodyMiddleware, ErrorPageMiddleware
from runs.errors import NotFound
from runs.models import User


@pytest.fixture(autouse=True)
def small_limit(settings: LazySettings) -> None:
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = 1_000


def status_of(**headers: str) -> int:
    request = RequestFactory().post("/api/v2/runs/", data=b"", content_type="application/json")
    request.META.update(headers)
    return BoundedBodyMiddleware(lambda _: HttpResponse("read"))(request).status_code


@pytest.mark.parametrize(
    ("length", "status"),
    [("0", 200), ("1000", 200), ("1001", 413), ("9" * 5_000, 413), ("-1", 411), ("²", 411), ("1e3", 411)],
)
def test_a_body_is_judged_by_the_length_that_it_announces(length: str, status: int) -> None:
    assert status_of(CONTENT_LENGTH=length) == status


def test_a_body_of_unknown_length_is_refused_and_no_body_is_not() -> None:
    assert status_of(CONTENT_LENGTH="", HTTP_TRANSFER_ENCODING="chunked") == 411
    assert status_of(CONTENT_LENGTH="") == 200


def test_a_program_gets_json_and_a_person_a_page(client: Client, db: None) -> None:
    api = client.post("/api/v2/runs/", data="x" * 1_001, content_type="application/json")
    page = client.post("/login", data="x" * 1_001, content_type="text/plain")

    assert (api.status_code, api.json()["error"]["error_code"]) == (413, "payload_too_large")
    assert page.status_code == 413
    assert "The request is larger than 1,000 bytes. Send less; nothing was stored." in page.content.decode()


def test_a_form_that_is_too_large_is_refused_before_its_sender_is_known(
    client_for: Callable[[User], Client], alice: User
) -> None:
    with_file = client_for(alice).post("/runs/start", data={"message": "x" * 1_001})

    assert with_file.status_code == 413


@pytest.mark.parametrize(
    ("raised", "status", "words"),
    [
        (NotFound("There is no such run."), 404, "There is no such run."),
        (RequestDataTooBig(), 413, "The request is too large. Send less; nothing was stored."),
    ],
)
@pytest.mark.parametrize("path", ["/runs/1", "/api/v2/runs/1"])
def test_an_error_that_a_view_raised_becomes_an_answer_with_its_status(
    raised: Exception, status: int, words: str, path: str
) -> None:
    answer = ErrorPageMiddleware(lambda _: HttpResponse()).process_exception(
        RequestFactory().get(path), raised
    )

    assert answer is not None
    assert answer.status_code == status
    assert words in answer.content.decode()
    assert answer["Content-Type"].startswith("application/json" if path.startswith("/api/") else "text/html")


def test_a_defect_is_left_to_django() -> None:
    def view(_: HttpRequest) -> HttpResponse:
        return HttpResponse()

    assert ErrorPageMiddleware(view).process_exception(RequestFactory().get("/"), KeyError("x")) is None
