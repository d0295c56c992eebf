"""Standing rules as JSON, out of one account and into another.

What belongs to a place stays there: who made a rule, its use, and what it was pinned to. An imported rule is pinned to
what is offered where it arrives. What one run remembers is not exported.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from django.db import transaction
from django.utils import timezone
from django.utils.dateparse import parse_datetime

from approvals import policies
from approvals.condition_shape import condition_digest, parse_condition
from approvals.facts import Effect, Scope
from approvals.models import Policy, Source
from approvals.rehearsal import Rehearsal, Stage, UnconfirmedRule, rehearse
from approvals.rules import Rule, parse_target
from runs.access import Actor
from runs.canonical import digest
from runs.durations import utc_text
from runs.end_users import end_user
from runs.errors import M3Error, ModelValidationError
from runs.models import Account, EndUser, Role

VERSION: Final = 1
MAX_RULES: Final = 1000
"""Rules of one import."""

_FIELDS: Final = {"effect", "scope", "user_id", "target", "condition", "expires_at", "note", "suspended"}
_NEEDED: Final = {"effect", "target"}


@dataclass(frozen=True, kw_only=True)
class Imported:
    """What an import did: rules made, rules changed to what it says, rules that were so already, and rules that were
    left out because they have expired."""

    made: int
    changed: int
    unchanged: int
    expired: int


@dataclass(frozen=True, kw_only=True)
class _Entry:
    rule: Rule
    note: str
    suspended: str


def export(account: Account) -> dict[str, Any]:
    """The standing rules that have not expired, oldest first; `import_` takes it."""
    rows = Policy.objects.standing().in_force(timezone.now()).filter(account=account)
    rules = rows.select_related("end_user").order_by("pk")
    return {"version": VERSION, "rules": [_exported(policy) for policy in rules]}


@transaction.atomic
def import_(actor: Actor, data: Any, *, shown: str | None = None, confirmed: bool = False) -> Imported:
    """Make the account's rules agree with `data`; rules that it does not name stay. All of it or nothing.

    Importing the same again changes nothing. End users are created by first use. New allow rules are rehearsed together
    with one confirmation: `shown` is the "confirmation" of the refusal that a first try got, `confirmed` the person's
    word. Admins only. Raises NotAllowed, ModelValidationError whose details name the rule that is wrong by its number
    from 1, UnconfirmedRule.
    """
    actor.require(Role.ADMIN)
    entries = _entries(actor.account, data)
    now = timezone.now()
    live = [
        (entry, _existing(entry.rule))
        for entry in entries
        if entry.rule.expires_at is None or entry.rule.expires_at > now
    ]
    more = [entry.rule for entry, policy in live if _allows_more(entry, policy)]
    _check_rehearsals(more, shown=shown, confirmed=confirmed)
    done = [_put(actor, entry, policy) for entry, policy in live]
    return Imported(
        made=done.count("made"),
        changed=done.count("changed"),
        unchanged=done.count("unchanged"),
        expired=len(entries) - len(live),
    )


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


def _entries(account: Account, data: Any) -> list[_Entry]:
    if not isinstance(data, Mapping) or data.keys() != {"version", "rules"} or data["version"] != VERSION:
        raise ModelValidationError(f'Rules are imported as {{"version": {VERSION}, "rules": [...]}}.')
    rules = data["rules"]
    if not isinstance(rules, list | tuple) or len(rules) > MAX_RULES:
        raise ModelValidationError(f"An import is a list of at most {MAX_RULES:,} rules.")
    entries = []
    for number, raw in enumerate(rules, start=1):
        try:
            entries.append(_entry(account, raw))
        except M3Error as error:
            raise ModelValidationError(
                f"Rule {number}: {error.message} Nothing was imported.", details={"rule": number}
            ) from error
    _check_distinct(entries)
    return entries


def _entry(account: Account, raw: Any) -> _Entry:
    if not isinstance(raw, Mapping) or not raw.keys() >= _NEEDED or not raw.keys() <= _FIELDS:
        raise ModelValidationError(
            f"A rule needs {', '.join(sorted(_NEEDED))} and may have {', '.join(sorted(_FIELDS - _NEEDED))}."
        )
    user_id = raw.get("user_id")
    scope = raw.get("scope") or (Scope.ACCOUNT if user_id is None else Scope.USER)
    if scope not in (Scope.ACCOUNT, Scope.USER) or (scope == Scope.USER) is (user_id is None):
        raise ModelValidationError("The scope is user, with a user_id, or account, without one.")
    rule = Rule(
        account=account,
        effect=_effect(raw["effect"]),
        scope=Scope(scope),
        target=_text(raw["target"], "target"),
        end_user=_user(account, user_id),
        condition=parse_condition(raw.get("condition")),
        expires_at=_moment(raw.get("expires_at")),
    )
    policies.check_rule(rule, Source.API)
    note, suspended = _text(raw.get("note", ""), "note"), _text(raw.get("suspended", ""), "suspended")
    if len(note) > policies.MAX_NOTE or len(suspended) > policies.MAX_REASON:
        raise ModelValidationError(
            f"A note has at most {policies.MAX_NOTE} characters, a reason to suspend at most {policies.MAX_REASON}."
        )
    if suspended and rule.effect is not Effect.ALLOW:
        raise ModelValidationError("Only an allow can be suspended.")
    return _Entry(rule=rule, note=note, suspended=suspended)


def _effect(word: Any) -> Effect:
    try:
        return Effect(word)
    except ValueError as error:
        raise ModelValidationError(f"The effect is one of: {', '.join(Effect)}.") from error


def _text(value: Any, name: str) -> str:
    if not isinstance(value, str):
        raise ModelValidationError(f"The {name} is a text.")
    return value


def _user(account: Account, user_id: Any) -> EndUser | None:
    return None if user_id is None else end_user(account, _text(user_id, "user_id"))


def _moment(value: Any) -> dt.datetime | None:
    if value is None:
        return None
    try:
        moment = parse_datetime(value) if isinstance(value, str) else None
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None:
        raise ModelValidationError(
            "expires_at is a moment with its zone, like 2030-05-06T00:00:00Z, or null."
        )
    return moment


def _check_distinct(entries: Sequence[_Entry]) -> None:
    seen: dict[tuple[Any, ...], int] = {}
    for number, entry in enumerate(entries, start=1):
        rule = entry.rule
        key = (rule.effect, rule.scope, rule.end_user, rule.target, condition_digest(rule.condition))
        if key in seen:
            raise ModelValidationError(
                f"Rules {seen[key]} and {number} are the same rule. Nothing was imported.",
                details={"rule": number},
            )
        seen[key] = number


def _existing(rule: Rule) -> Policy | None:
    server, tool = parse_target(rule.target)
    return (
        Policy.objects.select_for_update()
        .filter(
            account=rule.account,
            effect=rule.effect.value,
            scope=rule.scope.value,
            end_user=rule.end_user,
            target_server=server,
            target_tool=tool,
            condition_digest=condition_digest(rule.condition),
        )
        .first()
    )


def _allows_more(entry: _Entry, policy: Policy | None) -> bool:
    """Whether the import puts an allow in force that is not in force now."""
    if entry.rule.effect is not Effect.ALLOW or entry.suspended:
        return False
    return policy is None or bool(policy.suspended_reason) or policies.has_expired(policy)


def _check_rehearsals(rules: Sequence[Rule], *, shown: str | None, confirmed: bool) -> None:
    """One confirmation for all of them, bound to all that was found."""
    found = [rehearsal for rehearsal in _rehearsed(rules) if rehearsal.needs_confirmation]
    confirmation = digest(sorted(rehearsal.digest for rehearsal in found))
    if found and not (confirmed and shown == confirmation):
        raise UnconfirmedRule(
            f"{len(found)} of these rules have to be confirmed: they allow high-stakes tools, or calls that people "
            "denied. Nothing was imported.",
            details={
                "confirmation": confirmation,
                "rules": [rehearsal.as_details() for rehearsal in found],
            },
        )


def _rehearsed(rules: Sequence[Rule]) -> list[Rehearsal]:
    stages: dict[str, Stage] = {}
    for rule in rules:
        server = rule.target.partition(":")[0]
        if server not in stages:
            stages[server] = Stage(rule.account, server)
    return [rehearse(rule, stages[rule.target.partition(":")[0]]) for rule in rules]


def _put(actor: Actor, entry: _Entry, policy: Policy | None) -> str:
    """Make one rule be as its entry says: "made", "changed" or "unchanged"."""
    if policy is None:
        policies.store(actor, entry.rule, source=Source.API, note=entry.note, suspended=entry.suspended)
        return "made"
    changed = policies.agree(
        actor, policy, expires_at=entry.rule.expires_at, note=entry.note, suspended=entry.suspended
    )
    return "changed" if changed else "unchanged"
