"""Saving agents: what is refused, and where the mistake is."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from django.utils import timezone

from runs import agents
from runs.access import Actor, actor_for
from runs.agents import AgentValues
from runs.errors import ModelValidationError, NotAllowed
from runs.models import Account, Agent, Server, User

GOOD = '{"steps": [{"call": "desk:send_email", "args": {"to": "ann@example.com"}, "as": "sent"}]}'


@pytest.fixture
def admin(ada: User) -> Actor:
    return actor_for(ada)


def values(definition: str, *servers: Server, **fields: object) -> AgentValues:
    return AgentValues(name="Mailer", definition=definition, servers=[one.pk for one in servers], **fields)  # type: ignore[arg-type]


def mistakes(error: pytest.ExceptionInfo[ModelValidationError], field: str = "definition") -> str:
    found = error.value.details["fields"]
    assert {one["path"][0] for one in found} == {field}
    return "\n".join(one["message"] for one in found)


def test_an_admin_saves_an_agent(admin: Actor, desk: Server) -> None:
    agent = agents.save(admin, None, values(GOOD, desk, default_mode="plan", elicitation_timeout="15m"))
    stored = Agent.objects.get(pk=agent.pk)
    assert stored.definition == json.loads(GOOD)
    assert (stored.default_mode, stored.elicitation_timeout) == ("plan", "15m")
    assert list(stored.servers.all()) == [desk]


def test_an_operator_saves_nothing(alice: User, desk: Server) -> None:
    with pytest.raises(NotAllowed):
        agents.save(actor_for(alice), None, values(GOOD, desk))


def test_a_syntax_error_is_refused_with_line_and_column(admin: Actor, desk: Server) -> None:
    with pytest.raises(ModelValidationError) as refused:
        agents.save(admin, None, values('{"steps": [\n  {"say": "a",}\n]}', desk))
    assert mistakes(refused).startswith("Line 2, column ")


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ('{"steps": [], "steps": []}', "twice"),
        ('{"steps": [{"sleep": NaN}]}', "NaN"),
        ("[1]", "JSON object"),
        ("[" * 100_000, "nested too deep"),
        ('{"a": "' + "x" * 200_001 + '"}', "longer than"),
    ],
)
def test_other_text_that_is_no_definition_is_refused(admin: Actor, text: str, word: str) -> None:
    with pytest.raises(ModelValidationError) as refused:
        agents.save(admin, None, values(text))
    assert word in mistakes(refused)


def test_every_mistake_of_a_playbook_is_named_with_its_path(admin: Actor) -> None:
    with pytest.raises(ModelValidationError) as refused:
        agents.save(admin, None, values('{"steps": [{"say": 1}, {"jump": "x"}]}'))
    text = mistakes(refused)
    assert "steps[0]" in text
    assert "steps[1]" in text


def test_a_server_that_the_agent_lacks_is_refused(admin: Actor) -> None:
    with pytest.raises(ModelValidationError) as refused:
        agents.save(admin, None, values(GOOD))
    assert mistakes(refused) == "steps[0].call: the agent lacks the server desk. Choose it, or add it first."


def test_a_tool_that_a_listed_server_does_not_have_is_refused(admin: Actor, desk: Server) -> None:
    Server.objects.update(listed_at=timezone.now())
    with pytest.raises(ModelValidationError) as refused:
        agents.save(admin, None, values('{"steps": [{"say": "a"}, {"call": "desk:fly", "args": {}}]}', desk))
    assert "steps[1].call: the server desk has no tool fly. It lists: get_customer" in mistakes(refused)


def test_any_tool_of_a_server_that_was_never_looked_at_is_accepted(admin: Actor, account: Account) -> None:
    fresh = Server.objects.create(account=account, name="fresh", transport="stdio", entry="fresh")
    agents.save(admin, None, values('{"steps": [{"call": "fresh:anything", "args": {}}]}', fresh))


def test_a_prompt_is_not_taken_for_a_tool(admin: Actor, desk: Server) -> None:
    Server.objects.update(listed_at=timezone.now())
    agents.save(admin, None, values('{"steps": [{"prompt": "desk:greeting", "args": {}, "as": "x"}]}', desk))


def test_a_call_inside_arguments_is_data(admin: Actor, desk: Server) -> None:
    text = '{"steps": [{"call": "desk:send_email", "args": {"call": "nowhere:x"}}]}'
    agents.save(admin, None, values(text, desk))


def test_a_server_of_another_account_cannot_be_chosen(admin: Actor, other_account: Account) -> None:
    theirs = Server.objects.create(account=other_account, name="theirs", transport="stdio", entry="x")
    with pytest.raises(ModelValidationError) as refused:
        agents.save(admin, None, values('{"steps": [{"say": "a"}]}', theirs))
    assert "not there any more" in mistakes(refused, "servers")


@pytest.mark.parametrize(
    ("fields", "field"),
    [({"default_mode": "yolo"}, "default_mode"), ({"elicitation_timeout": "soon"}, "elicitation_timeout")],
)
def test_a_wrong_setting_is_refused_at_its_field(admin: Actor, fields: dict[str, str], field: str) -> None:
    with pytest.raises(ModelValidationError) as refused:
        agents.save(admin, None, values('{"steps": [{"say": "a"}]}', **fields))
    assert mistakes(refused, field)


@pytest.mark.parametrize("character", ["\x00", "\x07", "\t", "\n", "\x1b", "\x7f"])
def test_a_name_has_no_control_characters(admin: Actor, desk: Server, character: str) -> None:
    with pytest.raises(ModelValidationError) as refused:
        agents.save(admin, None, replace(values(GOOD, desk), name=f"Mai{character}ler"))
    assert "control characters" in mistakes(refused, "name")


def test_a_name_is_taken_once_but_an_agent_may_keep_its_own(admin: Actor, desk: Server) -> None:
    agent = agents.save(admin, None, values(GOOD, desk))
    agents.save(admin, agent, values(GOOD, desk))
    with pytest.raises(ModelValidationError) as refused:
        agents.save(admin, None, values(GOOD, desk))
    assert "already" in mistakes(refused, "name")


def test_a_refused_change_stores_nothing_of_it(admin: Actor, desk: Server) -> None:
    agent = agents.save(admin, None, values(GOOD, desk))
    with pytest.raises(ModelValidationError):
        agents.save(admin, agent, values("{", desk, default_mode="plan"))
    agent = Agent.objects.get(pk=agent.pk)
    assert (agent.default_mode, agent.definition) == ("autonomous", json.loads(GOOD))
