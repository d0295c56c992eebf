"""Standing rules as JSON, out of one account and into another.

What belongs to a place stays there: who made a rule, its use, and what it was pinned to. An imported rule is pinned to
what is offered where it arrives. What one run remembers is not exported.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from django.db import transaction
from django.utils import timezone

from approvals import policies
from approvals.exchange_entries import MAX_RULES, VERSION, Entry, read_entries
from approvals.facts import Effect
from approvals.models import Policy, Source
from approvals.rehearsal import Rehearsal, Stage, UnconfirmedRule, rehearse
from approvals.rules import Rule
from runs.access import Actor
from runs.canonical import digest
from runs.described import DescribedEnum
from runs.durations import utc_text
from runs.models import Account, Role

__all__ = ["MAX_RULES", "Fate", "Imported", "Plan", "Planned", "export", "import_", "preview"]


class Fate(DescribedEnum):
    """What an import does with one of its rules."""

    MADE = "made", "There is no such rule yet."
    CHANGED = "changed", "The rule is there and says something else."
    UNCHANGED = "unchanged", "The rule is there and says the same."
    EXPIRED = "expired", "It has expired, so it is left out."


@dataclass(frozen=True, kw_only=True)
class Imported:
    """What an import did: rules made, rules changed to what it says, rules that were so already, and rules that were
    left out because they have expired."""

    made: int
    changed: int
    unchanged: int
    expired: int


@dataclass(frozen=True, kw_only=True)
class Planned:
    """What an import is to do with one rule; `policy` is its row, if there is one.

    `rehearsal` is given for an allow that comes into force by it.
    """

    number: int
    entry: Entry
    policy: Policy | None
    fate: Fate
    rehearsal: Rehearsal | None = None

    @property
    def before(self) -> dict[str, str | None]:
        """What the row says, of that which can change; empty if there is none."""
        return policies.said(self.policy) if self.policy else {}

    @property
    def after(self) -> dict[str, str | None]:
        """What it says afterwards."""
        entry = self.entry
        return policies.saying(expires_at=entry.rule.expires_at, note=entry.note, suspended=entry.suspended)


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What an import is to do, rule by rule."""

    rules: tuple[Planned, ...]

    def count(self, fate: Fate) -> int:
        return sum(planned.fate is fate for planned in self.rules)

    @property
    def findings(self) -> tuple[Rehearsal, ...]:
        """What has to be confirmed."""
        found = (planned.rehearsal for planned in self.rules)
        return tuple(one for one in found if one is not None and one.needs_confirmation)

    @property
    def confirmation(self) -> str:
        """What one confirmation of all findings is bound to."""
        return digest(sorted(rehearsal.digest for rehearsal in self.findings))

    @property
    def digest(self) -> str:
        """Stands for all that the import is to do, with its findings."""
        lines = [
            [planned.fate.value, planned.entry.rule.digest, planned.entry.note, planned.entry.suspended]
            for planned in self.rules
        ]
        return digest([lines, self.confirmation])


def export(account: Account) -> dict[str, Any]:
    """The standing rules that have not expired, oldest first; `import_` takes it."""
    rows = Policy.objects.standing().in_force(timezone.now()).filter(account=account)
    rules = rows.select_related("end_user").order_by("pk")
    return {"version": VERSION, "rules": [_exported(policy) for policy in rules]}


@transaction.atomic
def preview(actor: Actor, data: Any) -> Plan:
    """What `import_` would do; changes nothing. Raises NotAllowed, and ModelValidationError as `import_` does."""
    plan = _plan(actor, data)
    transaction.set_rollback(True)  # end users who were not known yet were made for the look only
    return plan


