"""Removing an end user and using them at the same moment: one of both comes first, and the other sees it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.db import connection

from approvals import end_users as with_rules
from approvals.models import Policy
from runs import end_users
from runs.access import Actor, actor_for
from runs.errors import StateConflict
from runs.models import Agent, EndUser, Run, Server, User
from tests.services.holding import elsewhere, somebody_does
from tests.services.policy_helpers import grant_as_shown, rule

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(connection.vendor != "postgresql", reason="on SQLite writers take turns"),
]
MakeRun = Callable[..., Run]


@pytest.fixture
def admin(ada: User) -> Actor:
    return actor_for(ada)


def is_present(user_id: str) -> bool:
    return EndUser.objects.filter(user_id=user_id, removed_at=None).exists()


def test_a_run_that_is_being_started_keeps_its_end_user(
    admin: Actor, make_run: MakeRun, customer: EndUser
) -> None:
    with somebody_does(lambda: make_run(user_id="cust_123")), pytest.raises(StateConflict, match="1 runs"):
        with_rules.remove(admin, "cust_123")
    assert is_present("cust_123")


@pytest.mark.parametrize("was_used", [False, True])
def test_whoever_is_being_removed_comes_back_with_the_next_run(
    admin: Actor, make_run: MakeRun, customer: EndUser, was_used: bool
) -> None:
    if was_used:
        Run.objects.filter(pk=make_run(user_id="cust_123").pk).update(status="finished", outcome="completed")
    with somebody_does(lambda: with_rules.remove(admin, "cust_123")):
        run = make_run(user_id="cust_123")
    assert is_present("cust_123")
    run.refresh_from_db()
    assert run.end_user is not None
    assert run.end_user.user_id == "cust_123"


def test_a_rule_for_somebody_who_is_being_removed_can_be_removed_with_them(
    admin: Actor, desk: Server, agent: Agent, customer: EndUser
) -> None:
    wanted = rule(desk.account, end_user=customer)
    elsewhere(lambda: with_rules.remove(admin, "cust_123"))

    grant_as_shown(admin, wanted)

    assert is_present("cust_123")
    with_rules.remove(admin, "cust_123")
    assert not Policy.objects.exists()


def test_a_rule_that_is_being_made_is_removed_with_its_end_user(
    admin: Actor, desk: Server, customer: EndUser
) -> None:
    def make() -> None:
        owner = end_users.end_user(desk.account, "cust_123")
        grant_as_shown(admin, rule(desk.account, end_user=owner))

    with somebody_does(make):
        with_rules.remove(admin, "cust_123")
    assert not Policy.objects.exists()
