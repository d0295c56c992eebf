"""Django's admin shows everything and lets nobody pass by the state rules."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.apps import apps
from django.contrib import admin
from django.test import Client

from runs.models import Round, Server, Tool, User

ClientFor = Callable[[User], Client]


@pytest.fixture
def root(db: None, client_for: ClientFor) -> Client:
    return client_for(User.objects.create_superuser("root", password="correct horse battery staple"))


def test_every_model_of_ours_is_registered() -> None:
    ours = {model for name in ("runs", "approvals") for model in apps.get_app_config(name).get_models()}
    assert {model.__name__ for model in ours - admin.site._registry.keys()} == {"Membership"}


def test_every_list_opens(root: Client, make_round: Callable[..., Round]) -> None:
    make_round("approval")
    for model in admin.site._registry:
        path = f"/admin/{model._meta.app_label}/{model._meta.model_name}/"
        assert root.get(path).status_code == 200, path


@pytest.mark.parametrize("model", ["run", "turn", "step", "toolcall", "round", "event", "server", "agent"])
def test_what_has_a_life_of_its_own_is_read_only(
    root: Client, make_round: Callable[..., Round], model: str
) -> None:
    make_round("approval")
    assert root.get(f"/admin/runs/{model}/add/").status_code == 403
    pk = apps.get_model("runs", model).objects.first().pk
    assert root.get(f"/admin/runs/{model}/{pk}/change/").status_code == 200
    assert root.post(f"/admin/runs/{model}/{pk}/change/", {}).status_code == 403
    assert root.post(f"/admin/runs/{model}/{pk}/delete/", {"post": "yes"}).status_code == 403


def test_secrets_are_not_shown(root: Client, desk: Server) -> None:
    Server.objects.filter(pk=desk.pk).update(headers={"Authorization": "Bearer topsecret"})
    assert "topsecret" not in root.get(f"/admin/runs/server/{desk.pk}/change/").content.decode()


def test_an_admin_s_word_on_a_tool_can_be_changed_but_not_the_server_s(root: Client, desk: Server) -> None:
    tool = Tool.objects.get(name="send_email")
    response = root.post(
        f"/admin/runs/tool/{tool.pk}/change/",
        {"risk": "money", "idempotent": "unknown", "replay_allowed": "on", "name": "forged"},
    )
    assert response.status_code == 302
    tool.refresh_from_db()
    assert (tool.risk, tool.replay_allowed, tool.name) == ("money", True, "send_email")
