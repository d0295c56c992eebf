"""A demo installation: three people, two servers, three agents, and one run for every kind of pause.

Only `seed()` fills it, only in demo mode, and only what is missing; passwords are random per installation. The
logins open in demo mode alone: a later start without it closes them.
"""

from __future__ import annotations

import json
import secrets
from pathlib import Path

from django.conf import settings
from django.db import transaction
from django.db.models import QuerySet

from m3web.config import secret_file
from m3web.demo.playbooks import AGENTS, FIRST_RUNS
from runs import control, keys
from runs.binding import identity_of
from runs.models import Account, Agent, ApiKey, Membership, Role, Server, Tool, Transport, User
from runs.risk import Risk
from runs.run_states import HumanInput

PEOPLE = [("alice", Role.OPERATOR), ("bob", Role.OPERATOR), ("ada", Role.ADMIN), ("vera", Role.VIEWER)]
SLUG = "demo"
"""Of the one account that demo mode fills."""

KEY_NAME = "demo"


def password_file() -> Path:
    return Path(settings.M3.data_dir) / "demo_logins.json"


def logins() -> list[tuple[str, str, str]]:
    """(user name, role, password) of every demo login; the file is made on first use, readable by its owner only."""
    text = secret_file(
        password_file(), lambda: json.dumps({name: secrets.token_urlsafe(9) for name, _ in PEOPLE})
    )
    passwords = json.loads(text)
    return [(name, role.value, passwords[name]) for name, role in PEOPLE]


def key_file() -> Path:
    return Path(settings.M3.data_dir) / "demo_api_key"


def api_key() -> str:
    """The demo's API key; `seed` keeps it valid."""
    return key_file().read_text().strip()


@transaction.atomic
def seed() -> None:
    """Fill an empty demo installation; one that was filled before is left as people have changed it.

    Logins whose file is gone get new passwords, because nobody could know the old ones.
    """
    known = password_file().exists()
    people = _people()
    if Account.objects.filter(slug=SLUG).exists():
        people.update(is_active=True)
        if not known:
            _renew_passwords(people)
    else:
        _fill()
    _keep_key_valid()


def _fill() -> None:
    account = Account.objects.create(name="Northwind", slug=SLUG)
    for name, role, password in logins():
        user = User.objects.create_user(username=name, password=password)
        Membership.objects.create(account=account, user=user, role=role)
    servers = {name: _server(account, name) for name in ("shipping", "desk")}
    # The server only says that a refund destroys; that it is about money is an admin's word.
    Tool.objects.create(server=servers["desk"], name="refund", risk=Risk.MONEY.value, present=False)
    for spec in AGENTS:
        agent = Agent.objects.create(
            account=account,
            name=spec.name,
            instructions=spec.instructions,
            default_mode=spec.mode.value,
            definition=dict(spec.playbook),
        )
        agent.servers.set([servers[name] for name in spec.servers])
    for agent_name, message, mode in FIRST_RUNS:
        agent = Agent.objects.get(account=account, name=agent_name)
        control.create_run(
            agent,
            control.Submission(
                message=message,
                mode=mode,
                human_input=HumanInput.MANAGED,
                user_id="cust_123",
                started_by=User.objects.get(username="alice"),
            ),
        )


def close_logins() -> None:
    """Outside of demo mode nobody signs in with a demo login; whatever the demo left behind stays readable."""
    if password_file().exists():
        _people().update(is_active=False)
        for key in _keys():
            keys.invalidate(key)


def _keep_key_valid() -> None:
    """A key that was revoked, or whose file is gone, is replaced: nobody could use it."""
    if key_file().exists() and keys.find(api_key()) is not None:
        return
    for key in _keys():
        keys.invalidate(key)
    key_file().unlink(missing_ok=True)
    made = keys.issue(Account.objects.get(slug=SLUG), KEY_NAME, role=Role.ADMIN)
    secret_file(key_file(), lambda: made.secret)


def _keys() -> QuerySet[ApiKey]:
    return ApiKey.objects.filter(account__slug=SLUG, name=KEY_NAME, revoked_at=None)


def _people() -> QuerySet[User]:
    return User.objects.filter(
        username__in=[name for name, _ in PEOPLE],
        pk__in=Membership.objects.filter(account__slug=SLUG).values("user"),
    )


def _renew_passwords(people: QuerySet[User]) -> None:
    passwords = {name: password for name, _, password in logins()}
    for user in people:
        user.set_password(passwords[user.username])
        user.save(update_fields=["password"])


def _server(account: Account, name: str) -> Server:
    server = Server(account=account, name=name, transport=Transport.STDIO.value, entry=name, trusted=True)
    server.identity = identity_of(server)
    server.save()
    return server
