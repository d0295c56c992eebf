"""The last decisions on calls in an account, human and automatic, for replaying a rule over them.

What counts as a decision is what the runs' events say: `permission_resolved` (a person, or a rule or a switch of mode
that closed a pause), `tool_call.allowed` and `tool_call.denied` (the gate at once). One call counts once, with the last
word on it. A pause that nobody answered, or that was cancelled, is no decision. Prompts and resources are calls too.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from approvals.facts import covers
from runs.models import Account, Event, ToolCall
from runs.round_states import RoundOutcome

DECISIONS: Final = 500
"""Calls that a rule is replayed over."""

_RESOLVED, _ALLOWED, _DENIED = "permission_resolved", "tool_call.allowed", "tool_call.denied"
_SAID: Final = {"step", "tool"}
_Key = tuple[int, int]


@dataclass(frozen=True, kw_only=True)
class PastCall:
    """A call that was decided: what the agent asked for, and how that ended.

    `person` is who decided, "" if nobody did; `round_id` is the pause that they decided, if there was one.
    """

    run_id: int
    step: int
    at: dt.datetime
    target: str
    operation: str
    arguments: Mapping[str, Any]
    user_id: str | None
    allowed: bool
    person: str
    round_id: str | None

    @property
    def denied_by_person(self) -> bool:
        return not self.allowed and bool(self.person)


@dataclass(frozen=True, kw_only=True)
class History:
    """The last decisions: how many there are (at most DECISIONS), and those that a target is about, newest first."""

    looked_at: int
    calls: tuple[PastCall, ...]

    def about(self, target: str) -> History:
        """The same decisions, with the calls of a narrower target."""
        return replace(self, calls=tuple(call for call in self.calls if covers(target, call.target)))


@dataclass(frozen=True, kw_only=True)
class _Word:
    at: dt.datetime
    target: str
    allowed: bool
    person: str = ""
    round_id: str | None = None


def last_decisions(account: Account, target: str) -> History:
    """The last DECISIONS decided calls of the account, with those of `target` (`server` or `server:tool`)."""
    words = _last_words(account)
    about = {key: word for key, word in words.items() if covers(target, word.target)}
    server, _, tool = target.partition(":")
    rows = ToolCall.objects.filter(
        step__run__in={run for run, _ in about}, server_name=server, **({"name": tool} if tool else {})
    ).values_list("step__run", "step__seq", "operation", "asked", "step__run__end_user__user_id")
    asked = {(run, seq): facts for run, seq, *facts in rows if (run, seq) in about}
    calls = tuple(_past(key, word, *asked[key]) for key, word in about.items() if key in asked)
    return History(looked_at=len(words), calls=calls)


def _past(key: _Key, word: _Word, operation: str, asked: dict[str, Any], user_id: str | None) -> PastCall:
    return PastCall(
        run_id=key[0],
        step=key[1],
        at=word.at,
        target=word.target,
        operation=operation,
        arguments=asked,
        user_id=user_id,
        allowed=word.allowed,
        person=word.person,
        round_id=word.round_id,
    )


def _last_words(account: Account) -> dict[_Key, _Word]:
    """The last word on each of the last calls, newest first.

    A denied call has two events, the person's and then the gate's; so twice as many are read.
    """
    events = (
        Event.objects.filter(account=account, type__in=[_RESOLVED, _ALLOWED, _DENIED])
        .order_by("-pk")
        .values_list("run", "type", "payload", "actor_name", "at")[: 2 * DECISIONS]
    )
    words: dict[_Key, _Word] = {}
    for run, type_, payload, actor_name, at in events:
        if not payload.keys() >= _SAID:
            continue  # told before events named their call; nothing can be replayed
        key, word = (run, payload["step"]), _word(type_, payload, actor_name, at)
        later = words.get(key)
        if _carried_out(later, word) if later else len(words) < DECISIONS:
            words[key] = word
    return words


def _carried_out(later: _Word, earlier: _Word) -> bool:
    """Whether the later word is the gate's, doing what a person had decided: a denial has two events."""
    return not later.person and not later.allowed and bool(earlier.person) and not earlier.allowed


def _word(type_: str, payload: Mapping[str, Any], actor_name: str, at: dt.datetime) -> _Word:
    if type_ != _RESOLVED:
        return _Word(at=at, target=payload["tool"], allowed=type_ == _ALLOWED)
    return _Word(
        at=at,
        target=payload["tool"],
        allowed=payload["resolved_status"] == RoundOutcome.ALLOWED,
        person="" if payload["automatic"] else actor_name,
        round_id=payload["request_id"],
    )
