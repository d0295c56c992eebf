"""An admin's word on a tool: stored, with who said it, and carried to the approvals that wait because of it.

A call that a person allowed is checked again right before it is sent; a card that shows a risk that no longer counts
would make them allow something twice. So a change of the risk takes such cards back, and their calls are decided anew.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any

from django.db import transaction
from django.db.models import Max

from runs import audit, lease, round_rows, rounds
from runs.access import Actor, get
from runs.models import Role, Round, Server, Tool, ToolWord
from runs.risk import Risk
from runs.round_rows import Decider, Take
from runs.round_states import RoundKind, RoundOutcome, RoundStatus
from runs.tool_standing import Standing, Words, standing

RISK_CHANGED = "risk_changed"


@transaction.atomic
def say(actor: Actor, server_id: int, tool_id: int, words: Words, *, via: str = "page") -> Tool:
    """Store what an admin says about a tool; it beats the annotations of its server, and None takes it back.

    Saying the same again changes nothing. Raises NotFound, NotAllowed.
    """
    actor.require(Role.ADMIN)
    tools = Tool.objects.select_for_update(of=("self",), no_key=True).select_related("server")
    tool = get(actor, tools, pk=tool_id, server=server_id)
    if words == words_on(tool):
        return tool
    tool.risk = words.risk.value if words.risk else None
    tool.idempotent, tool.replay_allowed = words.idempotent, words.replay_allowed
    tool.save(update_fields=["risk", "idempotent", "replay_allowed"])
    ToolWord.objects.create(
        tool=tool,
        risk=tool.risk,
        idempotent=tool.idempotent,
        replay_allowed=tool.replay_allowed,
        said_by=actor.user,
        said_by_name=actor.user.get_username(),
    )
    ask_anew(actor, tool.server, tools=[tool], via=via)
    said = {"risk": tool.risk, "idempotent": tool.idempotent, "replay_allowed": tool.replay_allowed}
    audit.note(
        actor.account,
        actor.user,
        "tool.judged",
        f"tool {tool.pk}",
        {"tool": tool.full_name, "definition": tool.digest, **said},
    )
    return tool


@transaction.atomic
def change(actor: Actor, server_id: int, tool_id: int, words: Mapping[str, Any], *, via: str) -> Tool:
    """Say some of it, named as in Words, and leave the rest as it was said. Raises what `say` raises."""
    tools = Tool.objects.select_for_update(of=("self",), no_key=True)
    tool = get(actor, tools, pk=tool_id, server=server_id)
    return say(actor, server_id, tool_id, replace(words_on(tool), **words), via=via)


def words_on(tool: Tool) -> Words:
    """What an admin has said about a tool so far."""
    return Words(
        risk=Risk(tool.risk) if tool.risk else None,
        idempotent=tool.idempotent,
        replay_allowed=tool.replay_allowed,
    )


def standing_of(tool: Tool, server: Server) -> Standing:
    """What counts for a stored tool; `server` is its own."""
    return standing(words_on(tool), tool.annotations, trusted=server.trusted, tool=tool.name)


def latest_words(server: Server) -> dict[int, ToolWord]:
    """{id of the tool: the newest word of an admin on it}, for the tools of one server."""
    newest = (
        ToolWord.objects.filter(tool__server=server)
        .order_by()
        .values("tool")
        .annotate(newest=Max("pk"))
        .values("newest")
    )
    return {word.tool_id: word for word in ToolWord.objects.filter(pk__in=newest)}


def ask_anew(actor: Actor, server: Server, *, tools: Iterable[Tool] | None = None, via: str = "page") -> None:
    """Take back waiting approvals that show another risk than now counts; their calls are decided anew.

    `tools` are those that it may concern, None for all of the server's. Such a call then runs, asks again or is denied
    as its tool stands now. Must run inside the change's transaction; `round_rows.now_and_again` says when it happens.
    """
    names = None if tools is None else [tool.name for tool in tools]

    def look(take: Take) -> None:
        for round_id in _stale(server.pk, names):
            take(round_id, lambda round_: _take_back(actor, round_, via))

    round_rows.now_and_again(look)


def _stale(server_id: int, names: Collection[str] | None) -> list[str]:
    """Ids of the waiting approvals of a server's tools of these names that show another risk than now counts."""
    server = Server.objects.filter(pk=server_id).first()
    if server is None:
        return []
    tools = server.tools.all() if names is None else server.tools.filter(name__in=names)
    risks = {tool.name: standing_of(tool, server).risk.value for tool in tools}
    waiting = Round.objects.filter(
        account=server.account_id,
        server_name=server.name,
        operation_name__in=risks,
        kind=RoundKind.APPROVAL.value,
    ).pending()
    return [
        round_.pk
        for round_ in waiting.order_by("-run_id", "pk").only("operation_name", "context")
        if _shown(round_) != risks[round_.operation_name]
    ]


def _shown(round_: Round) -> str | None:
    """The risk that an approval shows."""
    risk: str | None = round_.context.get("verdict", {}).get("risk")
    return risk


def _take_back(actor: Actor, round_: Round, via: str) -> None:
    tool = (
        Tool.objects.select_related("server")
        .filter(server__account=round_.account_id, server__name=round_.server_name)
        .filter(name=round_.operation_name)
        .first()
    )
    if tool is None or round_.status != RoundStatus.PENDING:
        return
    risk = standing_of(tool, tool.server).risk
    if _shown(round_) == risk.value:
        return  # somebody has said otherwise meanwhile
    round_rows.fail(
        round_,
        RoundOutcome.SUPERSEDED,
        code=RISK_CHANGED,
        message=f"{tool.full_name} counts as {risk.value} now, so the call is decided anew.",
        decider=Decider(user=actor.user, via=via),
    )
    rounds.settle_turn(round_.run, round_.turn)
    lease.wake(round_.run_id)
