"""From a server as a program describes it to how the store knows it: secrets in place, entry found."""

from __future__ import annotations

import os
from collections.abc import Mapping

from runs.binding import FROM_HOST
from runs.errors import ModelValidationError
from runs.handles.dispatch import Dispatcher
from runs.handles.specs import HttpServer, Server, StdioServer
from runs.mcp_client import StdioBinding, identity
from runs.servers import ServerValues


def address(server: Server, env: Mapping[str, str], dispatcher: Dispatcher) -> ServerValues | str:
    """What the store is told of a server: its values, or the name of one that it has.

    Raises ModelValidationError for an `env:NAME` that `env` lacks, and for a StdioServer that the process which
    drives the executions does not offer.
    """
    if isinstance(server, str):
        return server
    if isinstance(server, HttpServer):
        headers = _resolved(server.name, server.headers, env)
        return ServerValues(name=server.name, url=server.url, headers=headers, trusted=server.trusted)
    return ServerValues(name=server.name, entry=_entry(server, env, dispatcher), trusted=server.trusted)


def offer(server: Server, env: Mapping[str, str], dispatcher: Dispatcher) -> None:
    """Make a server known that earlier executions of the store need, submitting nothing."""
    if isinstance(server, StdioServer):
        dispatcher.offer(server.name, _binding(server, env))


def _entry(server: StdioServer, env: Mapping[str, str], dispatcher: Dispatcher) -> str:
    binding = _binding(server, env)
    if dispatcher.may_offer:
        return dispatcher.offer(server.name, binding)
    known = dispatcher.offers().entry_for(identity(binding))
    if known is None:
        raise ModelValidationError(
            f"Another process drives the executions of this store, and it does not offer the server {server.name}. "
            "Submit from that process, add the same command to its M3_STDIO_SERVERS, or end it first."
        )
    return dispatcher.offer(server.name, binding, entry=known)


def _binding(server: StdioServer, env: Mapping[str, str]) -> StdioBinding:
    return StdioBinding(
        command=server.command,
        args=tuple(server.args),
        env=_resolved(server.name, server.env, env),
        cwd=os.fspath(server.cwd) if server.cwd is not None else None,
    )


def _resolved(server: str, values: Mapping[str, str], env: Mapping[str, str]) -> dict[str, str]:
    return {key: _value(server, key, value, env) for key, value in values.items()}


def _value(server: str, key: str, value: str, env: Mapping[str, str]) -> str:
    if not value.startswith(FROM_HOST):
        return value
    name = value.removeprefix(FROM_HOST)
    if name not in env:
        raise ModelValidationError(
            f"The server {server} takes {key} from the variable {name}, which the kit's env does not have."
        )
    return env[name]
