"""Standing rules as the pages show them: which ones, in which state, as sentences (R27)."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from django.db.models import Q, QuerySet
from django.utils import timezone

from approvals import pins
from approvals.facts import Effect
from approvals.models import UNUSED_AFTER, Policy, PolicyQuerySet, Source
from approvals.rules import rule_sentence
from runs.access import Actor, visible
from runs.described import DescribedEnum
from runs.models import Server, Tool
from runs.visible import has_hidden

PAGE: Final = 50
SUGGESTED: Final = 1000
_BATCH: Final = 200
"""Rules that are read at once while those of a state are looked for."""

_SOURCES: Final = {
    Source.RUN_APPROVAL.value: "remembered from an approval",
    Source.API.value: "written",
}


class State(DescribedEnum):
    """How a rule stands, as the list filters by it; a rule may be in several."""

    IN_FORCE = "in_force", "In force"
    SUSPENDED = "suspended", "Suspended"
    EXPIRED = "expired", "Expired"
    UNUSED = "unused", f"Unused for {UNUSED_AFTER.days} days"


@dataclass(frozen=True, kw_only=True)
class Line:
    """One rule as a page shows it; `revocable` by whoever looks.

    `changed` is how many tools are others than the rule was made for, which suspends an allow for them (R28).
    """

    policy: Policy
    sentence: str
    source: str
    expired: bool
    unused: bool
    revocable: bool
    changed: int = 0

    @property
    def suspended(self) -> bool:
        """Whether it is out of force for a tool that it covers, or for all of them."""
        return bool(self.policy.suspended_reason or self.changed)

    def is_in(self, state: State) -> bool:
        """A rule on a whole server that is suspended for some of its tools is in force too."""
        if state is State.EXPIRED:
            return self.expired
        if state is State.UNUSED:
            return self.unused
        if state is State.SUSPENDED:
            return self.suspended and not self.expired
        wholly = self.policy.suspended_reason or (self.changed and self.policy.target_tool)
        return not self.expired and not wholly


def listed(actor: Actor, chosen: Mapping[str, str], *, before: int | None) -> tuple[list[Line], int | None]:
    """A page of standing rules, newest first, and the id to go on before, if there are more.

    `chosen` has the filters q (server, or server:tool), effect, user and state, "" for any; `before` is the id that all
    of them lie below.
    """
    state = State(chosen["state"]) if chosen["state"] in list(State) else None
    lines: list[Line] = []
    for line in _lines(actor, _filtered(actor, chosen, state), before):
        if state is not None and not line.is_in(state):
            continue
        if len(lines) == PAGE:
            return lines, lines[-1].policy.pk
        lines.append(line)
    return lines, None


def line_of(actor: Actor, policy: Policy) -> Line:
    """One rule as the pages show it."""
    return _drawn(actor, [policy])[0]


def with_names(rows: QuerySet[Policy]) -> QuerySet[Policy]:
    return rows.select_related("end_user", "created_by", "server")


def known_targets(actor: Actor) -> list[str]:
    """What a target may be by now, to be suggested: servers, and tools that they list, at most SUGGESTED of each.

    A name that would look like another one is not suggested.
    """
    servers = visible(actor, Server.objects.order_by("name")).values_list("name", flat=True)[:SUGGESTED]
    rows = visible(actor, Tool.objects.filter(present=True).order_by("server__name", "name"))
    tools = rows.values_list("server__name", "name")[:SUGGESTED]
    targets = [*servers, *(f"{server}:{name}" for server, name in tools)]
    return sorted(target for target in targets if not has_hidden(target))


def _lines(actor: Actor, rows: PolicyQuerySet, before: int | None) -> Iterator[Line]:
    """All of them, read in batches: how a rule stands to what is offered now is no matter of the database."""
    while True:
        found = list((rows if before is None else rows.filter(pk__lt=before)).order_by("-pk")[:_BATCH])
        yield from _drawn(actor, found)
        if len(found) < _BATCH:
            return
        before = found[-1].pk


def _filtered(actor: Actor, chosen: Mapping[str, str], state: State | None) -> PolicyQuerySet:
    now = timezone.now()
    rows = Policy.objects.standing().filter(account=actor.account)
    rows = rows.select_related("end_user", "created_by", "server")
    server, colon, tool = chosen["q"].partition(":")
    if colon:
        rows = rows.filter(target_server__icontains=server, target_tool__icontains=tool)
    elif server:
        rows = rows.filter(Q(target_server__icontains=server) | Q(target_tool__icontains=server))
    if chosen["effect"] in list(Effect):
        rows = rows.filter(effect=chosen["effect"])
    if chosen["user"]:
        rows = rows.filter(end_user__user_id=chosen["user"])
    if state is State.EXPIRED:
        return rows.filter(expires_at__lte=now)
    if state is State.UNUSED:
        return rows.unused(now)
    if state is State.SUSPENDED:
        return rows.in_force(now).filter(effect=Effect.ALLOW.value)
    return rows if state is None else rows.in_force(now)


def _drawn(actor: Actor, rows: Sequence[Policy]) -> list[Line]:
    now = timezone.now()
    drifted = pins.changes_of(actor.account.pk, list(_allows(rows)))
    return [
        Line(
            policy=row,
            sentence=rule_sentence(row),
            source=_SOURCES[row.source],
            expired=row.expires_at is not None and row.expires_at <= now,
            unused=_is_unused(row, now - UNUSED_AFTER),
            revocable=actor.can_administer or (actor.can_decide and row.created_by_id == actor.user.pk),
            changed=len(drifted.get(row.pk, ())),
        )
        for row in rows
    ]


def _allows(rows: Iterable[Policy]) -> Iterator[Policy]:
    return (row for row in rows if row.effect == Effect.ALLOW)


def _is_unused(policy: Policy, since: dt.datetime) -> bool:
    """As `PolicyQuerySet.unused` says it, for a row that is there already."""
    idle = policy.last_used_at is None or policy.last_used_at <= since
    return policy.run_id is None and idle and policy.created_at <= since
