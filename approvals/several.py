"""The page on which calls are allowed together: what it lists, complete, and what it leaves to the cards (R21)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from approvals.batch import MOST_TOGETHER, Choice, why_alone
from approvals.cards import Arguments, RiskTag, Row, arguments_table, row_for
from approvals.gate import evaluate
from approvals.inbox import Filters, listed
from runs.access import Actor
from runs.models import Round
from runs.risk import HIGH_STAKES
from runs.round_states import RoundKind
from runs.visible import visible


@dataclass(frozen=True, kw_only=True)
class Call:
    """One waiting call. `risk` is what the tool's is now, `why` what the card says of why it asked."""

    row: Row
    digest: str
    agent: str
    end_user: str
    run_id: int
    step: int
    tool: str
    server_address: str
    risk: RiskTag
    high_stakes: bool
    why: str
    alone: str
    """Why it has to be decided on its own card; empty if it may be chosen here."""
    arguments: Arguments
    chosen: bool

    @property
    def value(self) -> str:
        """What its checkbox posts; `choice_of` reads it."""
        return f"{self.row.id}:{self.digest}"


@dataclass(frozen=True, kw_only=True)
class Several:
    """The page: calls that may be chosen, calls that may not, and how many more wait beyond those listed."""

    filters: Filters
    calls: tuple[Call, ...]
    alone: tuple[Call, ...]
    more: int

    @property
    def chosen(self) -> bool:
        return any(call.chosen for call in self.calls)


def choice_of(value: str) -> Choice:
    """The choice that a checkbox posted; nonsense is a pause that does not exist."""
    round_id, _, shown_digest = value.partition(":")
    return Choice(round_id=round_id, shown_digest=shown_digest)


def several_for(actor: Actor, filters: Filters, chosen: Collection[Choice] = ()) -> Several:
    """The waiting calls that `filters` let through, in the order of the inbox.

    Only `chosen` ones are ticked, and those only if they still show what was chosen: nothing is preselected.
    """
    waiting = listed(actor, replace(filters, kind=RoundKind.APPROVAL.value))
    calls = [_call(round_, chosen) for round_ in waiting.for_cards()[:MOST_TOGETHER]]
    return Several(
        filters=filters,
        calls=tuple(call for call in calls if not call.alone),
        alone=tuple(call for call in calls if call.alone),
        more=max(waiting.count() - MOST_TOGETHER, 0),
    )


def named(rounds: Sequence[Round]) -> str:
    """The calls in words; two runs may well ask for the same."""
    return "; ".join(f"{row_for(round_).headline} (run {round_.run_id})" for round_ in rounds)


def _call(round_: Round, chosen: Collection[Choice]) -> Call:
    context = round_.context
    decision = evaluate(round_.run, round_.turn, round_.own_step.call)
    return Call(
        row=row_for(round_),
        digest=round_.shown_digest,
        agent=visible(round_.run.agent.name),
        end_user=visible(round_.run.end_user.user_id) if round_.run.end_user else "",
        run_id=round_.run_id,
        step=round_.own_step.seq,
        tool=visible(str(context.get("tool") or "")),
        server_address=visible(str(context.get("server_address") or "")),
        risk=RiskTag.of(decision.risk),
        high_stakes=decision.risk in HIGH_STAKES,
        why=visible(str((context.get("verdict") or {}).get("reason") or "")),
        alone=visible(why_alone(round_, decision) or ""),
        arguments=arguments_table(context.get("arguments") or {}, context.get("last_allowed")),
        chosen=Choice(round_id=round_.pk, shown_digest=round_.shown_digest) in chosen,
    )
