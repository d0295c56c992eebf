"""The demo installation: filled once, open in demo mode alone."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest
from django.conf import LazySettings
from django.contrib.auth import authenticate
from django.test import RequestFactory

from m3web import config, demo
from runs.models import Account, Agent, Membership, Role, Run, Server, User
from tests.people import person

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def demo_mode(settings: LazySettings, tmp_path: Path) -> None:
    servers = config.demo_servers(Path(settings.BASE_DIR), tmp_path)
    settings.M3 = dataclasses.replace(settings.M3, data_dir=tmp_path, demo=True, stdio_servers=servers)


def signs_in(name: str, password: str) -> bool:
    return authenticate(RequestFactory().get("/"), username=name, password=password) is not None


def test_a_first_start_brings_people_servers_agents_and_one_run_for_every_kind_of_pause() -> None:
    demo.seed()

    account = Account.objects.get()
    roles = dict(Membership.objects.values_list("user__username", "role"))
    assert roles == {"alice": "operator", "bob": "operator", "ada": "admin", "vera": "viewer"}
    assert set(Server.objects.values_list("name", flat=True)) == {"shipping", "desk"}
    assert all(server.identity for server in Server.objects.all())
    assert Agent.objects.filter(account=account).count() == 3
    assert Run.objects.filter(status="queued", human_input="managed").count() == 5


def test_the_logins_that_are_shown_work() -> None:
    demo.seed()

    assert all(signs_in(name, password) for name, _, password in demo.logins())


def test_passwords_are_random_for_every_installation(settings: LazySettings, tmp_path: Path) -> None:
    here = {password for _, _, password in demo.logins()}
    settings.M3 = dataclasses.replace(settings.M3, data_dir=tmp_path / "other")
    there = {password for _, _, password in demo.logins()}

    assert len(here | there) == 8
    assert min(map(len, here)) >= 12


def test_a_second_start_changes_nothing_that_people_have_changed() -> None:
    demo.seed()
    Agent.objects.filter(name="Logistics").update(instructions="Ours now.")
    Run.objects.all().delete()
    Server.objects.get(name="desk").delete()
    before = list(User.objects.order_by("pk").values())

    demo.seed()

    assert list(User.objects.order_by("pk").values()) == before
    assert Agent.objects.get(name="Logistics").instructions == "Ours now."
    assert not Run.objects.exists()
    assert not Server.objects.filter(name="desk").exists()


def test_without_the_file_of_logins_the_next_start_makes_new_ones_that_work() -> None:
    demo.seed()
    old = {name: password for name, _, password in demo.logins()}
    demo.password_file().unlink()

    demo.seed()

    assert not signs_in("alice", old["alice"])
    assert all(signs_in(name, password) for name, _, password in demo.logins())


def test_a_start_without_demo_mode_closes_the_logins_and_the_next_one_with_it_opens_them() -> None:
    demo.seed()
    passwords = json.loads(demo.password_file().read_text())

    demo.close_logins()
    assert not signs_in("alice", passwords["alice"])

    demo.seed()
    assert signs_in("alice", passwords["alice"])


def test_only_the_demos_own_logins_are_closed(account: Account) -> None:
    demo.seed()
    chef = person("chef", Account.objects.get(slug="demo"), Role.ADMIN)
    ours = User.objects.create_user("outsider", password="a long password")
    Membership.objects.create(account=account, user=ours, role="admin")

    demo.close_logins()

    active = set(User.objects.filter(is_active=True).values_list("username", flat=True))
    assert active == {chef.username, ours.username}


def test_an_installation_that_never_was_a_demo_keeps_all_its_logins(alice: User, account: Account) -> None:
    Account.objects.filter(pk=account.pk).update(slug="demo")

    demo.close_logins()

    alice.refresh_from_db()
    assert alice.is_active
