"""Fills a new installation: one admin, a key and the agents of the benchmarks. A process of its own, because settings
are read once: `M3_DATA_DIR=... python -m benchmarks.prepare` prints the login, the key and the agents' ids as JSON.

The agents have no MCP server, so that no figure contains the start of somebody else's process.
"""

from __future__ import annotations

import json
import os
import secrets
from typing import Any

QUESTION = {
    "question": "Which segment?",
    "header": "Segment",
    "multiSelect": False,
    "options": [{"label": "enterprise"}, {"label": "mid-market"}],
}
NEXT_LINE = "Thank you. I go on with this segment."
"""The first line of a run after its answer."""

PLAYBOOKS: dict[str, Any] = {
    "asks": {
        "steps": [{"ask": {"questions": [QUESTION]}, "as": "a"}, {"say": NEXT_LINE}, {"finish": "Done."}]
    },
    "ends": {"steps": [{"say": "Nobody is needed."}, {"finish": "Done."}]},
}


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "m3web.settings")
    import django

    django.setup()
    from django.core.management import call_command

    from runs import access, agents, keys
    from runs.models import Account, Membership, Role, User

    call_command("migrate", verbosity=0, interactive=False)
    password = secrets.token_urlsafe(12)
    user = User.objects.create_user(username="ada", password=password)
    Membership.objects.create(
        account=Account.objects.create(name="Benchmarks", slug="benchmarks"), user=user, role=Role.ADMIN
    )
    actor = access.actor_for(user)
    ids = {
        name: agents.save(actor, None, agents.AgentValues(name=name, definition=json.dumps(playbook))).pk
        for name, playbook in PLAYBOOKS.items()
    }
    key = keys.create(actor, "benchmarks").secret
    print(json.dumps({"username": user.username, "password": password, "key": key, "agents": ids}))


if __name__ == "__main__":
    main()
