"""How m8tes clients see pauses: as permission requests, one per key (m8tes-http 2; design section 1).

Rows in, values out; nothing is changed, and nothing is asked of the database that `Round.objects.for_cards()` has not
brought along. What an agent or a server wrote is data in `tool_input`; everything that is meant to be shown comes with
hidden characters written out and bounded in length, and is plain text.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from django.conf import settings

from approvals.answer_words import answers_at_once, answers_of
from approvals.asked_questions import AskedQuestion, of_agent, questions_of
from approvals.cards.arguments import arguments_table
from approvals.cards.wording import call_headline, cut, humanise
from approvals.facts import Scope
from runs import recommended
from runs.asked import QUESTION_TOOL, tool_use_id
from runs.models import Round, Run, Step
from runs.readable import is_readable
from runs.redaction import redact
from runs.risk import Risk
from runs.round_states import RoundKind, RoundOutcome, RoundStatus
from runs.visible import url_warnings, visible

URL_TOOL: Final = "UrlElicitation"
"""The tool name of a link that a server wants opened; to allow it is to consent."""

PENDING: Final = "pending"
ALLOWED: Final = "allowed"
DENIED: Final = "denied"
CANCELLED: Final = "cancelled"
TIMEOUT: Final = "timeout"

AUTOMATIC: Final = frozenset({recommended.VIA, "plan", "rule", "mode"})
"""Ways in which a pause is answered without a person: a recommendation, an answer given in advance, a rule, a mode."""

_MAX_FIELDS: Final = 50
_MAX_VALUE: Final = 2_000
_MAX_WORDS: Final = 1_000

_ENDED: Final[Mapping[str, str]] = {
    RoundOutcome.ALLOWED: ALLOWED,
    RoundOutcome.DENIED: DENIED,
    RoundOutcome.TIMED_OUT: TIMEOUT,
    RoundOutcome.CANCELLED: CANCELLED,
    RoundOutcome.SUPERSEDED: CANCELLED,
    RoundOutcome.RECOVERY_UNAVAILABLE: CANCELLED,
}
_OF_ACTION: Final = {"accept": ALLOWED, "decline": DENIED, "cancel": CANCELLED}


@dataclass(frozen=True, kw_only=True)
class PermissionRequest:
    """One thing that a client decides: the names and meanings of m8tes-http 2.

    `key` is the request of the pause that it stands for. `timeout_seconds` is how long it waits in all, None for ever.
    """

    request_id: str
    tool_name: str
    status: str
    tool_input: Mapping[str, Any] | None
    key: str
    created_at: dt.datetime
    resolved_at: dt.datetime | None = None
    tool_use_id: str | None = None
    auto_resolved: bool = False
    remembered: bool | None = None
    agent_type: str | None = None
    display_name: str = ""
    mate_name: str | None = None
    task_name: str | None = None
    consequence: str = ""
    ask_reason: str = ""
    surface: str = "command"
    surface_label: str | None = None
    fields: Sequence[tuple[str, str]] = ()
    prose: str | None = None
    script: None = None
    can_remember: bool = False
    remember_default: bool = False
    timeout_seconds: int | None = None


def requests_of(round_: Round) -> list[PermissionRequest]:
    """The requests of a pause as they are now, in its own order; the questions of an agent are one request.

    A damaged row has none: there is nothing that could be decided (C46).
    """
    if not is_readable(round_):
        return []
    keys = list(round_.requests)
    if round_.kind == RoundKind.QUESTION:
        return [_request(round_, keys[0], round_.pk)]
    if len(keys) == 1:
        return [_request(round_, keys[0], round_.pk)]
    return [_request(round_, key, f"{round_.pk}:{key}") for key in keys]


def ask_id(run_id: int, seq: int) -> str:
    """The `request_id` of an ask that did not wait; no pause stands behind it."""
    return f"ask_{run_id}_{seq}"


def request_of_ask(run: Run, step: Step) -> PermissionRequest:
    """An ask that did not wait, answered in the moment in which it was made (m8tes-http 4.5)."""
    asked = step.params["questions"]
    questions = of_agent(asked)
    answers = answers_at_once(questions, asked, (step.result or {}).get("answers") or {})
    return PermissionRequest(
        request_id=ask_id(run.pk, step.seq),
        tool_name=QUESTION_TOOL,
        status=ALLOWED,
        tool_input=_asks(questions, answers),
        key="",
        created_at=step.created_at,
        resolved_at=step.finished_at,
        tool_use_id=tool_use_id(run.pk, step.seq),
        auto_resolved=True,
        remembered=False,
        display_name="Question",
        **_of_run(run),
    )


def scope_of(run: Run) -> Scope:
    """Where a remembered decision of this run is kept: with its end user, or for runs that carry none."""
    return Scope.ACCOUNT if run.end_user_id is None else Scope.USER


def _request(round_: Round, key: str, request_id: str) -> PermissionRequest:
    status = _status(round_, key)
    ended = None if status == PENDING else _ended_at(round_)
    wait = round_.ends_at - round_.created_at if round_.ends_at else None
    return PermissionRequest(
        request_id=request_id,
        status=status,
        key=key,
        created_at=round_.created_at,
        resolved_at=ended,
        tool_use_id=tool_use_id(round_.run_id, round_.step.seq) if round_.step else None,
        auto_resolved=ended is not None and round_.decided_via in AUTOMATIC,
        remembered=None if ended is None else "remembered" in round_.context,
        timeout_seconds=int(wait.total_seconds()) if wait else None,
        **_of_run(round_.run),
        **_of_kind(round_, key, pending=status == PENDING),
    )


def _status(round_: Round, key: str) -> str:
    """A part of a pause that is answered is resolved, although the pause waits for its other parts."""
    if round_.status == RoundStatus.PENDING:
        draft = round_.drafts.get(key)
        return _answered(draft) if draft is not None else PENDING
    if round_.outcome != RoundOutcome.ANSWERED:
        return _ENDED[round_.outcome or ""]
    return _answered((round_.responses or {}).get(key) or {})


def _answered(response: Mapping[str, Any]) -> str:
    """A plan that is sent back is not allowed, although its form was filled in."""
    if (response.get("content") or {}).get("decision") == "revise":
        return DENIED
    return _OF_ACTION[response.get("action", "accept")]


def _ended_at(round_: Round) -> dt.datetime:
    return round_.response_validated_at or round_.failed_at or round_.updated_at


def _of_run(run: Run) -> dict[str, Any]:
    name = visible(run.agent.name)
    task = run.task.name if run.task_id and run.task else ""
    return {
        "mate_name": name,
        "task_name": visible(task) or None,
        "agent_type": name if run.parent_id else None,
    }


def _of_kind(round_: Round, key: str, *, pending: bool) -> dict[str, Any]:
    if round_.kind == RoundKind.APPROVAL:
        return _approval(round_, pending=pending)
    asker = visible(round_.server_name) or "The agent"
    if round_.requests[key].get("mode") == "url":
        return _link(round_, round_.requests[key], asker)
    questions = questions_of(round_, key)
    request = round_.requests[key]
    form = round_.kind == RoundKind.ELICITATION
    message = cut(visible(str(request.get("message") or "")), _MAX_WORDS) if form else None
    return {
        "tool_name": QUESTION_TOOL,
        "tool_input": _asks(questions, answers_of(round_, key, questions), message=message),
        "display_name": _ASKING[RoundKind(round_.kind)],
        "ask_reason": f"{asker} asked for input while it ran." if form else _why(round_),
        "surface_label": _surface(round_),
        "prose": message if pending and form else None,
    }


_ASKING: Final = {
    RoundKind.QUESTION: "Question",
    RoundKind.PLAN: "Plan",
    RoundKind.OUTCOME: "Unknown result",
    RoundKind.ELICITATION: "Form",
}


def _why(round_: Round) -> str:
    return cut(visible(str(round_.context.get("reason") or "")), _MAX_WORDS)


def _approval(round_: Round, *, pending: bool) -> dict[str, Any]:
    context = round_.context
    verdict: Mapping[str, Any] = context.get("verdict") or {}
    arguments: Mapping[str, Any] = context.get("arguments") or {}
    title, name = str(context.get("title") or ""), round_.operation_name
    can_remember = scope_of(round_.run).value in (verdict.get("remember") or [])
    risk = verdict.get("risk")
    headline, rows = call_headline(title, name, redact(arguments)), arguments_table(redact(arguments)).rows
    return {
        "tool_name": f"{round_.server_name}:{name}",
        "tool_input": dict(arguments),
        "display_name": cut(visible(title.strip() or humanise(name)), _MAX_WORDS),
        "consequence": Risk(risk).describe if risk in list(Risk) else "",
        "ask_reason": cut(visible(str(verdict.get("reason") or "")), _MAX_WORDS),
        "surface_label": _surface(round_),
        "fields": [
            (humanise(row.name), row.text if len(row.text) <= _MAX_VALUE else f"{row.text[:_MAX_VALUE]}…")
            for row in rows[:_MAX_FIELDS]
        ]
        + ([("…", f"{len(rows) - _MAX_FIELDS} more")] if len(rows) > _MAX_FIELDS else []),
        "prose": headline if pending else None,
        "can_remember": can_remember,
        "remember_default": can_remember and bool(verdict.get("remember_preselected")),
    }


def _link(round_: Round, request: Mapping[str, Any], asker: str) -> dict[str, Any]:
    """`url` is there only if a browser would open what is shown; else `shown` and `warnings` say why not (R41)."""
    view = url_warnings(str(request.get("url") or ""), allow_http_loopback=settings.M3.demo)
    address = f"{view.before_host}{view.host}{view.after_host}"
    message = cut(visible(str(request.get("message") or "")), _MAX_WORDS)
    return {
        "tool_name": URL_TOOL,
        "tool_input": {
            "url": view.href,
            "shown": address,
            "host": view.host_ascii,
            "warnings": list(view.warnings),
            "message": message,
        },
        "display_name": "Open a page",
        "consequence": "Allowing it tells the server that a person agreed to open this page.",
        "ask_reason": f"{asker} asked for this while it ran.",
        "surface_label": _surface(round_),
        "fields": [("Address", cut(address, _MAX_VALUE))],
        "prose": message or None,
    }


def _surface(round_: Round) -> str | None:
    """Which server it is about, and what that server really is (R14)."""
    if not round_.server_name:
        return None
    address = visible(str(round_.context.get("server_address") or ""))
    return f"{visible(round_.server_name)} ({address})" if address else visible(round_.server_name)


def _asks(
    questions: Sequence[AskedQuestion], answers: Mapping[str, str], *, message: str | None = None
) -> dict[str, Any]:
    asks: dict[str, Any] = {"questions": [question.as_json() for question in questions]}
    if message is not None:
        asks["message"] = message
    return {**asks, "answers": dict(answers)} if answers else asks