@transaction.atomic
def import_(
    actor: Actor, data: Any, *, shown: str | None = None, confirmed: bool = False, seen: str | None = None
) -> Imported:
    """Make the account's rules agree with `data`; rules that it does not name stay. All of it or nothing.

    Importing the same again changes nothing. End users are created by first use. New allow rules are rehearsed together
    with one confirmation: `shown` is the "confirmation" of the refusal that a first try got, or of the plan that the
    person saw, `confirmed` the person's word. `seen` is the digest of a plan that this must still be. Admins only.
    Raises NotAllowed, ModelValidationError whose details name the rules that are wrong by their numbers from 1,
    UnconfirmedRule.
    """
    plan = _plan(actor, data)
    if seen is not None and seen != plan.digest:
        raise UnconfirmedRule("This import would do something else by now. Look at it once more.")
    _check_confirmed(plan, shown=shown, confirmed=confirmed)
    for planned in plan.rules:
        _put(actor, planned)
    return Imported(**{fate.value: plan.count(fate) for fate in Fate})


def _plan(actor: Actor, data: Any) -> Plan:
    """What is to be done with each rule; every row that is there is locked."""
    actor.require(Role.ADMIN)
    now = timezone.now()
    planned = []
    for number, entry in enumerate(read_entries(actor.account, data), start=1):
        over = entry.rule.expires_at is not None and entry.rule.expires_at <= now
        policy = None if over else policies.existing(entry.rule)
        fate = Fate.EXPIRED if over else _fate(entry, policy)
        planned.append(Planned(number=number, entry=entry, policy=policy, fate=fate))
    return Plan(rules=tuple(_rehearsed(planned)))


def _fate(entry: Entry, policy: Policy | None) -> Fate:
    if policy is None:
        return Fate.MADE
    wanted = policies.saying(expires_at=entry.rule.expires_at, note=entry.note, suspended=entry.suspended)
    return Fate.UNCHANGED if policies.said(policy) == wanted else Fate.CHANGED


def _exported(policy: Policy) -> dict[str, Any]:
    return {
        "effect": policy.effect,
        "scope": policy.scope,
        "user_id": policy.end_user.user_id if policy.end_user else None,
        "target": policy.target,
        "condition": policy.condition,
        "expires_at": utc_text(policy.expires_at) if policy.expires_at else None,
        "note": policy.note,
        "suspended": policy.suspended_reason,
    }


def _rehearsed(rules: Sequence[Planned]) -> list[Planned]:
    """The same, with a rehearsal of each allow that comes into force; each server is looked up once."""
    stages: dict[str, Stage] = {}
    return [
        replace(planned, rehearsal=rehearse(planned.entry.rule, _stage(stages, planned.entry.rule)))
        if _allows_more(planned)
        else planned
        for planned in rules
    ]


def _stage(stages: dict[str, Stage], rule: Rule) -> Stage:
    server = rule.target.partition(":")[0]
    if server not in stages:
        stages[server] = Stage(rule.account, server)
    return stages[server]


def _allows_more(planned: Planned) -> bool:
    """Whether the import puts an allow in force that is not in force now."""
    entry, policy = planned.entry, planned.policy
    if planned.fate is Fate.EXPIRED or entry.rule.effect is not Effect.ALLOW or entry.suspended:
        return False
    return policy is None or bool(policy.suspended_reason) or policies.has_expired(policy)


def _check_confirmed(plan: Plan, *, shown: str | None, confirmed: bool) -> None:
    """One confirmation for all findings, bound to all that was found."""
    found = plan.findings
    if found and not (confirmed and shown == plan.confirmation):
        raise UnconfirmedRule(
            f"{len(found)} of these rules have to be confirmed: they allow high-stakes tools, or calls that people "
            "denied. Nothing was imported.",
            details={
                "confirmation": plan.confirmation,
                "rules": [rehearsal.as_details() for rehearsal in found],
            },
        )


def _put(actor: Actor, planned: Planned) -> None:
    """Make one rule be as its entry says."""
    entry, policy = planned.entry, planned.policy
    if planned.fate is Fate.MADE:
        policies.store(actor, entry.rule, source=Source.API, note=entry.note, suspended=entry.suspended)
    elif planned.fate is Fate.CHANGED and policy is not None:
        policies.agree(
            actor, policy, expires_at=entry.rule.expires_at, note=entry.note, suspended=entry.suspended
        )
