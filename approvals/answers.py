"""What a card posted, read into answers: no rule about who may decide, and no validation that a service does.

A card posts everything it shows in one form, so that a refused or half-finished answer keeps what was typed (R22,
R46). Names of inputs come from us (`q0`, `r1`), never from a request's key (R15).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from django.http import QueryDict

from approvals.cards.remember import REMEMBER_DAYS
from approvals.decisions import Remember
from approvals.forms import ElicitationForm, arguments_form
from runs.errors import ManagedInputValidationError
from runs.models import Round
from runs.requests import APPROVAL_KEY, OUTCOME_KEY, PLAN_KEY
from runs.round_states import RoundKind

Response = dict[str, Any]

_ACTIONS: Final = ("accept", "decline", "cancel")
WHOLE: Final = "card-actions"
"""The anchor of an error that no field stands for: the buttons, which is where one tries again."""


RULES: Final = "remember-rules"
"""The anchor of an error about the rule to remember: all the ways to remember, with what each would do."""

_ALWAYS: Final[Mapping[str, Remember]] = {
    "run": Remember(scope="run"),
    **{scope: Remember(scope=scope) for scope in ("user", "account")},
    **{
        f"{scope}:{REMEMBER_DAYS}": Remember(scope=scope, days=REMEMBER_DAYS) for scope in ("user", "account")
    },
}
REMEMBERABLE: Final[Mapping[str, Remember]] = {
    **_ALWAYS,
    **{f"{value}:exactly": replace(remember, exactly=True) for value, remember in _ALWAYS.items()},
}
"""What the page's choices post."""


@dataclass(frozen=True, kw_only=True)
class Problem:
    """One line of the error summary: the id of the element that it leads to, and what to do there."""

    anchor: str
    message: str


@dataclass(frozen=True, kw_only=True)
class Posted:
    """What a person wants: `responses` for the whole pause, or a `draft` for one of its requests.

    With `problems` there is neither; then `forms` (by number of the request, or 0 for edited arguments) hold what
    was typed, with their errors.
    """

    responses: Mapping[str, Response] = field(default_factory=dict)
    draft: tuple[str, Response] | None = None
    remember: Remember | None = None
    note: str = ""
    problems: Sequence[Problem] = ()
    forms: Mapping[int, ElicitationForm] = field(default_factory=dict)


def read_post(round_: Round, post: QueryDict) -> Posted:
    """Read the form of `round_`'s card."""
    kind = RoundKind(round_.kind)
    if kind is RoundKind.APPROVAL:
        return _approval(round_, post)
    if kind is RoundKind.ELICITATION:
        return _elicitation(round_, post)
    if kind is RoundKind.QUESTION:
        return _questions(round_, post)
    return _plan(post) if kind is RoundKind.PLAN else _outcome(post)


def problems_of(error: ManagedInputValidationError) -> list[Problem]:
    """A service's refusal as lines of the error summary."""
    if "rehearsal" in error.details:
        return [Problem(anchor=RULES, message=error.message)]
    fields: list[Mapping[str, Any]] = error.details.get("fields") or []
    named = [(".".join(map(str, item.get("path") or ())), str(item.get("message"))) for item in fields]
    return [Problem(anchor=WHOLE, message=f"{path}: {text}" if path else text) for path, text in named] or [
        Problem(anchor=WHOLE, message=error.message)
    ]


def edit_form(round_: Round, post: QueryDict | None = None) -> ElicitationForm:
    """The "Edit arguments" form of an approval."""
    context = round_.context
    return arguments_form(context.get("input_schema") or {}, context.get("arguments") or {}, data=post)


def request_form(
    request: Mapping[str, Any], number: int, *, data: QueryDict | None = None, typed: QueryDict | None = None
) -> ElicitationForm:
    """The form of one keyed request; `typed` restores what stood in it without judging it."""
    return ElicitationForm(request.get("requested_schema"), data=data, initial=typed, prefix=f"r{number}")


def _accept(content: Mapping[str, Any]) -> Response:
    return {"action": "accept", "content": dict(content)}


def _refused(*problems: Problem) -> Posted:
    return Posted(problems=problems)


