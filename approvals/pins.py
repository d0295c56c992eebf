"""What a server offers right now, and what a rule was made for (R25, R28; design section 7).

A rule pins the identity of its server and the definitions of the tools that it covers. A rule may precede its
server; it then has no pins yet and takes them when it first decides.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from approvals.models import Policy
from runs.binding import EntryUnavailableError, identity_of
from runs.models import Account, Server, Tool


@dataclass(frozen=True, kw_only=True)
class Offer:
    """The server and tool rows behind a target, None where there is none.

    `identity` is None when the server cannot be reached any more as the host permits it.
    """

    server: Server | None
    tool: Tool | None
    identity: str | None


def look(account: Account | int, server_name: str, tool_name: str) -> Offer:
    """What stands behind `server:tool` in an account at this moment; a tool no longer listed counts as gone."""
    server = Server.objects.filter(account=account, name=server_name).first()
    if server is None:
        return Offer(server=None, tool=None, identity=None)
    tool = Tool.objects.filter(server=server, name=tool_name, present=True).first()
    return Offer(server=server, tool=tool, identity=_identity(server))


def pin(policy: Policy) -> None:
    """Take the pins of a rule from what there is now; the caller saves the row."""
    offer = look(policy.account_id, policy.target_server, policy.target_tool)
    policy.server = offer.server
    policy.pinned_identity = offer.identity or ""
    policy.pinned_tools = _definitions(policy, offer.server) if offer.server else {}


def is_pinned(policy: Policy) -> bool:
    return bool(policy.pinned_identity and policy.pinned_tools)


def suspension(policy: Policy, offer: Offer) -> str | None:
    """Why a rule has no force for the tool of `offer`, as the end of a sentence; None while it has."""
    if policy.suspended_reason:
        return policy.suspended_reason
    if not policy.pinned_identity or offer.server is None:
        return None
    if policy.pinned_identity != offer.identity:
        return f"{policy.target_server} is not the server that it was made for."
    if offer.tool is None or not policy.pinned_tools:
        return None
    pinned = policy.pinned_tools.get(offer.tool.name)
    if pinned is None:
        return "the server has added this tool since."
    return None if pinned == offer.tool.digest else "the definition of the tool has changed since."


def _identity(server: Server) -> str | None:
    """Of a stdio entry as the host's list has it now, which may have changed behind the row."""
    if not server.entry:
        return server.identity
    try:
        return identity_of(server)
    except EntryUnavailableError:
        return None


def _definitions(policy: Policy, server: Server) -> Mapping[str, str]:
    tools = server.tools.filter(present=True)
    if policy.target_tool:
        tools = tools.filter(name=policy.target_tool)
    return dict(tools.values_list("name", "digest"))
