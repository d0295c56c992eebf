"""`manage.py account` makes the first account and its admin, with nobody at the keyboard if need be."""

from __future__ import annotations

import getpass
import io
import sys

import pytest
from django.core.management import CommandError, call_command

from m3web.management.commands.account import PASSWORD_VARIABLE
from runs import access
from runs.models import Account, Membership, Role, User
from tests.people import PASSWORD, person

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def nothing_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(PASSWORD_VARIABLE, raising=False)
    monkeypatch.setattr(sys, "stdin", io.StringIO(""))


@pytest.fixture
def password_in_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(PASSWORD_VARIABLE, PASSWORD)


def account(name: str = "Acme", admin: str = "ada", **options: bool) -> str:
    said = io.StringIO()
    call_command("account", name=name, admin=admin, stdout=said, **options)
    return said.getvalue()


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_the_new_user_signs_in_with_the_password_and_administers_the_account(
    password_in_environment: None,
) -> None:
    assert account() == "ada is admin of Acme.\n"

    ada = User.objects.get(username="ada")
    assert ada.check_password(PASSWORD)
    actor = access.actor_for(ada)
    assert (actor.account.name, actor.role) == ("Acme", Role.ADMIN)
    assert not ada.is_superuser


def test_the_password_may_be_piped_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(f"{PASSWORD}\n"))
    account()
    assert User.objects.get(username="ada").check_password(PASSWORD)


def test_at_a_terminal_the_password_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", Terminal())
    monkeypatch.setattr(getpass, "getpass", lambda prompt: PASSWORD)
    account()
    assert User.objects.get(username="ada").check_password(PASSWORD)


def test_two_different_entries_create_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", Terminal())
    entries = iter([PASSWORD, f"{PASSWORD}!"])
    monkeypatch.setattr(getpass, "getpass", lambda prompt: next(entries))
    with pytest.raises(CommandError, match="differ"):
        account()
    assert not User.objects.exists()
    assert not Account.objects.exists()


def test_without_a_password_nothing_is_created_and_the_way_out_is_named() -> None:
    with pytest.raises(CommandError, match=PASSWORD_VARIABLE):
        account()
    assert not User.objects.exists()
    assert not Account.objects.exists()


@pytest.mark.parametrize("password", ["short", "password1234"])
def test_a_weak_password_is_refused(monkeypatch: pytest.MonkeyPatch, password: str) -> None:
    monkeypatch.setenv(PASSWORD_VARIABLE, password)
    with pytest.raises(CommandError):
        account()
    assert not User.objects.exists()


def test_running_it_again_changes_nothing_and_needs_no_password(
    password_in_environment: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    account()
    monkeypatch.delenv(PASSWORD_VARIABLE)
    account()
    assert User.objects.get().check_password(PASSWORD)
    assert Account.objects.count() == Membership.objects.count() == 1


def test_an_operator_of_the_account_becomes_its_admin(password_in_environment: None) -> None:
    account(admin="ada")
    person("bob", Account.objects.get(), Role.OPERATOR)
    account(admin="bob")
    assert access.actor_for(User.objects.get(username="bob")).role is Role.ADMIN


def test_somebody_of_another_account_is_refused_and_the_new_account_is_not_made(
    password_in_environment: None,
) -> None:
    account(name="Acme")
    with pytest.raises(CommandError, match="belongs to Acme"):
        account(name="Globex")
    assert Account.objects.count() == 1


def test_a_superuser_may_use_the_admin_site(password_in_environment: None) -> None:
    account(superuser=True)
    ada = User.objects.get()
    assert ada.is_staff
    assert ada.is_superuser


@pytest.mark.parametrize("name", ["", "!!!", "x" * 121])
def test_a_name_that_cannot_be_used_is_refused(password_in_environment: None, name: str) -> None:
    with pytest.raises(CommandError, match="name of an account"):
        account(name=name)
    assert not User.objects.exists()


def test_a_name_that_looks_like_another_is_refused(password_in_environment: None) -> None:
    account(name="Acme")
    with pytest.raises(CommandError, match="too close"):
        account(name="ACME", admin="bob")


@pytest.mark.parametrize("username", ["", "a b", "x" * 200])
def test_a_user_name_that_cannot_be_used_is_refused(password_in_environment: None, username: str) -> None:
    with pytest.raises(CommandError):
        account(admin=username)
    assert not Account.objects.exists()
