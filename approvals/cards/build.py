"""Round -> Row and Round -> Card: the one source of what pages show of a pause."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping
from typing import Any, Final

from django.conf import settings
from django.utils import timezone

from approvals.cards import wording
from approvals.cards.arguments import arguments_table
from approvals.cards.changed import changed_fields
from approvals.cards.remember import remember_choices
from approvals.cards.states import ending_of, events_of, history_of, state_of
from approvals.cards.values import Arguments, Asked, Card, Option, Question, RiskTag, Row
from runs import recommended, requests
from runs.access import Actor
from runs.models import Round
from runs.readable import is_readable
from runs.requests import APPROVAL_KEY, PLAN_KEY
from runs.risk import Risk
from runs.round_states import RoundKind, RoundStatus
from runs.run_states import PermissionMode
from runs.visible import url_warnings, visible

URGENT: Final = dt.timedelta(minutes=5)

DAMAGED: Final = "This request cannot be read"
"""The headline of a pause whose row was damaged (C46)."""

_DAMAGED_TAG: Final = ("Damaged", "warn")

_KIND_TAGS: Final = {
    RoundKind.ELICITATION: ("Form", "form"),
    RoundKind.QUESTION: ("Question", "question"),
    RoundKind.PLAN: ("Plan", "plan"),
    RoundKind.OUTCOME: ("Unknown result", "outcome"),
    RoundKind.APPROVAL: ("Approval", "approval"),
}


def row_for(round_: Round, *, now: dt.datetime | None = None) -> Row:
    """A line of the list; needs no query beyond `Round.objects.for_cards()`."""
    now = now or timezone.now()
    damaged = not is_readable(round_)
    risk = None if damaged else _risk(round_)
    tag, icon = _DAMAGED_TAG if damaged else _tag(round_)
    left = round_.ends_at - now if round_.ends_at else None
    return Row(
        id=round_.pk,
        kind=round_.kind,
        version=round_.version,
        icon=risk.icon if risk else icon,
        tone=risk.icon if risk else ("warn" if damaged or round_.kind == RoundKind.OUTCOME else "info"),
        tone_word=risk.word if risk else tag,
        headline=DAMAGED if damaged else _headline(round_),
        sub=" · ".join(_from(round_) if damaged else _sub(round_)),
        created_at=round_.created_at,
        deadline=round_.ends_at,
        age=wording.length_words((now - round_.created_at).total_seconds()),
        left=_left(left),
        urgent=left is not None and left < URGENT,
    )


def card_for(round_: Round, actor: Actor, *, now: dt.datetime | None = None) -> Card:
    """Everything that the card of `round_` shows to `actor`; a query for the history, a few for the rules on offer."""
    events = events_of(round_)
    damaged = not is_readable(round_)
    context: Mapping[str, Any] = {} if damaged else round_.context
    pending = round_.status == RoundStatus.PENDING
    return Card(
        row=row_for(round_, now=now),
        tag=(_DAMAGED_TAG if damaged else _tag(round_))[0],
        risk=None if damaged else _risk(round_),
        state=state_of(round_),
        pending=pending,
        controls=pending and actor.can_decide and not damaged,
        damaged=damaged,
        agent=visible(round_.run.agent.name),
        end_user=_end_user(round_),
        run_id=round_.run_id,
        step=round_.step.seq if round_.step else None,
        asked_by=events[0].actor_name if events else "worker",
        tool=visible(str(context.get("tool") or _operation(round_))),
        server=visible(round_.server_name),
        server_address=visible(str(context.get("server_address") or "")),
        mode=str(context.get("mode") or round_.run.mode),
        digest=round_.shown_digest,
        ending=None if damaged else ending_of(round_, events),
        history=history_of(events),
        **({"why": ""} if damaged else _of_kind(round_, pending and actor.can_decide)),
        **({} if damaged else changed_fields(round_, actor)),
    )


def _of_kind(round_: Round, controls: bool) -> dict[str, Any]:
    """The fields that only one kind of card has."""
    kind = RoundKind(round_.kind)
    if kind is RoundKind.APPROVAL:
        return _approval(round_, controls)
    if kind is RoundKind.QUESTION:
        why = "The agent needs an answer to go on."
        return {"why": why, "questions": questions_of(round_), "goes_on": _goes_on(round_)}
    if kind is RoundKind.PLAN:
        return _plan(round_)
    if kind is RoundKind.OUTCOME:
        return _outcome(round_)
    return {"why": f"{_asker(round_)} asked for input while it ran.", "asked": asked_of(round_)}


def _approval(round_: Round, controls: bool) -> dict[str, Any]:
    context = round_.context
    verdict: Mapping[str, Any] = context.get("verdict") or {}
    edited = ((round_.responses or {}).get(APPROVAL_KEY, {}).get("content") or {}).get("arguments")
    arguments: Mapping[str, Any] = context.get("arguments") or {}
    return {
        "why": visible(str(verdict.get("reason") or "")),
        "description": visible(str(context.get("description") or "")),
        "arguments": arguments_table(arguments, context.get("last_allowed")),
        "edited": arguments_table(edited, arguments) if edited is not None else None,
        "remember": remember_choices(round_) if controls else (),
        "strict": verdict.get("risk") == Risk.STRICT,
    }


def _plan(round_: Round) -> dict[str, Any]:
    context = round_.context
    return {
        "why": "The run is in plan mode: nothing but safe calls until a plan is approved.",
        "plan": visible(str(context.get("text") or "")),
        "revision": int(context.get("revision") or 0),
        "feedback": visible(str(context.get("feedback") or "")),
        "then": _modes_of(round_),
    }


def _modes_of(round_: Round) -> tuple[tuple[str, str], ...]:
    """The modes that an approval may name, each with what it means; a plan from before there was a choice has none."""
    properties = round_.requests[PLAN_KEY]["requested_schema"]["properties"]
    modes = map(PermissionMode, properties.get("then", {}).get("enum", ()))
    return tuple((mode.value, mode.describe) for mode in modes)


def _outcome(round_: Round) -> dict[str, Any]:
    return {
        "why": visible(str(round_.context.get("reason") or "")),
        "arguments": arguments_table(round_.context.get("arguments") or {}),
    }


def questions_of(round_: Round, typed: Mapping[str, Any] | None = None) -> tuple[Question, ...]:
    """The agent's questions with what was chosen: by the answer, else in `typed`, else in a draft."""
    given = round_.responses or typed or round_.drafts
    return tuple(
        _question(number, question, given.get(f"q{number}") or {})
        for number, question in enumerate(round_.context.get("questions") or [])
    )


