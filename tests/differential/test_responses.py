"""Which answers are taken, when an answer is the same one again, and how it looks in diagnostics."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pytest

from tests.differential.both import Both
from tests.differential.rounds import HOLDER, SCHEMA, creation, form, page, response

TAKEN, REFUSED = "response_validated", "ManagedInputValidationError"


def object_of(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


ANYTHING: dict[str, Any] = {}
LOCAL = {"$defs": {"size": {"$anchor": "size", "type": "integer"}}, **object_of(a={"$ref": "#/$defs/size"})}
ANSWERS: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "a form, filled in": (form(schema=SCHEMA), response(content={"parcels": 1}), TAKEN),
    "an integer written as 1.0": (form(schema=SCHEMA), response(content={"parcels": 1.0}), TAKEN),
    "yes for an integer": (form(schema=SCHEMA), response(content={"parcels": True}), REFUSED),
    "too small a number": (form(schema=SCHEMA), response(content={"parcels": 0}), REFUSED),
    "a field that the schema does not name": (
        form(schema=SCHEMA),
        response(content={"parcels": 1, "b": [None]}),
        TAKEN,
    ),
    "a field that the schema forbids": (
        form(schema={"additionalProperties": False}),
        response(content={"b": 1}),
        REFUSED,
    ),
    "a required field left out": (form(schema=SCHEMA), response(content={}), REFUSED),
    "an empty form where anything goes": (form(schema=ANYTHING), response(content={}), TAKEN),
    "no content where anything goes": (form(schema=ANYTHING), response(), REFUSED),
    "a form accepted without content": (form(schema=SCHEMA), response(), REFUSED),
    "a form declined": (form(schema=SCHEMA), response("decline"), TAKEN),
    "a form cancelled": (form(schema=SCHEMA), response("cancel"), TAKEN),
    "a form declined that nothing fits": (form(schema={"not": {}}), response("decline"), TAKEN),
    "a form that nothing fits": (form(schema={"not": {}}), response(content={}), REFUSED),
    "an unusable schema, declined": (form(schema={"type": "parcel"}), response("decline"), TAKEN),
    "something said about the answer": (
        form(schema=SCHEMA),
        response(content={"parcels": 1}, meta={"by": "phone"}),
        TAKEN,
    ),
    "one of the choices": (form(schema=object_of(a={"enum": ["x", 1]})), response(content={"a": 1}), TAKEN),
    "none of the choices": (
        form(schema=object_of(a={"enum": ["x", 1]})),
        response(content={"a": "1"}),
        REFUSED,
    ),
    "a local reference": (form(schema=LOCAL), response(content={"a": 1}), TAKEN),
    "a local reference that does not fit": (form(schema=LOCAL), response(content={"a": "1"}), REFUSED),
    "a reference by anchor": (
        form(schema={**LOCAL, "required": ["a"], "$ref": "#size"}),
        response(content={}),
        REFUSED,
    ),
    "a reference to nowhere": (form(schema={"$ref": "#/$defs/none"}), response(content={}), REFUSED),
    "a reference to another host": (
        form(schema={"$ref": "https://schemas.example/x"}),
        response(content={}),
        REFUSED,
    ),
    "a text that fits its pattern": (
        form(schema=object_of(a={"type": "string", "pattern": "^[A-Z]{2}[0-9]+$", "maxLength": 6})),
        response(content={"a": "NL1234"}),
        TAKEN,
    ),
    "a text that does not": (
        form(schema=object_of(a={"type": "string", "pattern": "^[A-Z]{2}[0-9]+$"})),
        response(content={"a": "nl1234"}),
        REFUSED,
    ),
    "a page, agreed to": (page(), response(), TAKEN),
    "a page, declined": (page(), response("decline"), TAKEN),
    "a page, cancelled": (page(), response("cancel"), TAKEN),
    "a page with content": (page(), response(content={}), REFUSED),
}


def asked(both: Both, execution: str, **requests: dict[str, Any]) -> dict[str, str]:
    """A pending round of these requests."""
    at = {"execution_id": execution, "round_id": f"round-{execution}"}
    both.call("create_round", **creation(**at, requests=requests))
    return at


def submitted(both: Both, at: dict[str, str], responses: Any, key: str = "key-1") -> dict[str, Any]:
    return both.call("submit_responses", **at, **HOLDER, responses=responses, response_idempotency_key=key)


@pytest.mark.parametrize("name", ANSWERS)
def test_an_answer_is_taken_or_refused_by_both(both: Both, executions: Callable[[], str], name: str) -> None:
    request, given, expected = ANSWERS[name]
    [fields] = request.values()
    key = fields["request_key"]
    at = asked(both, executions(), **{key: request})
    answer = submitted(both, at, {key: given})
    assert answer.get("error", answer.get("ok", {}).get("status")) == expected
    assert both.call("get_round", **at)["ok"]["status"] == (TAKEN if expected == TAKEN else "pending")


CONTENT: list[dict[str, Any]] = [
    {"a": 1, "b": {"c": [1, 2], "d": None}},
    {"b": {"d": None, "c": [1, 2]}, "a": 1},
    {"a": 1.0, "b": {"c": [1, 2], "d": None}},
    {"a": True, "b": {"c": [1, 2], "d": None}},
    {"a": 1, "b": {"c": [2, 1], "d": None}},
    {"a": 1, "b": {"c": [1, 2]}},
    {"a": "1", "b": {"c": [1, 2], "d": None}},
    {"a": 1e0, "b": {"c": [1, 2], "d": None}, "": ""},
]


@pytest.mark.parametrize("first", range(len(CONTENT)))
def test_the_same_answer_again_is_told_from_another(
    both: Both, executions: Callable[[], str], first: int
) -> None:
    at = asked(both, executions(), address=form(schema=ANYTHING))
    accepted = submitted(both, at, {"address": response(content=CONTENT[first])})
    for content in CONTENT:
        for key in ("key-1", "key-2"):
            again = submitted(both, at, {"address": response(content=content)}, key)
            same = key == "key-1" and canonical(content) == canonical(CONTENT[first])
            assert again == accepted if same else again["error"] == "ManagedInputConflict"


def canonical(content: dict[str, Any]) -> str:
    """By hand: keys sorted, numbers as they are written."""
    if isinstance(content, dict):
        return str({key: canonical(content[key]) for key in sorted(content)})
    return repr(content)


META: list[dict[str, Any]] = [{}, {"meta": None}, {"meta": {}}, {"meta": {"by": "phone"}}]


@pytest.mark.parametrize("first", META)
def test_what_is_said_about_an_answer_belongs_to_it(
    both: Both, executions: Callable[[], str], first: dict[str, Any]
) -> None:
    at = asked(both, executions(), consent=page())
    accepted = submitted(both, at, {"consent": response(**first)})
    for meta in META:
        again = submitted(both, at, {"consent": response(**meta)})
        assert again == accepted if meta.get("meta") == first.get("meta") else "error" in again


SECRETS: dict[str, Any] = {
    "parcels": 2,
    "Password": "p",
    "passwd": "p",
    "my_token_x": "t",
    "apiKey": "k",
    "api-key": "k",
    "api_key": "k",
    "Authorization": "Bearer abc",
    "secret": {"deep": [1]},
    "list": [{"token": "t", "n": 1}, "plain", "https://shop.example/p?x=1&token=abc"],
    "private_key": "k",
    "cookie": "c",
    "credential": "c",
    "link": "https://user:word@shop.example/p?x=1",
    "author": "Ann",
    "nothing": None,
}


def test_diagnostics_show_the_same(both: Both, executions: Callable[[], str]) -> None:
    requests = {"address": form(schema=ANYTHING), "consent": page(), "my_secret": form("my_secret", ANYTHING)}
    at = asked(both, executions(), **requests)
    assert both.call("redacted_responses", **at) == {"ok": None}
    answers = {
        "address": response(content=SECRETS),
        "consent": response(meta={"token": "t", "n": 1}),
        "my_secret": response("decline"),
    }
    stored = submitted(both, at, answers)["ok"]["responses"]
    assert stored["address"]["content"] == SECRETS
    theirs, ours = both.answers("redacted_responses", **at)
    assert ours == masked_as_ours(theirs)
    assert ours["ok"]["address"]["content"]["Password"] == "[redacted]"


def masked_as_ours(shown: Any) -> Any:
    """The reference's projection with our mask; that this is a difference is on the list."""
    return json.loads(re.sub(r"\[REDACTED\]|%5BREDACTED%5D", "[redacted]", json.dumps(shown)))
