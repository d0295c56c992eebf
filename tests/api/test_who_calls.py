"""Who the API listens to: a signed-in member of an account, and a change only with the CSRF token."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable

import pytest
from django.contrib.sessions.models import Session
from django.test import Client
from django.utils import timezone

from runs.models import Round, User
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
    assert response["WWW-Authenticate"] == 'Session realm="api"'
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