def _goes_on(round_: Round) -> str:
    """The answers that are taken if nobody gives others; "" if people are waited for, or the deadline comes first."""
    taken = recommended.responses(round_.context.get("questions") or [])
    if round_.continue_at is None or round_.continue_at != round_.ends_at or taken is None:
        return ""
    given = requests.answers(round_.context["questions"], taken)
    return "; ".join(
        visible(", ".join(answer) if isinstance(answer, list) else str(answer)) for answer in given.values()
    )


def _question(number: int, question: Mapping[str, Any], response: Mapping[str, Any]) -> Question:
    content: Mapping[str, Any] = response.get("content") or {}
    chosen = content.get("selected") or []
    return Question(
        number=number,
        key=f"q{number}",
        header=visible(str(question.get("header") or "")),
        text=visible(str(question.get("question") or "")),
        multiple=bool(question.get("multiSelect")),
        options=tuple(
            Option(
                index=index,
                label=visible(str(option.get("label") or "")),
                description=visible(str(option.get("description") or "")),
                chosen=index in chosen,
            )
            for index, option in enumerate(question.get("options") or [])
        ),
        other=visible(str(content.get("other") or "")),
    )


def asked_of(round_: Round) -> tuple[Asked, ...]:
    """The keyed requests in a stable order (that of storage), numbered so that keys never name anything (R15)."""
    given = round_.responses or round_.drafts
    return tuple(
        Asked(
            number=number,
            key=key,
            mode=str(request.get("mode") or "form"),
            message=visible(str(request.get("message") or "")),
            url=url_warnings(str(request.get("url") or ""), allow_http_loopback=settings.M3.demo)
            if request.get("mode") == "url"
            else None,
            draft=(given.get(key) or {}).get("action"),
            given=_given(round_, key),
            may_open=_may_open(round_, (given.get(key) or {}).get("action")),
        )
        for number, (key, request) in enumerate(round_.requests.items())
    )


