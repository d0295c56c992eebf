"""What an account's ledger is told of its servers: where they are and whether they are trusted, never their secrets."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

from runs import audit
from runs.canonical import digest
from runs.models import LedgerEntry, Server, User
from runs.redaction import redact_command, redact_urls

_SECRETS = "secrets"


def described(server: Server) -> dict[str, Any]:
    """A server as it can be used: its name, address, trust, and which secrets it has, by name.

    What the secrets are goes no further than into a comparison: `note_change` leaves their digest out.
    """
    own_command = shlex.join(redact_command((server.command, *map(str, server.args))))
    return {
        "name": server.name,
        "transport": server.transport,
        "address": own_command if server.command else redact_urls(server.address),
        "identity": server.identity,
        "trusted": server.trusted,
        "headers": sorted(server.headers),
        "variables": sorted(server.variables),
        _SECRETS: digest([server.headers, server.variables]),
    }


def note_change(server: Server, actor: User | None, before: Mapping[str, Any] | None) -> LedgerEntry | None:
    """Tell of a server that was registered (`before` None) or changed; nothing if it is as it was described before."""
    after = described(server)
    if before == after:
        return None
    facts = {**after, "secrets_changed": before is not None and before[_SECRETS] != after[_SECRETS]}
    del facts[_SECRETS]
    action = "server.registered" if before is None else "server.changed"
    return audit.note(server.account_id, actor, action, f"server {server.pk}", facts)


def note_removal(server_id: int, server: Server, actor: User) -> LedgerEntry:
    """Tell of a server that was removed; `server` is the row that was deleted, `server_id` its number."""
    facts = {"name": server.name, "identity": server.identity}
    return audit.note(server.account_id, actor, "server.removed", f"server {server_id}", facts)
