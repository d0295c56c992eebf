"""What docs/ say of states, permissions, failures, playbooks and the API is what the code does."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Any

import pytest
from rest_framework import serializers

from approvals import permission
from approvals import serializers as of_rounds
from m3web.api import routes
from m3web.api.errors import envelope
from runs import serializers as of_runs
from runs.api.base import ActorView, checked, list_response
from runs.errors import StateConflict
from runs.harnesses import get_harness
from runs.mcp_client import FailureCode
from runs.models import Role, Run
from runs.risk import Risk
from runs.round_states import ROUND_TRANSITIONS, RoundStatus
from runs.run_states import TURN_TRANSITIONS, ApiStatus, CallPhase, PermissionMode, TurnStatus
from tests.core.pages import code, examples, resolve, rows, section, text_of

# --- states ---------------------------------------------------------------------------------------------------


def arrows(heading: str) -> set[tuple[str, str]]:
    """Of the diagram in a section of states.md; the start is called "start", the end is left out."""
    drawn = re.findall(r"^    (\S+) --> (\S+)$", section("docs/states.md", heading), re.MULTILINE)
    return {(old.replace("[*]", "start"), new) for old, new in drawn if new != "[*]"}


@pytest.mark.parametrize("heading", ["## Turn", "## Pause", "## Call", "## Lease of a run"])
def test_every_arrow_of_a_diagram_has_its_function_and_no_other_has(heading: str) -> None:
    table = rows(section("docs/states.md", heading))
    assert {tuple(row[0].split(" → ")) for row in table} == arrows(heading)
    for row in table:
        assert code(row[2]), row[0]
        assert all(inspect.isroutine(resolve(name)) for name in code(row[2])), row[0]


def reachable(
    transitions: Mapping[Any, frozenset[Any]], old: StrEnum, seen: frozenset[Any] = frozenset()
) -> Any:
    for new in transitions[old] - seen:
        seen = reachable(transitions, new, seen | {new})
    return seen


@pytest.mark.parametrize(
    ("heading", "states", "transitions"),
    [("## Turn", TurnStatus, TURN_TRANSITIONS), ("## Pause", RoundStatus, ROUND_TRANSITIONS)],
)
def test_the_code_permits_every_arrow(
    heading: str, states: Any, transitions: Mapping[Any, frozenset[Any]]
) -> None:
    for old, new in arrows(heading):
        assert old == "start" or states(new) in reachable(transitions, states(old)), (old, new)


def test_the_diagram_of_a_call_has_every_phase() -> None:
    assert {new for _, new in arrows("## Call")} == {phase.value for phase in CallPhase}


# --- permissions, roles, failures -------------------------------------------------------------------------------


def test_the_decision_order_is_that_of_the_code() -> None:
    table = rows(section("docs/permissions.md", "## The order"))
    assert [code(row[0])[0] for row in table] == [step.__name__.strip("_") for step in permission._STEPS]
    named = {
        word for word in code(section("docs/permissions.md", "## The order")) if word in list(permission.Code)
    }
    assert named == set(permission.Code)
    assert {row[1] for row in table} == {effect.value for effect in permission.Effect}


@pytest.mark.parametrize(("heading", "words"), [("## Modes", PermissionMode), ("## Risk", Risk)])
def test_modes_and_risks_are_described_in_the_words_of_the_code(heading: str, words: Any) -> None:
    table = {code(row[0])[0]: row[1] for row in rows(section("docs/permissions.md", heading))}
    assert table == {word.value: word.describe for word in words}


def test_every_role_and_scope_is_described() -> None:
    roles = rows(section("docs/permissions.md", "## Roles"))
    assert [row[0] for row in roles] == [role.value for role in Role]
    scopes = rows(section("docs/permissions.md", "## Remembering a decision"))
    assert [code(row[0])[0] for row in scopes] == [scope.value for scope in permission.Scope]


def test_every_way_in_which_a_call_fails_is_described() -> None:
    table = rows(section("docs/mcp.md", "## What happens on failure"))
    assert {code(row[0])[0] for row in table} == {failure.value for failure in FailureCode}


# --- playbooks --------------------------------------------------------------------------------------------------


def test_every_playbook_on_the_page_may_be_saved() -> None:
    shown = examples("docs/playbooks.md")
    assert {kind for kind, _ in shown} == {"playbook"}
    for _, text in shown:
        assert list(get_harness("playbook").validate(json.loads(text))) == [], text


def test_every_kind_of_step_has_an_example() -> None:
    [refusal] = get_harness("playbook").validate({"steps": [{}]})
    kinds = refusal.partition("expected one of ")[2].split(", ")
    assert len(kinds) > 5
    played = [step for _, text in examples("docs/playbooks.md") for step in json.loads(text).get("steps", [])]
    assert all(any(kind in step for step in played) for kind in kinds)


# --- API --------------------------------------------------------------------------------------------------------


def routed() -> Iterator[tuple[str, str]]:
    for route in routes.urlpatterns:
        view: Any = getattr(route.callback, "view_class", None)
        if view is not None and issubclass(view, ActorView):
            address = re.sub(r"<\w+:(\w+)>", r"{\1}", str(route.pattern))
            for method in ("get", "post", "put", "patch", "delete"):
                if hasattr(view, method):
                    yield method.upper(), f"/api/v2/{address}"


def test_every_route_is_listed_and_no_other() -> None:
    listed = [row for row in rows(text_of("docs/api.md")) if "/api/v2/" in row[1]]
    assert sorted((row[0], code(row[1])[0]) for row in listed) == sorted(routed())
    assert {name for row in listed for cell in row[3:] for name in code(cell)} == set(BODIES | SHAPES)


BODIES: dict[str, type[serializers.Serializer[Any]]] = {
    "NewRun": of_runs.NewRun,
    "NewMessage": of_runs.NewMessage,
    "NewAgent": of_runs.NewAgent,
    "AgentChange": of_runs.AgentChange,
    "NewTask": of_runs.NewTask,
    "TaskChange": of_runs.TaskChange,
    "NewTaskRun": of_runs.NewTaskRun,
    "NewUser": of_runs.NewUser,
    "UserChange": of_runs.UserChange,
    "SettingsChange": of_runs.SettingsChange,
    "NewWebhook": of_runs.NewWebhook,
    "WebhookChange": of_runs.WebhookChange,
    "NewMode": of_rounds.NewMode,
    "NewServer": of_runs.NewServer,
    "ServerChange": of_runs.ServerChange,
    "WordChange": of_runs.WordChange,
    "Answer": of_rounds.Answer,
    "Draft": of_rounds.Draft,
    "Decision": of_rounds.Decision,
    "QuestionAnswers": of_rounds.QuestionAnswers,
    "NewPolicy": of_rounds.NewPolicy,
}
SHAPES: dict[str, type[serializers.Serializer[Any]]] = {
    "RunShape": of_runs.RunShape,
    "EventShape": of_runs.EventShape,
    "AccountEvent": of_runs.AccountEvent,
    "ServerShape": of_runs.ServerShape,
    "EntryShape": of_runs.EntryShape,
    "LookShape": of_runs.LookShape,
    "ToolLine": of_runs.ToolLine,
    "ToolShape": of_runs.ToolShape,
    "AgentShape": of_runs.AgentShape,
    "TaskShape": of_runs.TaskShape,
    "UserShape": of_runs.UserShape,
    "SettingsShape": of_runs.SettingsShape,
    "WebhookShape": of_runs.WebhookShape,
    "DeliveryShape": of_runs.DeliveryShape,
    "RoundLine": of_rounds.RoundLine,
    "RoundShape": of_rounds.RoundShape,
    "PermissionRequestShape": of_rounds.PermissionRequestShape,
    "PolicyShape": of_rounds.PolicyShape,
}


def test_every_example_of_a_body_is_accepted_and_of_an_answer_has_its_fields() -> None:
    shown = [(kind, json.loads(text)) for kind, text in examples("docs/api.md")]
    assert {kind for kind, _ in shown} == {*BODIES, *SHAPES, "List", "Error"}
    for kind, value in shown:
        if kind in BODIES:
            assert value.keys() <= BODIES[kind]().fields.keys()
            assert checked(BODIES[kind], value)
        elif kind in SHAPES:
            assert value.keys() == SHAPES[kind]().fields.keys(), kind
        elif kind == "List":
            assert value == list_response(Run.objects.none(), 20, of_runs.RunShape, lambda run: run.pk).data


def test_the_example_of_a_refusal_has_the_one_shape() -> None:
    [error] = [json.loads(text)["error"] for kind, text in examples("docs/api.md") if kind == "Error"]
    real = envelope(StateConflict(error["message"], details=error["details"]))["error"]
    assert {**error, "request_id": ""} == {**real, "request_id": ""}
    assert {status.value for status in ApiStatus} <= set(re.findall(r"\w+", text_of("docs/api.md")))
