"""What is stored comes back exactly, whatever characters, keys and numbers it has (`runs.models.exact`)."""

from __future__ import annotations

from typing import Any

import pytest
from django.apps import apps
from django.db import Error, connection, models
from encrypted_fields.fields import EncryptedJSONField
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from runs import access, control
from runs.errors import ModelValidationError, NotFound
from runs.mcp_client import ToolDefinition
from runs.models import Agent, Event, Round, Run, Server, User
from runs.models.exact import (
    MARK,
    ExactJSON,
    ExactText,
    original,
    original_json,
    storable,
    storable_json,
)
from runs.tool_rows import store_tools

OURS = ("approvals", "runs")
AWKWARD = [
    "NUL \x00 in the middle",
    "\x00",
    "half a character \ud83d",
    "the other half \ude00 first",
    "\ude00\ud83d",
    "whole \U0001f600",
    f"{MARK}",
    f"{MARK}0000",
    f"{MARK}d83d{MARK}",
    "a backslash before \\u0000",
    "two \\\\u0000 and a real \\\x00",
    '"quoted" \\" \n\t\x1f',
    "",
]

ANY_TEXT = st.lists(st.sampled_from(AWKWARD) | st.text(st.characters(exclude_categories=())), max_size=4).map(
    "".join
)
ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | ANY_TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(ANY_TEXT, inner, max_size=3),
    max_leaves=8,
)


def same(one: Any, other: Any) -> bool:
    """Equal with the same types and the same order of keys: 1 is not 1.0 here, and not True."""
    if isinstance(one, dict) and isinstance(other, dict):
        return list(one) == list(other) and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    return type(one) is type(other) and repr(one) == repr(other)


@given(ANY_TEXT)
def test_every_text_is_made_storable_and_back(text: str) -> None:
    stored = storable(text)

    assert "\x00" not in stored
    stored.encode()
    assert original(stored) == text


@given(ANY_JSON)
def test_every_json_is_made_storable_and_back(value: Any) -> None:
    stored = storable_json(value)

    assert "\x00" not in stored
    stored.encode()
    assert same(original_json(stored), value)


@pytest.mark.django_db
@pytest.mark.parametrize("text", AWKWARD)
def test_the_database_gives_back_a_text_and_finds_it(agent: Agent, text: str) -> None:
    agent.instructions = text
    agent.save()

    assert Agent.objects.get(instructions=text).instructions == text


@pytest.mark.django_db
@pytest.mark.parametrize("text", AWKWARD)
def test_the_database_gives_back_a_json_of_any_characters(agent: Agent, text: str) -> None:
    value = {text: [text, {"inner": text}], "other": text}
    agent.definition = value
    agent.save()
    agent.refresh_from_db()

    assert same(agent.definition, value)
    assert Agent.objects.get(definition__other=text) == agent


@pytest.mark.django_db
def test_the_order_of_keys_and_the_kind_of_numbers_stay(agent: Agent) -> None:
    value = {
        "zip": 1, "a": 1.0, "city name": -0.0, "b": 1e22, "huge": 10**40, "tiny": 5e-324, "10": True, "9": None,
    }  # fmt: skip
    agent.definition = value
    agent.save()
    agent.refresh_from_db()

    assert same(agent.definition, value)


@pytest.mark.django_db
@hypothesis_settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60, deadline=None
)
@given(value=ANY_JSON, text=ANY_TEXT)
def test_whatever_a_server_writes_is_kept(agent: Agent, value: Any, text: str) -> None:
    Agent.objects.filter(pk=agent.pk).update(definition={"value": value}, instructions=text)

    agent.refresh_from_db()
    assert same(agent.definition, {"value": value})
    assert agent.instructions == text


@pytest.mark.django_db
def test_what_is_no_json_is_refused_by_the_database(agent: Agent) -> None:
    with pytest.raises(Error):
        Agent.objects.filter(pk=agent.pk).update(definition={"value": float("nan")})


@pytest.mark.django_db
def test_parts_of_a_json_are_compared_by_the_database(make_run: Any) -> None:
    run: Run = make_run("first \x00 line")

    assert Event.objects.filter(run=run, payload__turn=0, payload__message="first \x00 line").exists()
    assert not Event.objects.filter(run=run, payload__turn=1).exists()
    assert list(Event.objects.filter(run=run).values_list("payload__turn", flat=True)) == [0]
    assert Event.objects.filter(run=run, payload__has_key="message").exists()
    assert not Event.objects.filter(run=run, payload__has_key="first").exists()


def test_every_text_and_json_of_ours_is_kept_exactly() -> None:
    """A plain TextField or JSONField would take on SQLite what PostgreSQL refuses or rewrites."""
    plain = [
        f"{model.__name__}.{field.name}"
        for app in OURS
        for model in apps.get_app_config(app).get_models()
        for field in model._meta.get_fields()
        if isinstance(field, models.TextField | models.JSONField)
        and not isinstance(field, ExactText | ExactJSON | EncryptedJSONField)
    ]

    assert plain == []


def test_json_is_stored_as_it_was_written() -> None:
    expected = {"postgresql": "json", "sqlite": "text"}[connection.vendor]

    assert Agent._meta.get_field("definition").db_type(connection) == expected


@pytest.mark.django_db
@pytest.mark.parametrize("text", ["cust\x001", "cust\ud83d"])
def test_a_name_that_no_database_can_look_up_is_refused_and_finds_nothing(
    agent: Agent, ada: User, acting: Any, text: str
) -> None:
    with pytest.raises(ModelValidationError, match="user_id has between 1 and 200 characters"):
        control.create_run(agent, control.Submission(message="go", user_id=text))
    with pytest.raises(NotFound):
        access.get(acting(ada), Round.objects.all(), pk=text)


@pytest.mark.django_db
def test_a_tool_whose_name_cannot_be_stored_is_left_out_and_the_others_stay(desk: Server) -> None:
    listed = [
        ToolDefinition(
            name=name,
            title="half \ud83d",
            description="\x00",
            input_schema={},
            output_schema=None,
            annotations={},
            digest=name[:1],
        )
        for name in ("good", "b\x00d", "w\ud83drse")
    ]

    problems = store_tools(desk, listed)

    assert desk.tools.get(present=True).name == "good"
    assert (desk.tools.get(name="good").title, desk.tools.get(name="good").description) == ("half �", "\x00")
    assert len(problems) == 2
    assert all("its name has characters that cannot be stored" in problem for problem in problems)
