"""Facts of a run put into sentences. Pure: dictionaries from `load` in, values out."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from runs import recommended
from runs.timeline.load import LIMIT, Facts
from runs.timeline.values import Answer, Block, Tone

Words = tuple[str, str, Tone]
"""Icon, sentence, tone."""

_VERBS = {
    "tool": ("call", "Called", "Calling"),
    "prompt": ("get the prompt", "Got the prompt", "Getting the prompt"),
    "resource": ("read", "Read", "Reading"),
}


def of_call(step: Facts) -> Words:
    """An operation on a server, as far as it has come; its target stands beside the sentence."""
    infinitive, past, present = _VERBS[step["call__operation"]]
    match step["call__phase"]:
        case "done":
            return "check", past, "ok"
        case "failed" if step["status"] == "cancelled":
            return "cross", f"Cancelled before it could {infinitive}", "muted"
        case "failed":
            return "error", f"Failed to {infinitive}", "error"
        case "denied":
            return "cross", f"Was not allowed to {infinitive}", "error"
        case "unknown":
            return "outcome", "Nobody knows yet the outcome of", "error"
        case "sent":
            return "sending", present, "neutral"
        case "input_required":
            return "clock", "Was asked for input by", "warn"
    return "call", f"Wants to {infinitive}", "neutral"


def progress(step: Facts) -> str:
    """How far the server says that a call under way has come."""
    message = step["progress_message"] or ""
    if step["progress"] is None:
        return str(message)
    total = f" of {step['progress_total']}" if step["progress_total"] is not None else ""
    return f"{step['progress']}{total}{f': {message}' if message else ''}"


def why(verdict: Mapping[str, Any]) -> str:
    """Why the gate let the call pass, or asked (R14)."""
    reason, effect = str(verdict.get("reason", "")), verdict.get("effect")
    if not reason or effect == "deny":
        return ""
    return f"Allowed without asking: {reason}" if effect == "allow" else f"Why it asked: {reason}"


def of_step(step: Facts) -> Words:
    """A step that is no operation on a server."""
    status = step["status"]
    ended_badly = status in ("failed", "denied", "cancelled")
    match step["kind"]:
        case "say":
            return "say", "Says", "neutral"
        case "ask":
            if status is None:
                return "question", "Asks", "warn"
            return (
                "question",
                "Asked, without an answer" if ended_badly else "Asked",
                "muted" if ended_badly else "neutral",
            )
        case "plan":
            return _plan(step, status)
        case "sleep":
            return "clock", f"{'Waits' if status is None else 'Waited'} {step['seconds']} s", "muted"
        case "run":
            return (
                "run",
                f"Started the agent {step['child_agent']}",
                "error" if status == "failed" else "neutral",
            )
    return "say", step["kind"].capitalize(), "neutral"


def _plan(step: Facts, status: str | None) -> Words:
    name = "a plan" if step["revision"] in (None, "0", 0) else f"revision {step['revision']} of the plan"
    match status:
        case None:
            return "plan", f"Proposes {name}", "warn"
        case "approved":
            return "plan", f"Proposed {name}; it was approved", "ok"
        case "revise":
            return "plan", f"Proposed {name}; changes were asked for", "neutral"
    return "plan", f"Proposed {name}; it was not decided", "muted"


_PEOPLE = {"api": "The API", "parent run": "The parent run", "page": "Somebody", "deadline": "The deadline"}
"""Names of events that were not recorded for a person."""


def of_event(event: Facts) -> Words:
    """A line that stands between the steps: messages, changes of the mode, ends of turns."""
    who = _PEOPLE.get(event["actor_name"], event["actor_name"])
    match event["type"]:
        case "run.started":
            return "message", f"{who} started the run", "neutral"
        case "run.message":
            return "message", f"{who} replied", "neutral"
        case "run.mode":
            return "policy", f"{who} changed the mode from {event['old']} to {event['new']}", "neutral"
        case "run.completed":
            return "check", "The agent finished", "ok"
        case "run.timed_out":
            return "clock", "Timed out", "error"
        case "run.cancelled":
            return (
                "cross",
                f"{who} cancelled the run" if event["actor_name"] != "worker" else "Cancelled",
                "muted",
            )
        case "run.interrupted":
            return "error", "Interrupted", "error"
    return "error", "Failed", "error"


def of_note(event: Facts) -> str:
    """What happened within a step."""
    reason = f" {event['reason']}" if event["reason"] else ""
    match event["type"]:
        case "tool_call.restarted":
            return f"Called again from the beginning.{reason}"
        case "tool_call.repeated":
            return f"Called again, which is safe for this tool.{reason}"
        case "tool_call.run_again":
            return "Called again on a person's word."
        case "tool_call.answers_reused":
            return "The server asked the same again and got the answers given before."
        case "tool_call.task":
            return "The server took it on as a task and works on it by itself; it is asked from time to time."
        case "tool_call.task_cancelled":
            return str(event["reason"])
        case "tool_call.resumed":
            return "Its worker was gone; another one went on with the same session of the server."
        case "tool_call.unknown":
            return f"The outcome is unknown.{reason}"
    return f"{event['actor_name']} answered too late; nothing of it was used."


_ENDED: dict[str, tuple[str, Tone]] = {
    "allowed": ("{who} allowed it", "ok"),
    "denied": ("{who} denied it", "error"),
    "answered": ("{who} answered", "ok"),
    "timed_out": ("Nobody answered before the deadline", "error"),
    "cancelled": ("Cancelled with the run", "muted"),
    "superseded": ("No longer needed", "muted"),
    "recovery_unavailable": ("The session that waited for the answer was lost", "error"),
}

_WAITS = {
    "approval": "Waits for permission",
    "elicitation": "The server waits for input",
    "question": "Waits for an answer",
    "plan": "Waits for a word on the plan",
    "outcome": "Waits for a person to say what became of it",
}

_DELIVERY = {
    "response_validated": "not delivered yet",
    "delivery_started": "being delivered",
    "delivered": "delivered",
}


_VIA = {"page": " on the page", "api": " through the API"}


def of_round(round_: Facts) -> tuple[str, Tone, str]:
    """Sentence, tone, and how far the answer has travelled ("" once it has arrived or never will) (R4)."""
    if round_["status"] == "pending":
        return _WAITS[round_["kind"]], "warn", ""
    sentence, tone = _ENDED[round_["outcome"]]
    given = parsed(round_["given"]) or {}
    if round_["outcome"] == "answered":
        sentence, tone = _answered(round_["kind"], given, sentence, tone)
    if round_["decided_via"] == recommended.VIA and round_["outcome"] == "answered":
        sentence = "Nobody answered in time; what the agent recommended was taken"
    words = sentence.format(who=decider(round_))
    if "{who}" in sentence and round_["decided_by__username"]:
        words += _VIA.get(round_["decided_via"], "")
    return words, tone, _DELIVERY.get(round_["status"], "")


def by_policy(verdict: Mapping[str, Any]) -> str:
    """The beginning of a sentence that names the policy behind a word of the gate (R27)."""
    return {"allow": "Allowed by the policy:", "deny": "Denied by the policy:"}.get(
        verdict.get("effect", ""), "Asked because of the policy:"
    )


def rule_of(round_: Facts) -> tuple[str, int | None, str]:
    """The policy that ended an approval, or was remembered with it: how its naming begins, its id, and, where it was
    no policy that ended it, why it ended."""
    if round_["remembered"]:
        return "Remembered as the policy:", _id(round_["remembered_rule"]), ""
    policy_id = _id(round_["allowed_rule"])
    why = round_["allowed_by"] or ""
    # What a switch of the mode let go may be covered by a policy too; the switch is why it ended.
    return "Allowed by the policy:", policy_id, "" if policy_id and round_["decided_via"] == "rule" else why


def _id(text: str | int | None) -> int | None:
    return int(text) if text is not None else None


def decider(round_: Facts) -> str:
    """Who ended a round, as the first word of a sentence."""
    via = round_["decided_via"]
    others = {
        "rule": "A policy",
        "mode": "The change of the mode",
        "worker": "The worker",
        "python": "A program",
        "plan": "An answer given in advance",
        "": "Somebody",
    }
    return str(round_["decided_by__username"] or others.get(via, via))


def _answered(kind: str, given: dict[str, Any], sentence: str, tone: Tone) -> tuple[str, Tone]:
    response: dict[str, Any] = next(iter(given.values()), {})
    decision = (response.get("content") or {}).get("decision")
    if kind == "plan" and decision is not None:
        return (
            ("{who} approved the plan", "ok")
            if decision == "approve"
            else ("{who} asked for changes", "neutral")
        )
    if kind == "outcome" and decision is not None:
        words = {
            "happened": "said that it happened",
            "run_again": "said to run it again",
            "stop": "stopped the run",
        }
        return f"{{who}} {words.get(decision, 'answered')}", tone
    actions = {one.get("action") for one in given.values()}
    if actions == {"decline"}:
        return "{who} declined", "error"
    if actions == {"cancel"}:
        return "{who} put it off", "muted"
    return sentence, tone


def answers_of(round_: Facts) -> Iterator[Answer]:
    """What a person put into the fields of an elicitation, or chose for the agent's questions."""
    asked, given = parsed(round_["asked"]), parsed(round_["given"])
    if round_["kind"] not in ("elicitation", "question") or not isinstance(given, dict):
        return
    for key, response in given.items():
        request = (asked or {}).get(key, {})
        message = str(request.get("message") or key)
        action, content = response.get("action", ""), response.get("content")
        if round_["kind"] == "question":
            yield Answer(label=message, text="" if action == "accept" else action, action=action)
        elif content:
            yield from (
                Answer(label=_title(request, name), text=plain(value)) for name, value in content.items()
            )
        else:
            yield Answer(
                label=message, text="agreed to open the page" if action == "accept" else action, action=action
            )


