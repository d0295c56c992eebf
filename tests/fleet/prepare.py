"""`python -m tests.fleet.prepare`: the tables, alice, an admin's key and the agents of these tests; prints the key."""

from __future__ import annotations

import json
import os
from typing import Any

import django

PASSWORD = "correct-horse-battery"

QUESTION = {"question": "Which?", "header": "Pick", "options": [{"label": "one"}, {"label": "two"}]}
TAG = {"tag": "{{ message }}"}
HAUL = {"until": "{{ metadata.until }}", **TAG}

AGENTS: dict[str, list[dict[str, Any]]] = {
    "asks": [
        {"ask": {"questions": [QUESTION]}, "as": "a"},
        {"call": "parcels:label", "args": TAG, "as": "l"},
        {"finish": "{{ l.status }}"},
    ],
    "labels": [{"call": "parcels:label", "args": TAG, "as": "l"}, {"finish": "{{ l.status }}"}],
    "books": [{"call": "parcels:book", "args": TAG, "as": "b"}, {"finish": "{{ b.status }}"}],
    "hauls": [{"call": "parcels:haul", "args": HAUL, "as": "h"}, {"finish": "{{ h.status }}"}],
    "books of old": [{"call": "old:book", "args": TAG, "as": "b"}, {"finish": "{{ b.status }}"}],
}
"""Each plays one kind of pause or of call; its message is the tag under which the server counts."""


def main() -> None:
    from django.core.management import call_command

    from runs import keys
    from runs.binding import identity_of
    from runs.models import Account, Agent, Role, Server
    from tests.people import person

    call_command("migrate", verbosity=0, interactive=False)
    account = Account.objects.create(name="Acme", slug="acme")
    alice = person("alice", account, Role.OPERATOR)
    alice.set_password(PASSWORD)
    alice.save()
    servers = []
    for name in ("parcels", "old"):
        server = Server(account=account, name=name, transport="stdio", entry=name, trusted=True)
        server.identity = identity_of(server)
        server.save()
        servers.append(server)
    for name, steps in AGENTS.items():
        agent = Agent.objects.create(account=account, name=name, definition={"steps": steps})
        agent.servers.add(*servers)
    agents = dict(Agent.objects.values_list("name", "pk"))
    print(json.dumps({"key": keys.issue(account, "tests", role=Role.ADMIN).secret, "agents": agents}))


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "m3web.settings")
    django.setup()
    main()
