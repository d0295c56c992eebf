"""What a server offers right now, and what a rule was made for (R25, R28; design section 7).

A rule pins the identity of its server and the definitions of the tools that it covers. A rule may precede its
server; it then has no pins yet and takes them when it first decides.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from approvals.facts import Drifted
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
    drifted = change(policy, offer)
    if drifted is None:
        return None
    if drifted.server != drifted.server_before:
        return f"{policy.target_server} is not the server that it was made for."
    if not drifted.definition_before:
        return "the server has added this tool since."
    return "the definition of the tool has changed since."


def change(policy: Policy, offer: Offer) -> Drifted | None:
    """How the tool of `offer`, or its server, differs from what a rule pinned; None while it does not.

    A rule on a whole server is so suspended for the changed or added tool alone.
    """
    if not policy.pinned_identity or offer.server is None:
        return None
    name = offer.tool.name if offer.tool else policy.target_tool
    before = policy.pinned_tools.get(name, "")
    now = offer.tool.digest if offer.tool else ""
    moved = policy.pinned_identity != offer.identity
    if not moved and (offer.tool is None or not policy.pinned_tools or before == now):
        return None
    return Drifted(
        tool=name,
        server_before=policy.pinned_identity,
        server=offer.identity or "",
        definition_before=before,
        definition=now,
    )


def changes(policy: Policy) -> tuple[Drifted, ...]:
    """Everything that renewing a rule would accept, by the names of the tools; nothing while all is as it was.

    A server that moved is one change of every tool that it lists, or of no tool where it lists none.
    """
    return changes_of(policy.account_id, [policy])[policy.pk]


def changes_of(account_id: int, policies: Sequence[Policy]) -> dict[int, tuple[Drifted, ...]]:
    """`changes` of several rules of one account by their ids, with two queries for all of them."""
    names = {policy.target_server for policy in policies}
    servers = {row.name: row for row in Server.objects.filter(account=account_id, name__in=names)}
    tools: dict[str, list[Tool]] = {}
    listed = Tool.objects.filter(server__in=servers.values(), present=True).order_by("name")
    for tool in listed.select_related("server").only("name", "digest", "server__name"):
        tools.setdefault(tool.server.name, []).append(tool)
    identities = {name: _identity(server) for name, server in servers.items()}
    found: dict[int, tuple[Drifted, ...]] = {}
    for policy in policies:
        server = servers.get(policy.target_server)
        covered: list[Tool | None] = [
            tool for tool in tools.get(policy.target_server, []) if policy.target_tool in ("", tool.name)
        ]
        identity = identities.get(policy.target_server)
        offers = [Offer(server=server, tool=tool, identity=identity) for tool in covered or [None]]
        drifted = [change(policy, offer) for offer in offers]
        found[policy.pk] = tuple(one for one in drifted if one is not None)
    return found


def pinned_digests(account_id: int) -> set[str]:
    """Every identity and definition that a rule of the account was made for."""
    rules = Policy.objects.filter(account=account_id).values_list("pinned_identity", "pinned_tools")
    return {digest for identity, tools in rules for digest in (identity, *tools.values()) if digest}


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
