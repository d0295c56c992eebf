"""From a Server row to the binding that the MCP client connects with (design section 2).

The host owns what a stdio server runs: the row names an entry of the allow-list `settings.M3.stdio_servers`,
and only there may `env:NAME` take a value from this process. Values that an admin filled in (`variables`)
reach the child as environment variables alone, never as part of its command line.

A Python program on this machine is the host too. The servers that it brings along (`runs.handles`) are entries of its
own, known to this process and for its database only.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from django.conf import settings

from runs import database
from runs.errors import ModelValidationError
from runs.mcp_client import Binding, HttpBinding, StdioBinding, identity
from runs.models import Run, Server, Transport
from runs.prepared import Asked, Param, Rows

FROM_HOST = "env:"
_PROGRAM = "#"
"""Stands in the name of every entry of a program, between the server's name and its identity."""

_NEEDS: Rows[tuple[str | None]] = Rows(
    lambda: Run.objects.live().filter(pk=Param("run", Run._meta.pk)).values_list("agent__servers__entry")
)
_LOOPBACK = frozenset({"127.0.0.1", "localhost", "[::1]", "::1"})


class EntryUnavailableError(ModelValidationError):
    """The host's allow-list no longer offers what the server names; nothing was started."""

    code = "server_entry_unavailable"


def binding_of(server: Server) -> Binding:
    """Where the server is, with its secrets in place.

    Raises EntryUnavailableError if the allow-list has no such entry any more, if a variable of the host
    that the entry refers to is not set, or if a command of the page's own is no longer permitted here.
    """
    if server.transport == Transport.HTTP:
        headers = {name: str(value) for name, value in server.headers.items()}
        return HttpBinding(url=server.url, headers=headers, allow_private=settings.M3.allow_private_urls)
    if server.entry:
        return _from_entry(server.entry, server.variables)
    if not may_hold_command():
        raise EntryUnavailableError(
            f"{server.name} has a command of its own, which only demo mode on this machine permits. "
            "Add it to the host's list of stdio servers and register it from there."
        )
    return StdioBinding(command=server.command, args=tuple(map(str, server.args)))


def identity_of(server: Server) -> str:
    """Digest of what the server is now; differs from `server.identity` once the host changed its entry.

    Raises EntryUnavailableError as `binding_of` does.
    """
    return identity(binding_of(server))


def may_hold_command() -> bool:
    """Whether the page may add a stdio command: demo mode, reachable from this machine alone."""
    return bool(settings.M3.demo) and _LOOPBACK.issuperset(settings.M3.allowed_hosts)


def entries() -> Mapping[str, tuple[str, ...]]:
    """The allow-list for a form: entry name -> the variables that an admin may fill in."""
    listed = {
        name: tuple(map(str, entry.get("variables", ()))) for name, entry in settings.M3.stdio_servers.items()
    }
    own: dict[str, tuple[str, ...]] = dict.fromkeys(database.current().bindings, ())
    return dict(sorted({**listed, **own}.items()))


def identities() -> dict[str, str]:
    """The entries that can be started here now, each with the identity of what it starts."""
    found = {}
    for name in entries():
        try:
            found[name] = identity(_from_entry(name, {}))
        except EntryUnavailableError:
            continue
    return found


def offer(server_name: str, binding: StdioBinding, *, entry: str | None = None) -> str:
    """Add a program's own server to what this process offers for the current database; returns the entry's name.

    The name follows from the server's name and its identity, so that it is the same after a restart. `entry` is
    another name under which the process that does the work offers the same program.
    """
    name = entry or f"{server_name[:43]}{_PROGRAM}{identity(binding).removeprefix('sha256:')[:16]}"
    database.current().bindings[name] = binding
    return name


def unreachable(run_ids: Collection[int]) -> set[int]:
    """Those of these unfinished runs whose agents need the server of a program that does not take part here.

    They wait for a process that offers it; driven here, their calls could only fail.
    """
    known = entries()
    needs = Run.objects.live().filter(pk__in=run_ids).values_list("pk", "agent__servers__entry")
    return {run_id for run_id, entry in needs if entry and _PROGRAM in entry and entry not in known}


def needs(run_id: int) -> Asked[bool]:
    """Whether the same is so for one run: asked whenever it is woken, together with other questions."""
    asked = _NEEDS.asked(run=run_id)
    return Asked(asked.given, lambda result: _lacks(asked.read(result)))


def _lacks(entries_needed: Sequence[tuple[str | None]]) -> bool:
    needed = {entry for (entry,) in entries_needed if entry and _PROGRAM in entry}
    return bool(needed) and not entries().keys() >= needed


def _from_entry(name: str, variables: Mapping[str, Any]) -> StdioBinding:
    own = database.current().bindings.get(name)
    if own is not None:
        return own
    entry = settings.M3.stdio_servers.get(name)
    if entry is None:
        raise EntryUnavailableError(
            f"The host's list of stdio servers has no entry “{name}” any more. Choose another or restore it."
        )
    filled = {key: str(value) for key, value in variables.items() if key in entry.get("variables", ())}
    fixed = {key: _resolve(name, key, str(value)) for key, value in entry.get("env", {}).items()}
    # The host's own values win: a variable is a blank to fill in, not a way to overrule the entry.
    return StdioBinding(
        command=entry["command"],
        args=tuple(map(str, entry.get("args", ()))),
        env={**filled, **fixed},
        cwd=entry.get("cwd"),
        tasks=entry.get("tasks", False),
    )


def _resolve(entry: str, key: str, value: str) -> str:
    if not value.startswith(FROM_HOST):
        return value
    name = value.removeprefix(FROM_HOST)
    if name not in os.environ:
        raise EntryUnavailableError(
            f"The entry “{entry}” takes {key} from the host's variable {name}, which is not set. "
            "Set it where the server is started."
        )
    return os.environ[name]
