"""What is sent as a body: JSON that can be stored, of bounded size, or a refusal that says what is wrong."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.conf import settings

from runs.models import Agent, Run, User
from tests.api.conftest import Caller, fields_of

Calling = Callable[[User], Caller]


def body_with(agent: Agent, metadata: str) -> bytes:
    return f'{{"agent_id": {agent.pk}, "message": "Go", "metadata": {{"x": {metadata}}}}}'.encode()


@pytest.mark.parametrize(
    "body",
    [
        b"{",
        b"agent_id=1",
        b'{"message": NaN}',
        b'{"message": -Infinity}',
        b'{"message": "\xff"}',
        b'{"message": ' + b"9" * 5000 + b"}",
        b"[" * 100_000,
    ],
    ids=["cut off", "form", "NaN", "Infinity", "not UTF-8", "endless number", "endless nesting"],
)
def test_a_body_that_is_no_json_is_a_422(calling: Calling, alice: User, body: bytes) -> None:
    response = calling(alice).post("runs/", body)

    assert response.status_code == 422
    assert response.json()["error"]["error_code"] == "invalid_json"


@pytest.mark.parametrize("body", [b"[]", b"null", b"5", b'"text"', b"true"])
def test_json_that_is_no_object_is_a_422(calling: Calling, alice: User, body: bytes) -> None:
    response = calling(alice).post("runs/", body)

    assert fields_of(response) == [[]]


@pytest.mark.parametrize(
    ("value", "path"),
    [
        ("1e999", ["metadata", "x"]),
        ('"\\ud83d"', ["metadata", "x"]),
        ('"\\u0000"', []),
        ('{"\\u0000": 1}', []),
    ],
)
def test_a_value_that_no_database_can_hold_is_a_422_and_nothing_starts(
    calling: Calling, alice: User, agent: Agent, value: str, path: list[str]
) -> None:
    assert fields_of(calling(alice).post("runs/", body_with(agent, value))) == [path]
    assert not Run.objects.exists()


def test_nesting_beyond_what_is_stored_is_a_422(calling: Calling, alice: User, agent: Agent) -> None:
    deep = "[" * 150 + "]" * 150

    assert calling(alice).post("runs/", body_with(agent, deep)).status_code == 422


def test_the_text_of_an_escape_is_a_text_like_any_other(calling: Calling, alice: User, agent: Agent) -> None:
    response = calling(alice).post("runs/", body_with(agent, r'"\\u0000"'))

    assert response.status_code == 201
    assert response.json()["metadata"] == {"x": r"\u0000"}


def test_whole_numbers_are_kept_to_the_last_digit(calling: Calling, alice: User, agent: Agent) -> None:
    response = calling(alice).post("runs/", body_with(agent, "9007199254740993"))

    assert response.json()["metadata"] == {"x": 9007199254740993}


def test_a_body_over_the_limit_is_a_413_and_nothing_starts(
    calling: Calling, alice: User, agent: Agent
) -> None:
    response = calling(alice).post(
        "runs/", body_with(agent, f'"{"x" * settings.DATA_UPLOAD_MAX_MEMORY_SIZE}"')
    )

    assert response.status_code == 413
    assert response.json()["error"]["error_code"] == "payload_too_large"
    assert not Run.objects.exists()


@pytest.mark.parametrize(
    "content_type", ["application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "text/plain"]
)
def test_a_body_that_does_not_call_itself_json_is_a_415(
    calling: Calling, alice: User, agent: Agent, content_type: str
) -> None:
    response: Any = calling(alice).send("POST", "runs/", body_with(agent, "1"), content_type=content_type)

    assert response.status_code == 415
    assert not Run.objects.exists()


def test_a_change_without_a_body_says_what_it_lacks(calling: Calling, alice: User) -> None:
    assert fields_of(calling(alice).post("runs/")) == [["agent_id"], ["message"]]
