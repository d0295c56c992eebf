"""The requests of our own pauses, as the same keyed JSON Schema forms that a server elicits (design section 1).

Plain module. One validator then serves every kind, and nobody needs to know which code may answer which pause.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Requests = dict[str, dict[str, Any]]

APPROVAL_KEY = "approval"
PLAN_KEY = "plan"
OUTCOME_KEY = "outcome"
LEGACY_KEY = "elicitation"

MAX_WORDS = 10_000
"""Characters of free text that one answer may carry."""

_TEXT = {"type": "string", "maxLength": MAX_WORDS}


def form(key: str, message: str, properties: Mapping[str, Any], required: Sequence[str]) -> dict[str, Any]:
    """One form request in the stored shape (C9)."""
    return {
        "request_key": key,
        "mode": "form",
        "message": message,
        "requested_schema": {
            "type": "object",
            "properties": dict(properties),
            "required": list(required),
            "additionalProperties": False,
        },
    }


def _decision(*words: str) -> dict[str, Any]:
    return {"type": "string", "enum": list(words)}


def approval(message: str) -> Requests:
    """Allow or deny one call. A deny is an accepted form that says deny."""
    properties = {"decision": _decision("allow", "deny"), "feedback": _TEXT, "arguments": {"type": "object"}}
    return {APPROVAL_KEY: form(APPROVAL_KEY, message, properties, ["decision"])}


def plan(text: str, modes: Sequence[str] = ()) -> Requests:
    """Approve a plan or ask for another one; an approval may name which of `modes` the run goes on in, as `then`."""
    properties = {"decision": _decision("approve", "revise"), "text": _TEXT}
    if not modes:
        return {PLAN_KEY: form(PLAN_KEY, text, properties, ["decision"])}
    request = form(PLAN_KEY, text, {**properties, "then": _decision(*modes)}, ["decision"])
    request["requested_schema"]["anyOf"] = [
        {"properties": {"decision": {"const": "approve"}}},
        {"not": {"required": ["then"]}},
    ]
    return {PLAN_KEY: request}


def outcome(message: str) -> Requests:
    properties = {"decision": _decision("happened", "run_again", "stop"), "text": _TEXT}
    return {OUTCOME_KEY: form(OUTCOME_KEY, message, properties, ["decision"])}


def questions(asked: Sequence[Mapping[str, Any]]) -> Requests:
    """`q0`..`q3`, one per question: the indexes of the chosen options and, beside them, other text (R22)."""
    return {f"q{number}": _question(f"q{number}", question) for number, question in enumerate(asked)}


def _question(key: str, question: Mapping[str, Any]) -> dict[str, Any]:
    last = len(question.get("options", ())) - 1
    choices: dict[str, Any] = {"type": "integer", "minimum": 0, "maximum": last} if last >= 0 else {"not": {}}
    selected: dict[str, Any] = {"type": "array", "items": choices, "uniqueItems": True}
    if not question.get("multiSelect"):
        selected["maxItems"] = 1
    request = form(
        key,
        str(question["question"]),
        {"selected": selected, "other": {**_TEXT, "minLength": 1}},
        ["selected"],
    )
    # R22: no selection and no text is not an answer.
    request["requested_schema"]["anyOf"] = [
        {"properties": {"selected": {"minItems": 1}}},
        {"required": ["other"]},
    ]
    return request


def answers(asked: Sequence[Mapping[str, Any]], responses: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """What the agent gets: {question text: label | [labels] | the other text}.

    A declined or cancelled question is absent. Other text beside chosen options joins a multi-select's list and
    replaces the single choice.
    """
    given: dict[str, Any] = {}
    for number, question in enumerate(asked):
        response = responses.get(f"q{number}", {})
        content = response.get("content") or {}
        if response.get("action") != "accept":
            continue
        labels = [question["options"][index]["label"] for index in content["selected"]]
        other = [content["other"]] if content.get("other") else []
        given[str(question["question"])] = (
            labels + other if question.get("multiSelect") else (other + labels)[0]
        )
    return given
