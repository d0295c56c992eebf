"""Changing parts of a server, for callers that send only what changes (the API); the page sends the whole form."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from django.db import transaction

from runs import servers
from runs.access import Actor, get
from runs.models import Role, Server
from runs.servers import ServerValues

KEPT: Final = "********"
"""A secret value as it is shown. Sent back, it stands for the one that is stored."""


@transaction.atomic
def change(actor: Actor, server_id: int, changes: Mapping[str, Any], *, via: str) -> Server:
    """Change some of a server's values, named as in ServerValues; `headers` and `variables` as a whole.

    An `entry` or a `url` is the new address. A KEPT value keeps the stored one, at the same address only: a secret must
    never travel to another host than it was entered for. None for all of them forgets them.
    Raises what `runs.servers.update` raises.
    """
    actor.require(Role.ADMIN)
    server = get(actor, Server.objects.select_for_update(no_key=True), pk=server_id)
    if changes.keys() == {"trusted"}:  # says nothing of the address, which may not even be reachable now
        return servers.set_trusted(actor, server_id, changes["trusted"], via=via)
    values = replace(_stored(server), **_address(changes))
    moved = (values.url, values.entry) != (server.url, server.entry)
    given = {name: changes[name] for name in ("name", "trusted") if name in changes}
    for name in ("headers", "variables"):
        if name in changes:
            given[name] = _secrets(name, changes[name] or {}, {} if moved else getattr(server, name))
    return servers.update(actor, server_id, replace(values, **given), via=via)


def register(actor: Actor, values: ServerValues) -> Server:
    """`runs.servers.register` for a caller to whom a KEPT value means a stored one: a new server has none."""
    for name, given in (("headers", values.headers), ("variables", values.variables)):
        _secrets(name, given or {}, {})
    return servers.register(actor, values)


def _stored(server: Server) -> ServerValues:
    return ServerValues(
        name=server.name,
        entry=server.entry,
        command=server.command,
        args=tuple(map(str, server.args)),
        url=server.url,
        trusted=server.trusted,
    )


def _address(changes: Mapping[str, Any]) -> dict[str, Any]:
    """Where the server is from now on; a new address takes the place of the old one whatever its kind."""
    given = {name: changes[name] for name in ("entry", "url") if name in changes}
    return {"entry": "", "command": "", "args": (), "url": "", **given} if given else {}


def _secrets(name: str, given: Mapping[str, str], stored: Mapping[str, str]) -> dict[str, str]:
    values = {}
    for member, value in given.items():
        if value == KEPT and member not in stored:
            raise servers.wrong(
                name, f"There is no stored value of {member[:60]} to keep. Send the value itself."
            )
        values[member] = stored[member] if value == KEPT else value
    return values
