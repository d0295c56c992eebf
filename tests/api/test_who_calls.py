"""Who the API listens to: a signed-in member of an account, and a change only with the CSRF token."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable

import pytest
from django.contrib.sessions.models import Session
from django.test import Client
from django.utils import timezone

from runs import keys
from runs.models import Account, Role, Round, User
from tests.api.conftest import ALLOW, Caller

Calling = Callable[[User], Caller]
MakeRound = Callable[..., Round]


@pytest.mark.parametrize(
    ("method", "path"),
    [("GET", "runs/"), ("POST", "runs/"), ("GET", "rounds/abc"), ("POST", "rounds/abc/respond")],
)
def test_nobody_gets_a_401_with_a_challenge(nobody: Caller, method: str, path: str) -> None:
    response = nobody.send(method, path, {})

    assert response.status_code == 401
    assert response["WWW-Authenticate"] == 'Bearer realm="api"'
    assert response.json()["error"]["error_code"] == "not_authenticated"


def test_an_expired_session_is_a_401_that_says_to_sign_in(
    calling: Calling, alice: User, make_round: MakeRound
) -> None:
    pending, caller = make_round(), calling(alice)
    Session.objects.update(expire_date=timezone.now() - dt.timedelta(seconds=1))

    response = caller.respond(pending.pk, ALLOW)

    assert response.status_code == 401
    assert "Sign in" in response.json()["error"]["message"]
    assert Round.objects.pending().filter(pk=pending.pk).exists()


def test_a_person_who_was_disabled_is_nobody(calling: Calling, alice: User) -> None:
    caller = calling(alice)
    User.objects.update(is_active=False)

    assert caller.get("runs/").status_code == 401


def test_a_person_without_an_account_is_refused(calling: Calling, db: None) -> None:
    stray = User.objects.create_user("stray")

    response = calling(stray).get("runs/")

    assert response.status_code == 403
    assert response.json()["error"]["error_code"] == "not_allowed"


def test_a_change_needs_the_csrf_token_and_a_read_does_not(alice: User, make_round: MakeRound) -> None:
    pending = make_round()
    client = Client(enforce_csrf_checks=True)
    client.force_login(alice)
    path = f"/api/v2/rounds/{pending.pk}"
    body = json.dumps({"responses": ALLOW, "idempotency_key": "k"})

    def respond(token: str) -> int:
        headers = {"X-CSRFToken": token} if token else {}
        return client.post(
            f"{path}/respond", body, content_type="application/json", headers=headers
        ).status_code

    assert client.get(path).status_code == 200
    refused = client.post(f"{path}/respond", body, content_type="application/json")
    assert (refused.status_code, refused.json()["error"]["error_code"]) == (403, "csrf_failed")
    token = "t" * 32
    client.cookies["csrftoken"] = token
    assert respond("f" * 32) == 403
    assert Round.objects.pending().filter(pk=pending.pk).exists()
    assert respond(token) == 200


@pytest.fixture
def with_key(account: Account) -> Callable[..., Caller]:
    """A caller that sends an API key of the account and nothing else."""

    def with_key(role: Role = Role.OPERATOR, *, secret: str | None = None) -> Caller:
        secret = secret or keys.issue(account, f"for {role}", role=role).secret
        return Caller(Client(enforce_csrf_checks=True, headers={"Authorization": f"Bearer {secret}"}))

    return with_key


def test_a_key_decides_without_a_cookie_and_under_its_own_name(
    with_key: Callable[..., Caller], make_round: MakeRound
) -> None:
    pending = make_round()

    response = with_key().respond(pending.pk, ALLOW)

    assert response.status_code == 200
    assert response.json()["decided_by"].startswith("for operator (API key ")
    assert not response.cookies, "a program must not start to carry a session"


def test_a_read_only_key_reads_and_changes_nothing(
    with_key: Callable[..., Caller], make_round: MakeRound
) -> None:
    pending, caller = make_round(), with_key(Role.VIEWER)

    assert caller.get(f"rounds/{pending.pk}").status_code == 200
    assert caller.respond(pending.pk, ALLOW).status_code == 403
    assert Round.objects.pending().filter(pk=pending.pk).exists()


def test_a_wrong_key_is_a_401_also_beside_a_valid_session(calling: Calling, alice: User) -> None:
    response = calling(alice).client.get("/api/v2/runs/", headers={"Authorization": "Bearer m3_no_key"})

    assert (response.status_code, response["WWW-Authenticate"]) == (401, 'Bearer realm="api"')
    assert "API key" in response.json()["error"]["message"]


def test_an_address_that_there_is_not_is_a_404_whatever_the_key(calling: Calling, alice: User) -> None:
    for key in ({}, {"Authorization": "Bearer m3_no_key"}):
        assert calling(alice).client.get("/api/v2/nothing/", headers=key).status_code == 404


def test_a_key_of_another_account_sees_nothing_of_this_one(make_round: MakeRound, otto: User) -> None:
    elsewhere = Account.objects.exclude(pk=make_round().account_id).get()
    secret = keys.issue(elsewhere, "theirs", role=Role.ADMIN).secret
    caller = Caller(Client(headers={"Authorization": f"Bearer {secret}"}))

    assert caller.get(f"rounds/{Round.objects.get().pk}").status_code == 404
    assert caller.get("rounds/").json()["data"] == []
