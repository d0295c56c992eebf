"""API keys on their page: shown once, listed by their public part, revoked."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from django.test import Client

from runs import keys
from runs.models import Account, ApiKey, Role, User

ClientFor = Callable[[User], Client]


def test_a_new_key_is_shown_once_and_works(ada: User, client_for: ClientFor) -> None:
    client = client_for(ada)
    made = client.post("/keys", {"name": "billing", "role": "operator", "days": "30"})
    (secret,) = re.findall(r"m3_[0-9a-f]+_[\w-]{20,}", made.content.decode())
    key = keys.find(secret)
    assert key is not None
    assert (key.name, key.role, key.created_by) == ("billing", "operator", ada)
    assert "no-store" in made["Cache-Control"]
    page = client.get("/keys").content.decode()
    assert f"m3_{key.public_id}_…" in page
    assert secret not in page


def test_a_refused_name_keeps_what_was_typed(ada: User, account: Account, client_for: ClientFor) -> None:
    keys.issue(account, "billing", role=Role.VIEWER)
    response = client_for(ada).post("/keys", {"name": "billing", "role": "viewer", "days": "7"})
    assert response.status_code == 422
    page = response.content.decode()
    assert "There is a key named billing already" in page
    assert 'value="7"' in page


def test_a_revoked_key_moves_to_the_ended_ones(ada: User, account: Account, client_for: ClientFor) -> None:
    key = keys.issue(account, "billing", role=Role.VIEWER).key
    page = client_for(ada).post(f"/keys/{key.pk}/revoke", follow=True).content.decode()
    assert "The key billing is revoked" in page
    assert "1 that are no longer valid" in page
    assert "No API keys yet" in page


@pytest.mark.parametrize("name", ["alice", "vera"])
def test_only_admins_see_keys(
    name: str, request: pytest.FixtureRequest, account: Account, client_for: ClientFor
) -> None:
    key = keys.issue(account, "billing", role=Role.VIEWER).key
    client = client_for(request.getfixturevalue(name))
    assert client.get("/keys").status_code == 403
    assert client.post(f"/keys/{key.pk}/revoke").status_code == 403
    assert "API keys" not in client.get("/").content.decode()


def test_a_key_of_another_account_looks_like_none(ada: User, otto: User, client_for: ClientFor) -> None:
    elsewhere = Account.objects.exclude(pk=ada.memberships.get().account_id).get()
    key = keys.issue(elsewhere, "theirs", role=Role.VIEWER).key
    client = client_for(ada)
    assert "theirs" not in client.get("/keys").content.decode()
    assert client.post(f"/keys/{key.pk}/revoke").status_code == 404
    assert ApiKey.objects.get().revoked_at is None