def _may_open(round_: Round, action: str | None) -> bool:
    return action == "accept" or (action is None and round_.status == RoundStatus.PENDING)


def _given(round_: Round, key: str) -> Arguments | None:
    content = ((round_.responses or round_.drafts).get(key) or {}).get("content")
    return arguments_table(content) if content else None


def _headline(round_: Round) -> str:
    context: Mapping[str, Any] = round_.context
    kind = RoundKind(round_.kind)
    if kind is RoundKind.QUESTION:
        return wording.questions_headline(
            [str(asked.get("question") or "") for asked in context.get("questions") or [{}]]
        )
    if kind is RoundKind.PLAN:
        return wording.plan_headline(str(context.get("text") or ""))
    if kind is RoundKind.ELICITATION:
        return wording.requests_headline(_asker(round_), list(round_.requests.values()))
    name = str(context.get("tool") or _operation(round_)).partition(":")[2]
    call = wording.call_headline(str(context.get("title") or ""), name, context.get("arguments") or {})
    return call if kind is RoundKind.APPROVAL else f"Did this happen? {call}"


def _from(round_: Round) -> Iterable[str]:
    yield visible(round_.run.agent.name)
    if round_.server_name:
        yield visible(round_.server_name)
    if user := _end_user(round_):
        yield f"for {user}"


def _sub(round_: Round) -> Iterable[str]:
    yield from _from(round_)
    kind = RoundKind(round_.kind)
    if kind is RoundKind.ELICITATION:
        yield _ask_words(round_)
    elif kind is RoundKind.QUESTION:
        asked = round_.context.get("questions") or []
        yield wording.counted(sum(len(one.get("options") or []) for one in asked), "option")
    elif kind is RoundKind.PLAN and round_.context.get("revision"):
        yield f"revision {round_.context['revision']}"


def _ask_words(round_: Round) -> str:
    requests = list(round_.requests.values())
    if len(requests) > 1:
        return wording.counted(len(requests), "request")
    if requests[0].get("mode") == "url":
        return "link"
    schema = requests[0].get("requested_schema")
    fields = schema.get("properties") if isinstance(schema, dict) else None
    return f"form, {wording.counted(len(fields), 'field')}" if isinstance(fields, dict) else "form"


def _tag(round_: Round) -> tuple[str, str]:
    modes = {request.get("mode") for request in round_.requests.values()}
    if round_.kind == RoundKind.ELICITATION and modes == {"url"}:
        return "Link", "link"
    return _KIND_TAGS[RoundKind(round_.kind)]


def _risk(round_: Round) -> RiskTag | None:
    word = (round_.context.get("verdict") or {}).get("risk")
    if round_.kind != RoundKind.APPROVAL or word not in list(Risk):
        return None
    return RiskTag.of(Risk(word))


def _left(left: dt.timedelta | None) -> str | None:
    if left is None:
        return None
    return f"{wording.length_words(left.total_seconds())} left" if left > dt.timedelta(0) else "time is up"


def _end_user(round_: Round) -> str | None:
    return visible(round_.run.end_user.user_id) if round_.run.end_user else None


def _operation(round_: Round) -> str:
    return f"{round_.server_name}:{round_.operation_name}" if round_.operation_name else ""


def _asker(round_: Round) -> str:
    return visible(round_.server_name or "A local tool")
