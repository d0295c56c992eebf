"""Who acts in which account, and what they can see there (house style 9)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import AnonymousUser
from django.db import models

from runs import access
from runs.access import Actor
from runs.errors import NotAllowed, NotFound
from runs.models import Account, Agent, Membership, Role, Round, Run, Server, Step, Tool, ToolCall, Turn, User

Acting = Callable[[User], Actor]


@pytest.mark.parametrize(
    ("role", "allowed"),
    [
        (Role.VIEWER, [Role.VIEWER]),
        (Role.OPERATOR, [Role.VIEWER, Role.OPERATOR]),
        (Role.ADMIN, [Role.VIEWER, Role.OPERATOR, Role.ADMIN]),
    ],
)
def test_each_role_may_do_what_the_ones_before_it_may(
    account: Account, alice: User, role: Role, allowed: list[Role]
) -> None:
    actor = Actor(user=alice, account=account, role=role)

    assert [each for each in Role if actor.may(each)] == allowed
    assert (actor.can_decide, actor.can_administer) == (Role.OPERATOR in allowed, Role.ADMIN in allowed)


def test_a_role_that_is_missing_is_named_with_who_can_give_it(acting: Acting, vera: User) -> None:
    with pytest.raises(NotAllowed, match=r"needs the role operator; you are viewer\. Ask an admin of Acme"):
        acting(vera).require(Role.OPERATOR)


def test_a_person_acts_in_the_first_account_they_joined_or_in_the_one_named(
    alice: User, account: Account, other_account: Account
) -> None:
    Membership.objects.create(account=other_account, user=alice, role="viewer")

    assert access.actor_for(alice).account == account
    there = access.actor_for(alice, other_account.pk)
    assert (there.account, there.role) == (other_account, Role.VIEWER)


def test_nobody_acts_in_an_account_that_is_not_theirs(alice: User, other_account: Account) -> None:
    with pytest.raises(NotAllowed):
        access.actor_for(alice, other_account.pk)


def test_nobody_acts_without_an_account_a_login_or_an_active_one(alice: User) -> None:
    User.objects.create_user("newcomer")
    alice.is_active = False

    for user in (User.objects.get(username="newcomer"), AnonymousUser(), alice):
        with pytest.raises(NotAllowed, match="no account"):
            access.actor_for(user)


@pytest.fixture
def ours(make_round: Callable[..., Round], desk: Server) -> dict[type[models.Model], Any]:
    """One row of every kind that has an account, directly or by way of another row."""
    round_ = make_round()
    return {
        Agent: round_.run.agent,
        Run: round_.run,
        Turn: round_.turn,
        Step: round_.step,
        ToolCall: round_.step.call,
        Round: round_,
        Server: desk,
        Tool: desk.tools.first(),
    }


KINDS = [Agent, Run, Turn, Step, ToolCall, Round, Server, Tool]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_a_row_is_there_for_its_account_and_not_there_for_another(
    ours: dict[type[models.Model], Any], acting: Acting, vera: User, otto: User, kind: type[Any]
) -> None:
    row = ours[kind]

    assert access.get(acting(vera), kind.objects.all(), pk=row.pk) == row
    assert not access.visible(acting(otto), kind.objects.all()).exists()
    with pytest.raises(NotFound) as theirs:
        access.get(acting(otto), kind.objects.all(), pk=row.pk)
    assert str(theirs.value) == f"There is no such {kind._meta.verbose_name} in Globex."


@pytest.mark.parametrize("wanted", ["x", "", "9" * 40, -1, None, "\x00"])
def test_an_id_that_cannot_be_one_is_just_not_there(acting: Acting, alice: User, wanted: Any) -> None:
    with pytest.raises(NotFound, match="no such run in Acme"):
        access.get(acting(alice), Run.objects.all(), pk=wanted)
    with pytest.raises(NotFound):
        access.get(acting(alice), Turn.objects.all(), pk=wanted)
