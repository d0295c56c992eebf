"""What waits in an account: the list with its order, filters and counts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final, Self
from urllib.parse import urlencode

from django.db.models import Count

from approvals.cards import Row, row_for
from runs.access import Actor
from runs.models import Round
from runs.models.exact import is_plain
from runs.models.round import ENDS_AT, RoundQuerySet
from runs.round_states import RoundKind
from runs.visible import visible

MOST_ROWS: Final = 200
"""Rows on one page; beyond them the list says how many more there are."""

MOST_LOOKED_AT: Final = 5_000
"""Pauses, in the order of the list, that are looked at for what the filters can offer."""

KIND_LABELS: Final = {
    RoundKind.APPROVAL: "Approvals",
    RoundKind.ELICITATION: "Forms",
    RoundKind.QUESTION: "Questions",
    RoundKind.PLAN: "Plans",
    RoundKind.OUTCOME: "Unknown results",
}


@dataclass(frozen=True, kw_only=True)
class Filters:
    """What of the list is shown, as it stands in the address; empty text filters nothing."""

    kind: str = ""
    agent: str = ""
    user: str = ""
    server: str = ""

    @classmethod
    def of(cls, query: Mapping[str, str]) -> Self:
        """Read from GET parameters; a value that cannot be meant filters nothing."""
        kind, agent = query.get("kind", ""), query.get("agent", "")
        return cls(
            kind=kind if kind in list(RoundKind) else "",
            agent=agent if agent.isdecimal() and len(agent) < 10 else "",
            user=_plain(query.get("user", "")[:200]),
            server=_plain(query.get("server", "")[:60]),
        )

    def apply(self, rounds: RoundQuerySet) -> RoundQuerySet:
        wanted = {
            "kind": self.kind,
            "run__agent": self.agent,
            "run__end_user__user_id": self.user,
            "server_name": self.server,
        }
        return rounds.filter(**{name: value for name, value in wanted.items() if value})

    @property
    def query(self) -> str:
        """`?kind=plan&…`, or nothing: appended to the address of a card, so that the way back keeps the filters."""
        chosen = {name: value for name, value in vars(self).items() if value}
        return f"?{urlencode(chosen)}" if chosen else ""

    @property
    def narrowed(self) -> bool:
        """Whether anything but the kind is chosen."""
        return bool(self.agent or self.user or self.server)


@dataclass(frozen=True, kw_only=True)
class Chip:
    """A kind with how many of it wait under the other filters."""

    kind: str
    label: str
    count: int
    query: str
    current: bool


@dataclass(frozen=True, kw_only=True)
class Choices:
    """What the three selects offer: (value, label) pairs of what actually waits."""

    agents: tuple[tuple[str, str], ...]
    users: tuple[tuple[str, str], ...]
    servers: tuple[tuple[str, str], ...]


@dataclass(frozen=True, kw_only=True)
class Counts:
    """How much of which kind waits: the part of the list that every hint changes."""

    filters: Filters
    chips: tuple[Chip, ...]

    @property
    def total(self) -> int:
        """What the filters let through."""
        return next(chip.count for chip in self.chips if chip.current)

    @property
    def several(self) -> bool:
        """Whether calls wait that could be allowed together (R21)."""
        calls = next((chip.count for chip in self.chips if chip.kind == RoundKind.APPROVAL), 0)
        return calls > 1 and self.filters.kind in ("", RoundKind.APPROVAL)


@dataclass(frozen=True, kw_only=True)
class Inbox(Counts):
    """The list as a page shows it; `waiting` counts everything, whatever the filters."""

    rows: tuple[Row, ...]
    waiting: int
    choices: Choices

    @property
    def more(self) -> int:
        return self.total - len(self.rows)


def _plain(text: str) -> str:
    return text if is_plain(text) else ""


def inbox_for(actor: Actor, filters: Filters) -> Inbox:
    """Everything that waits in the actor's account, as far as the filters let it through."""
    chips = _chips(actor, filters)
    return Inbox(
        filters=filters,
        rows=tuple(row_for(round_) for round_ in listed(actor, filters).for_cards()[:MOST_ROWS]),
        waiting=pending(actor).count() if filters.narrowed else chips[0].count,
        chips=chips,
        choices=_choices(actor, filters),
    )


def counts_for(actor: Actor, filters: Filters) -> Counts:
    """The same without rows, for a page that has them: it asks at every hint."""
    return Counts(filters=filters, chips=_chips(actor, filters))


def pending(actor: Actor) -> RoundQuerySet:
    return Round.objects.filter(account=actor.account).pending()


def listed(actor: Actor, filters: Filters) -> RoundQuerySet:
    """The pending pauses in the order of the list: nearest end first, then oldest first.

    New ones without a deadline come last, so that nothing moves under somebody's pointer.
    """
    return filters.apply(pending(actor)).order_by(ENDS_AT.asc(nulls_last=True), "created_at", "pk")


def next_after(actor: Actor, filters: Filters, decided: str) -> Round | None:
    """What to show once `decided` is off the list: the first that still waits."""
    return listed(actor, filters).exclude(pk=decided).for_cards().first()


def lists(actor: Actor, filters: Filters, round_id: str) -> Round | None:
    """The pause if it stands in the list; None if it is over, filtered out, or somebody else's."""
    # Mostly it is over, and to find that out costs a tenth of reading a card.
    found = listed(actor, filters).filter(pk=round_id) if is_plain(round_id) else None
    return found.for_cards().first() if found is not None and found.exists() else None


def _chips(actor: Actor, filters: Filters) -> tuple[Chip, ...]:
    every = replace(filters, kind="")
    counts = dict(
        every.apply(pending(actor))
        .order_by()
        .values_list("kind")
        .annotate(number=Count("*"))
        .values_list("kind", "number")
    )
    kinds: Iterable[tuple[str, str, int]] = [
        (kind.value, label, counts.get(kind.value, 0)) for kind, label in KIND_LABELS.items()
    ]
    return (
        Chip(kind="", label="All", count=sum(counts.values()), query=every.query, current=not filters.kind),
        *(
            Chip(
                kind=kind,
                label=label,
                count=count,
                query=replace(filters, kind=kind).query,
                current=filters.kind == kind,
            )
            for kind, label, count in kinds
            if count or filters.kind == kind
        ),
    )


def _choices(actor: Actor, filters: Filters) -> Choices:
    columns = ("run__agent", "run__agent__name", "run__end_user__user_id", "server_name")
    waiting = set(listed(actor, Filters()).values_list(*columns)[:MOST_LOOKED_AT])
    agents = {(str(pk), visible(name)) for pk, name, _, _ in waiting}
    users = {user for _, _, user, _ in waiting if user}
    servers = {server for _, _, _, server in waiting if server}
    return Choices(
        agents=tuple(sorted(agents, key=lambda pair: pair[1].lower())),
        users=_pairs(users | ({filters.user} if filters.user else set())),
        servers=_pairs(servers | ({filters.server} if filters.server else set())),
    )


def _pairs(names: Iterable[str]) -> tuple[tuple[str, str], ...]:
    return tuple((name, visible(name)) for name in sorted(names))