def _approval(round_: Round, post: QueryDict) -> Posted:
    decision, feedback = post.get("decision", ""), post.get("feedback", "").strip()
    if decision not in ("allow", "deny"):
        return _refused(Problem(anchor=WHOLE, message="Choose Allow or Deny."))
    content: dict[str, Any] = {"decision": decision}
    if feedback:
        content["feedback"] = feedback
    forms: dict[int, ElicitationForm] = {}
    if decision == "allow" and "edit" in post:
        forms = {0: edit_form(round_, post)}
        if not forms[0].is_valid():
            return Posted(problems=_form_problems(forms[0]), forms=forms, note=feedback)
        content["arguments"] = forms[0].content
    try:
        remember = _remember(post) if decision == "allow" else None
    except KeyError:
        return _refused(
            Problem(anchor=WHOLE, message="Choose one of the ways to remember that the card offers.")
        )
    return Posted(responses={APPROVAL_KEY: _accept(content)}, remember=remember, note=feedback, forms=forms)


def _remember(post: QueryDict) -> Remember | None:
    """One of the ways that the page offers, spelled exactly so; the service knows which of them fit this pause.

    With it comes the digest of the preview that stood beside it; a form without one is one that showed no rule, and is
    refused by the service (R23). Raises KeyError for any other choice.
    """
    choice = post.get("remember", "")
    if not choice:
        return None
    return replace(
        REMEMBERABLE[choice], shown=post.get(f"shown:{choice}", ""), confirmed="confirm-rule" in post
    )


def _form_problems(form: ElicitationForm) -> list[Problem]:
    return [Problem(anchor=anchor, message=message) for anchor, message in form.error_summary]


def _elicitation(round_: Round, post: QueryDict) -> Posted:
    """One request answered by its own button, `answer=0:accept`; the others keep what was typed in them."""
    number, _, action = post.get("answer", "").partition(":")
    keys = list(round_.requests)
    if not number.isdecimal() or len(number) > 3 or int(number) >= len(keys) or action not in _ACTIONS:
        return _refused(Problem(anchor=WHOLE, message="Choose Accept, Decline or Not now."))
    key, response = keys[int(number)], {"action": action}
    forms = _typed(round_, post)
    if action == "accept" and round_.requests[key].get("mode") != "url":
        form = request_form(round_.requests[key], int(number), data=post)
        forms[int(number)] = form
        if not form.is_valid():
            return Posted(problems=_form_problems(form), forms=forms)
        response = _accept(form.content)
    if len(keys) == 1:
        return Posted(responses={key: response})
    return Posted(draft=(key, response), forms=forms)


def _typed(round_: Round, post: QueryDict) -> dict[int, ElicitationForm]:
    return {
        number: request_form(request, number, typed=post)
        for number, request in enumerate(round_.requests.values())
        if request.get("mode") != "url" and any(name.startswith(f"r{number}-") for name in post)
    }


def _questions(round_: Round, post: QueryDict) -> Posted:
    """All questions of one ask are answered together; declining declines all of them."""
    action = post.get("answer", "")
    if action not in _ACTIONS:
        return _refused(Problem(anchor=WHOLE, message="Choose Answer or Decline."))
    if action != "accept":
        return Posted(responses={key: {"action": action} for key in round_.requests})
    responses = {key: _accept(_answer(key, post)) for key in round_.requests}
    empty = [
        Problem(anchor=f"{key}-first", message=f"Question {number}: choose an option or write an answer.")
        for number, (key, response) in enumerate(responses.items(), start=1)
        if not response["content"]["selected"] and "other" not in response["content"]
    ]
    return Posted(responses=responses, problems=empty)


def _answer(key: str, post: QueryDict) -> dict[str, Any]:
    """R22: other text is kept beside the selected options."""
    selected = sorted({int(index) for index in post.getlist(key) if index.isdecimal() and len(index) < 5})
    other = post.get(f"{key}-other", "").strip()
    return {"selected": selected, "other": other} if other else {"selected": selected}


def _plan(post: QueryDict) -> Posted:
    decision, text = post.get("decision", ""), post.get("text", "").strip()
    if decision not in ("approve", "revise"):
        return _refused(Problem(anchor=WHOLE, message="Choose Approve or Ask for a revision."))
    if decision == "revise" and not text:
        return _refused(Problem(anchor="id_text", message="Say what should change in the plan."))
    content = {"decision": decision, "text": text} if text else {"decision": decision}
    if decision == "approve" and (then := post.get("then", "")):
        content["then"] = then  # the choice stands beside both buttons and is about this one
    return Posted(responses={PLAN_KEY: _accept(content)}, note=text)


def _outcome(post: QueryDict) -> Posted:
    decision, text = post.get("decision", ""), post.get("text", "").strip()
    if decision not in ("happened", "run_again", "stop"):
        return _refused(Problem(anchor=WHOLE, message="Choose what became of the call."))
    content = {"decision": decision, "text": text} if text else {"decision": decision}
    return Posted(responses={OUTCOME_KEY: _accept(content)}, note=text)
