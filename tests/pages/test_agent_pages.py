"""Agents on their pages: the list, one agent, and the playbook editor."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from django.test import Client

from runs.forms import EXAMPLE
from runs.models import Agent, Run, Server, User

ClientFor = Callable[[User], Client]


@pytest.fixture
def form(desk: Server) -> dict[str, object]:
    return {
        "name": "Mailer",
        "instructions": "",
        "servers": [str(desk.pk)],
        "definition": '{"steps": [{"call": "desk:send_email", "args": {"to": "ann@example.com"}}]}',
        "default_mode": "approval",
        "elicitation_timeout": "",
        "enabled": "on",
    }


def test_the_list_tells_mode_and_servers(agent: Agent, vera: User, client_for: ClientFor) -> None:
    page = client_for(vera).get("/agents").content.decode()
    assert "Customer success" in page
    assert "Mode approval · desk" in page
    assert "Add an agent" not in page


def test_an_agent_shows_servers_playbook_and_recent_runs(
    agent: Agent, make_run: Callable[..., Run], alice: User, client_for: ClientFor
) -> None:
    run = make_run("Send the update")
    page = client_for(alice).get(f"/agents/{agent.pk}").content.decode()
    assert "3 tools" in page
    assert f"/runs/{run.pk}" in page
    assert "&quot;say&quot;: &quot;Hello.&quot;" in page
    assert f"/runs/start?agent={agent.pk}" in page


def test_the_editor_offers_an_example_that_can_be_saved(
    account: object, ada: User, client_for: ClientFor
) -> None:
    client = client_for(ada)
    assert "Which segment first?" in client.get("/agents/new").content.decode()
    response = client.post(
        "/agents/new", {"name": "First", "definition": EXAMPLE, "default_mode": "plan", "enabled": "on"}
    )
    assert response.status_code == 302
    assert Agent.objects.get().definition == json.loads(EXAMPLE)


def test_an_admin_creates_and_changes_an_agent(
    form: dict[str, object], ada: User, client_for: ClientFor
) -> None:
    client = client_for(ada)
    created = client.post("/agents/new", form)
    agent = Agent.objects.get(name="Mailer")
    assert created["Location"] == f"/agents/{agent.pk}"
    client.post(f"/agents/{agent.pk}/edit", {**form, "name": "Mailer 2"})
    agent.refresh_from_db()
    assert agent.name == "Mailer 2"


def test_a_wrong_playbook_is_refused_with_paths_and_the_typed_text_stays(
    form: dict[str, object], ada: User, client_for: ClientFor
) -> None:
    typed = '{"steps": [{"say": 1}, {"jump": "moon"}]}'
    response = client_for(ada).post("/agents/new", {**form, "definition": typed})
    page = response.content.decode()
    assert response.status_code == 422
    assert "steps[0]" in page
    assert "steps[1]" in page
    assert "{&quot;jump&quot;: &quot;moon&quot;}" in page
    assert 'href="#id_definition"' in page
    assert 'value="Mailer"' in page
    assert not Agent.objects.exists()


def test_a_syntax_error_is_shown_with_line_and_column(
    form: dict[str, object], ada: User, client_for: ClientFor
) -> None:
    response = client_for(ada).post(
        "/agents/new", {**form, "definition": '{"steps": [\n  {"say": "a"},,\n]}'}
    )
    assert "Line 2, column 16" in response.content.decode()


def test_a_refused_change_keeps_the_agent_and_its_heading(
    agent: Agent, form: dict[str, object], ada: User, client_for: ClientFor
) -> None:
    page = client_for(ada).post(f"/agents/{agent.pk}/edit", {**form, "definition": "{"}).content.decode()
    assert "Edit Customer success" in page
    agent.refresh_from_db()
    assert agent.name == "Customer success"


def test_an_operator_cannot_edit_agents(
    agent: Agent, form: dict[str, object], alice: User, client_for: ClientFor
) -> None:
    client = client_for(alice)
    for path in ("/agents/new", f"/agents/{agent.pk}/edit"):
        assert client.get(path).status_code == 403
        assert client.post(path, form).status_code == 403
    assert not Agent.objects.filter(name="Mailer").exists()


def test_another_account_s_agent_is_not_there(agent: Agent, otto: User, client_for: ClientFor) -> None:
    assert client_for(otto).get(f"/agents/{agent.pk}").status_code == 404


def test_an_agent_s_name_is_never_markup(agent: Agent, alice: User, client_for: ClientFor) -> None:
    Agent.objects.update(name="<b>bold</b>\u200b")
    for path in ("/agents", f"/agents/{agent.pk}"):
        page = client_for(alice).get(path).content.decode()
        assert "<b>bold</b>" not in page
        assert "&lt;b&gt;bold&lt;/b&gt;⟨U+200B⟩" in page
