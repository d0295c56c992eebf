"""A slash too many or too few never hides a page, and never turns a decision into a read."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.test import Client

from runs.models import Round, User


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ("/runs/", "/runs"),
        ("/policies/?q=a", "/policies?q=a"),
        ("/login/", "/login"),
        ("/rounds", "/rounds/"),
    ],
)
def test_a_page_is_found_with_the_other_slash(
    client_for: Callable[[User], Client], alice: User, asked: str, found: str
) -> None:
    response = client_for(alice).get(asked)
    assert response.status_code == 302
    assert response.headers["Location"] == found


@pytest.mark.parametrize(
    "asked", ["/nothing", "/nothing/", "/runs//", "/%2fevil.example/", "/x//evil.example/"]
)
def test_what_is_nowhere_stays_not_found(
    client_for: Callable[[User], Client], alice: User, asked: str
) -> None:
    assert client_for(alice).get(asked).status_code == 404


def test_a_decision_sent_to_the_wrong_address_is_refused_and_not_redirected(
    client_for: Callable[[User], Client], alice: User, make_round: Callable[..., Round]
) -> None:
    round_ = make_round()
    response = client_for(alice).post(f"/rounds/{round_.pk}/decide/", {"decision": "allow"})
    assert response.status_code == 404
    round_.refresh_from_db()
    assert round_.status == "pending"
