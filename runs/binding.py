"""From a Server row to the binding that the MCP client connects with (design section 2).

The host owns what a stdio server runs: the row names an entry of the allow-list `settings.M3.stdio_servers`,
and only there may `env:NAME` take a value from this process. Values that an admin filled in (`variables`)
reach the child as environment variables alone, never as part of its command line.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from django.conf import settings

from runs.errors import ModelValidationError
from runs.mcp_client import Binding, HttpBinding, StdioBinding, identity
from runs.models import Server, Transport

_FROM_HOST = "env:"
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
    return {
        name: tuple(map(str, entry.get("variables", ())))
        for name, entry in sorted(settings.M3.stdio_servers.items())
    }


def _from_entry(name: str, variables: Mapping[str, Any]) -> StdioBinding:
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
    if not value.startswith(_FROM_HOST):
        return value
    name = value.removeprefix(_FROM_HOST)
    if name not in os.environ:
        raise EntryUnavailableError(
            f"The entry “{entry}” takes {key} from the host's variable {name}, which is not set. "
            "Set it where the server is started."
        )
    return os.environ[name]