def _title(request: Facts, name: str) -> str:
    """A field as its form named it, with the name that was sent; a server's titles need not be unique."""
    properties = (request.get("requested_schema") or {}).get("properties")
    field = properties.get(name) if isinstance(properties, dict) else None
    title = field.get("title") if isinstance(field, dict) else None
    return f"{title} ({name})" if isinstance(title, str) and title.strip() and title != name else name


def chosen(text: str | None) -> Iterator[Answer]:
    """The agent's questions with the labels that were chosen."""
    answers = parsed(text)
    if isinstance(answers, dict):
        yield from (Answer(label=question, text=plain(value)) for question, value in answers.items())


def questions_of(text: str | None) -> str:
    """The questions of an ask step, one a line."""
    asked = parsed(text)
    if not isinstance(asked, list):
        return cut(text or "")
    return "\n".join(str(one.get("question", "")) for one in asked if isinstance(one, dict))


def block(label: str, text: str | None, part: str) -> Iterator[Block]:
    """A folded text, complete if it fits, else its beginning with `part` for the whole."""
    if text is None or text in ("", "{}", "null"):
        return
    if len(text) > LIMIT:
        yield Block(label=label, text=cut(text), part=part)
        return
    value = parsed(text)
    yield Block(label=label, text=pretty(value) if isinstance(value, dict | list) else text)


def pretty(value: Any) -> str:
    """JSON for the eye: indented, letters of any script as themselves."""
    return json.dumps(value, ensure_ascii=False, indent=2)


def plain(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(plain(item) for item in value)
    return value if isinstance(value, str) else pretty(value)


def parsed(text: Any) -> Any:
    """The JSON value in a text that may have been cut; None if it is not JSON."""
    try:
        return json.loads(text) if isinstance(text, str) else text
    except ValueError:
        return None


def cut(text: str) -> str:
    return text if len(text) <= LIMIT else f"{text[:LIMIT]}…"
