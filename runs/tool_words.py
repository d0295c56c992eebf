"""An admin's word on a tool: stored, with who said it, and carried to the approvals that wait because of it.

A call that a person allowed is checked again right before it is sent; a card that shows a risk that no longer counts
would make them allow something twice. So a change of the risk takes such cards back, and their calls are decided anew.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from django.db import transaction
from django.db.models import Max

from runs import audit, lease, round_rows, rounds
from runs.access import Actor, get
from runs.models import Role, Round, Server, Tool, ToolWord
from runs.risk import Risk
from runs.round_rows import Decider
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


def ask_anew(
    actor: Actor, server: Server, *, tools: Iterable[Tool] | None = None, via: str = "page"
) -> list[Round]:
    """Take back waiting approvals that show another risk than now counts; their calls are decided anew.

    `tools` are those that it may concern, None for all of the server's. Such a call then runs, asks again or is denied
    as its tool stands now. Must run inside the change's transaction.
    A pause that somebody is deciding at this moment is left to them: the call is checked again before it is sent.
    """
    risks = {
        tool.name: standing_of(tool, server).risk for tool in (server.tools.all() if tools is None else tools)
    }
    waiting = (
        Round.objects.filter(
            account=server.account_id, server_name=server.name, kind=RoundKind.APPROVAL.value
        )
        .pending()
        .order_by("-run_id", "pk")
        .values_list("pk", "operation_name", "context")
    )
    stale = [
        (pk, name)
        for pk, name, context in waiting
        if name in risks and context.get("verdict", {}).get("risk") != risks[name].value
    ]
    return [taken for pk, name in stale if (taken := _take_back(actor, pk, risks[name], via)) is not None]


def _take_back(actor: Actor, round_id: str, risk: Risk, via: str) -> Round | None:
    round_ = round_rows.lock_if_free(round_id)
    if round_ is None or round_.status != RoundStatus.PENDING:
        return None
    tool = f"{round_.server_name}:{round_.operation_name}"
    round_rows.fail(
        round_,
        RoundOutcome.SUPERSEDED,
        code=RISK_CHANGED,
        message=f"{tool} counts as {risk.value} now, so the call is decided anew.",
        decider=Decider(user=actor.user, via=via),
    )
    rounds.settle_turn(round_.run, round_.turn)
    lease.wake(round_.run_id)
    return round_
