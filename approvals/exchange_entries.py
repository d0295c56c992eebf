"""Reading what is to be imported: every rule of it, or every mistake in it."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from django.utils.dateparse import parse_datetime

from approvals.condition_shape import condition_digest, parse_condition
from approvals.facts import Effect, Scope
from approvals.models import Source
from approvals.rule_checks import MAX_NOTE, MAX_REASON, check_rule
from approvals.rules import Rule
from runs.end_users import end_user
from runs.errors import M3Error, ModelValidationError
from runs.models import Account, EndUser
from runs.models.exact import is_plain

VERSION: Final = 1
MAX_RULES: Final = 1000
"""Rules of one import."""
MAX_MISTAKES: Final = 20
"""Mistakes that are told at once."""

_FIELDS: Final = {"effect", "scope", "user_id", "target", "condition", "expires_at", "note", "suspended"}
_NEEDED: Final = {"effect", "target"}


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One rule as it is to be; `suspended` is why it is not to be in force."""

    rule: Rule
    note: str
    suspended: str


def read_entries(account: Account, data: Any) -> list[Entry]:
    """The rules of an export; end users whom it names are created. Must run inside a transaction.

    Raises ModelValidationError. `details["mistakes"]` has a {"rule", "message"} for each of the first MAX_MISTAKES
    rules that are wrong, by their numbers from 1; `details["rule"]` is the first of them.
    """
    if not isinstance(data, Mapping) or data.keys() != {"version", "rules"} or not _is_ours(data["version"]):
        raise ModelValidationError(f'Rules are imported as {{"version": {VERSION}, "rules": [...]}}.')
    rules = data["rules"]
    if not isinstance(rules, list | tuple) or len(rules) > MAX_RULES:
        raise ModelValidationError(f"An import is a list of at most {MAX_RULES:,} rules.")
    entries, mistakes = [], []
    for number, raw in enumerate(rules, start=1):
        try:
            entries.append(_entry(account, raw))
        except M3Error as error:
            mistakes.append({"rule": number, "message": error.message})
            if len(mistakes) == MAX_MISTAKES:
                break
    if mistakes:
        raise _wrong(mistakes)
    _check_distinct(entries)
    return entries


def _is_ours(version: Any) -> bool:
    return version == VERSION and not isinstance(version, bool)


def _wrong(mistakes: Sequence[Mapping[str, Any]]) -> ModelValidationError:
    first = mistakes[0]
    more = f" {_others(len(mistakes) - 1)} wrong." if len(mistakes) > 1 else ""
    return ModelValidationError(
        f"Rule {first['rule']}: {first['message']}{more} Nothing was imported.",
        details={"rule": first["rule"], "mistakes": list(mistakes)},
    )


def _others(count: int) -> str:
    return "Another one is" if count == 1 else f"{count} others are"


def _entry(account: Account, raw: Any) -> Entry:
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
    check_rule(rule, Source.API)
    note, suspended = _text(raw.get("note", ""), "note"), _text(raw.get("suspended", ""), "suspended")
    if len(note) > MAX_NOTE or len(suspended) > MAX_REASON:
        raise ModelValidationError(
            f"A note has at most {MAX_NOTE} characters, a reason to suspend at most {MAX_REASON}."
        )
    if suspended and rule.effect is not Effect.ALLOW:
        raise ModelValidationError("Only an allow can be suspended.")
    return Entry(rule=rule, note=note, suspended=suspended)


def _effect(word: Any) -> Effect:
    try:
        return Effect(word)
    except ValueError as error:
        raise ModelValidationError(f"The effect is one of: {', '.join(Effect)}.") from error


def _text(value: Any, name: str) -> str:
    if not isinstance(value, str) or not is_plain(value):
        raise ModelValidationError(f"The {name} is a text of whole characters.")
    return value


def _user(account: Account, user_id: Any) -> EndUser | None:
    return None if user_id is None else end_user(account, _text(user_id, "user_id"))


def _moment(value: Any) -> dt.datetime | None:
    if value is None:
        return None
    try:
        moment = parse_datetime(value) if isinstance(value, str) else None
        moment = moment.astimezone(dt.UTC) if moment and moment.tzinfo else None
    except (ValueError, OverflowError):  # no moment, or one before or after the calendar in UTC
        moment = None
    if moment is None:
        raise ModelValidationError(
            "expires_at is a moment with its zone, like 2030-05-06T00:00:00Z, or null."
        )
    return moment


def _check_distinct(entries: Sequence[Entry]) -> None:
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
