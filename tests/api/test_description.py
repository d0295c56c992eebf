"""The OpenAPI description and its page: complete, valid, for everybody, and nothing comes from another host."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.test import Client
from jsonschema import Draft202012Validator
from rest_framework import serializers

from approvals import serializers as of_approvals
from m3web.api.schema import PREFIX, document
from m3web.api.schema_examples import EXAMPLES
from m3web.api.schema_operations import OPERATIONS
from runs import serializers as of_runs
from runs.api.base import checked
from runs.models import Agent, Run, User
from tests.api.conftest import Caller
from tests.core.test_docs_contents import routed

OPERATION_IDS = [
    (method, path, operation)
    for path, methods in document()["paths"].items()
    for method, operation in methods.items()
]


def validator(name: str) -> Draft202012Validator:
    """Of a shape; references reach into the whole description."""
    return Draft202012Validator({**document(), "$ref": f"#/components/schemas/{name}"})


def test_every_route_is_described_and_no_other() -> None:
    described = [(method.upper(), path) for method, path, _ in OPERATION_IDS]
    assert sorted(described) == sorted(routed())
    assert {f"{method} {path.removeprefix(PREFIX)}" for method, path in described} == OPERATIONS.keys()


def test_the_description_is_openapi_3_1_with_valid_schemas_and_ids_of_their_own() -> None:
    assert document()["openapi"].startswith("3.1.")
    for schema in document()["components"]["schemas"].values():
        Draft202012Validator.check_schema(schema)
    names = [operation["operationId"] for _, _, operation in OPERATION_IDS]
    assert len(names) == len(set(names)) > 50


def test_every_reference_and_every_link_leads_somewhere() -> None:
    text = str(document())
    schemas = document()["components"]["schemas"].keys()
    assert set(re.findall(r"'#/components/schemas/(\w+)'", text)) <= schemas
    names = {operation["operationId"] for _, _, operation in OPERATION_IDS}
    links = [
        link
        for _, _, operation in OPERATION_IDS
        for answer in operation["responses"].values()
        for link in answer.get("links", {}).values()
    ]
    assert len(links) > 40
    assert {link["operationId"] for link in links} <= names


@pytest.mark.parametrize(("method", "path", "operation"), OPERATION_IDS, ids=lambda value: str(value)[:60])
def test_every_operation_says_how_it_refuses(method: str, path: str, operation: dict[str, Any]) -> None:
    statuses = operation["responses"].keys()
    assert {"401", "403"} <= statuses
    assert ("404" in statuses) >= ("{" in path)
    assert ("422" in statuses) >= ("requestBody" in operation)
    for status, answer in operation["responses"].items():
        assert answer["description"], status
        if status >= "4":
            assert answer["content"]["application/json"]["schema"] == {"$ref": "#/components/schemas/Error"}


def test_every_parameter_of_a_query_says_what_it_means() -> None:
    clear = {"agent_id", "teammate_id", "task_id", "run", "kind", "type", "server", "name", "archived"}
    clear |= {"include_archived", "exclude_platform_runs"}
    for _, path, operation in OPERATION_IDS:
        for parameter in operation.get("parameters", ()):
            if parameter["in"] == "query" and parameter["name"] not in clear:
                assert parameter.get("description"), (path, parameter["name"])


def test_no_word_of_our_own_references_stands_in_it() -> None:
    said = str(document())
    assert not re.search(r"m8tes-http \d|design section|\((?:A|C|R)\d+\)|`runs\.|`approvals\.", said)


def _body(name: str) -> type[serializers.Serializer[Any]]:
    found: type[serializers.Serializer[Any]] = getattr(of_runs, name, None) or getattr(of_approvals, name)
    return found


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_example_fits_its_schema_and_is_accepted(name: str) -> None:
    for example in EXAMPLES[name]:
        validator(name).validate(example)
        assert checked(_body(name), example)


def test_every_body_has_an_example() -> None:
    bodies = {
        media["schema"]["$ref"].rpartition("/")[2]
        for _, _, operation in OPERATION_IDS
        for media in operation.get("requestBody", {}).get("content", {}).values()
    }
    assert bodies == EXAMPLES.keys()


@pytest.mark.parametrize(
    ("name", "value", "fits"),
    [
        ("NewRun", {"agent_id": 1, "message": "x"}, True),
        ("NewRun", {"teammate_id": 1, "message": "x", "agent_id": None}, True),
        ("NewRun", {"message": "x"}, False),
        ("NewRun", {"agent_id": 1, "message": "x", "permission_mode": None}, True),
        ("NewRun", {"agent_id": 1, "message": "x", "permission_mode": "lax"}, False),
        ("NewServer", {"name": "a", "entry": "b"}, True),
        ("NewServer", {"name": "a", "entry": "b", "url": "https://c.example"}, False),
        ("NewServer", {"name": "a"}, False),
        ("ServerChange", {"entry": "b", "url": "https://c.example"}, False),
        ("TaskChange", {"schedule": None}, True),
        ("TaskChange", {"schedule": "daily"}, False),
        ("TaskChange", {"webhook": False}, True),
        ("TaskChange", {"webhook": 0}, False),
    ],
    ids=str,
)
def test_the_description_and_the_check_of_a_body_agree(name: str, value: dict[str, Any], fits: bool) -> None:
    assert validator(name).is_valid(value) is fits
    assert _body(name)(data=value).is_valid() is fits


def test_a_run_as_it_is_answered_fits_its_shape(calling: Any, alice: User, make_run: Any) -> None:
    run: Run = make_run()
    caller: Caller = calling(alice)
    validator("RunShape").validate(caller.get(f"runs/{run.pk}").json())
    answer = document()["paths"]["/api/v2/runs/"]["get"]["responses"]["200"]
    page = Draft202012Validator({**document(), **answer["content"]["application/json"]["schema"]})
    for query in ({}, {"fields": "summary"}):
        page.validate(caller.get("runs/", **query).json())


def test_every_kind_of_refusal_has_the_shape_that_is_described(
    nobody: Caller, calling: Any, alice: User, vera: User, agent: Agent
) -> None:
    answers = [
        nobody.get("runs/"),
        calling(vera).post("runs/", {}),
        calling(alice).get("runs/9"),
        calling(alice).post("runs/", {"agent_id": "x"}),
        calling(alice).post("runs/", b"{"),
        calling(alice).send("POST", "runs/", b"x", content_type="text/plain"),
        calling(alice).send("DELETE", "runs/"),
    ]
    assert [answer.status_code for answer in answers] == [401, 403, 404, 422, 422, 415, 405]
    for answer in answers:
        validator("Error").validate(answer.json())


@pytest.mark.django_db
def test_the_description_is_for_everybody_and_sets_no_cookie(nobody: Caller) -> None:
    answer = nobody.get("schema")
    assert answer.status_code == 200
    assert answer.json() == document()
    assert not answer.cookies


@pytest.mark.django_db
def test_the_page_shows_every_address_and_shape_and_loads_nothing_from_elsewhere(client: Client) -> None:
    answer = client.get("/api/v2/docs")
    page = answer.content.decode()
    assert answer.status_code == 200
    for method, path, operation in OPERATION_IDS:
        assert f"<b>{method.upper()}</b> {path}</code>" in page
        assert f'id="{operation["operationId"]}"' in page
    for name in document()["components"]["schemas"]:
        assert f'id="shape-{name}"' in page
    loaded = re.findall(r'<(?:link|script|img)[^>]* (?:href|src)="([^"]+)"', page)
    assert loaded
    assert all(address.startswith("/") for address in loaded)
    assert not re.search(r"<script(?![^>]* src=)|<style|\sstyle=|\son\w+=", page)
    assert "default-src 'self'" in answer["Content-Security-Policy"]


@pytest.mark.django_db
def test_every_link_of_the_page_leads_to_a_place_in_it(client: Client) -> None:
    page = client.get("/api/v2/docs").content.decode()
    places = set(re.findall(r'\sid="([^"]+)"', page))
    assert set(re.findall(r'href="#([^"]+)"', page)) <= places
