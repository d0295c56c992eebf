"""How far a pause has come and how it ended, in words (R4, R5, R31)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from approvals.cards.values import Ending, Happening, State
from runs import recommended
from runs.models import Event, Round
from runs.requests import APPROVAL_KEY, OUTCOME_KEY, PLAN_KEY
from runs.round_states import RoundKind, RoundOutcome, RoundStatus
from runs.visible import visible

_ON_ITS_WAY: Final[Mapping[str, State]] = {
    RoundStatus.PENDING: State(word="Waiting", sentence="Waits for a person.", icon="clock", css="info"),
    RoundStatus.RESPONSE_VALIDATED: State(
        word="Sending",
        sentence="The decision is stored and on its way to the run.",
        icon="sending",
        css="info",
    ),
    RoundStatus.DELIVERY_STARTED: State(
        word="Sending", sentence="A worker is handing the decision over.", icon="sending", css="info"
    ),
    RoundStatus.DELIVERED: State(
        word="Delivered",
        sentence="The decision has arrived; the run has not gone on yet.",
        icon="check",
        css="ok",
    ),
    RoundStatus.RESOLVED: State(
        word="Resumed", sentence="The run went on with the decision.", icon="success", css="ok"
    ),
}
_FAILED: Final[Mapping[str, State]] = {
    RoundOutcome.TIMED_OUT: State(
        word="Expired",
        sentence="Nobody answered before the deadline; nothing was done.",
        icon="clock",
        css="warn",
    ),
    RoundOutcome.CANCELLED: State(
        word="Cancelled", sentence="The run was cancelled; nothing was done.", icon="cross", css="warn"
    ),
    RoundOutcome.SUPERSEDED: State(
        word="Superseded", sentence="Something else took the place of this request.", icon="cross", css="warn"
    ),
    RoundOutcome.RECOVERY_UNAVAILABLE: State(
        word="Not delivered",
        sentence="The session that waited for the answer is gone, so it could not be delivered.",
        icon="error",
        css="error",
    ),
}
_NOT_DELIVERED: Final = State(
    word="Not delivered",
    sentence="The decision is recorded, but it did not reach the run.",
    icon="error",
    css="error",
)


def state_of(round_: Round) -> State:
    """The state to show; "Resumed" only after the worker said so."""
    if round_.status != RoundStatus.FAILED:
        return _ON_ITS_WAY[round_.status]
    if round_.responses is not None:
        return _NOT_DELIVERED
    return _FAILED.get(round_.outcome or "", _NOT_DELIVERED)


def ending_of(round_: Round, events: Sequence[Event]) -> Ending | None:
    """Who ended a pause, how, when and why; None while it is pending."""
    if round_.status == RoundStatus.PENDING:
        return None
    facts: Mapping[str, Any] = round_.context
    by_itself, remembered = facts.get("allowed_by") or {}, facts.get("remembered") or {}
    return Ending(
        word=_word(round_),
        who=_who(round_, events),
        at=round_.response_validated_at or round_.failed_at or round_.updated_at,
        reason=visible(round_.failure_message or by_itself.get("text") or _why_by_itself(round_)),
        note=visible(round_.note or _feedback(round_)),
        remembered=visible(remembered.get("text") or ""),
    )


def history_of(events: Sequence[Event]) -> tuple[Happening, ...]:
    """Everything that was recorded about the pause, oldest first."""
    return tuple(
        Happening(at=event.at, who=visible(event.actor_name), what=_happened(event)) for event in events
    )


def events_of(round_: Round) -> list[Event]:
    return list(Event.objects.filter(run=round_.run_id, payload__round_id=round_.pk).order_by("seq"))


_ANSWERED: Final = {"accept": "Answered", "decline": "Declined", "cancel": "Put off"}
_DECIDED: Final = {
    "approve": "Approved",
    "revise": "Sent back",
    "happened": "Taken as done",
    "run_again": "Run again",
    "stop": "Stopped",
}


def _word(round_: Round) -> str:
    if round_.outcome != RoundOutcome.ANSWERED:
        return (round_.outcome or "").replace("_", " ").capitalize().replace("Timed out", "Expired")
    responses: Mapping[str, Any] = round_.responses or {}
    if round_.kind in (RoundKind.PLAN, RoundKind.OUTCOME):
        response = responses.get(PLAN_KEY if round_.kind == RoundKind.PLAN else OUTCOME_KEY, {})
        return _DECIDED.get((response.get("content") or {}).get("decision", ""), "Answered")
    actions = {response.get("action") for response in responses.values()}
    return _ANSWERED.get(actions.pop() or "", "Answered") if len(actions) == 1 else "Answered"


def _who(round_: Round, events: Sequence[Event]) -> str:
    """The person; else the rule that decided (R9), or what the event names."""
    if round_.decided_by is not None:
        return str(round_.decided_by.get_username())
    rule = (round_.context.get("allowed_by") or {}).get("rule_id")
    if rule is not None:
        return f"rule {rule}"
    ending = [event.actor_name for event in events if event.type.endswith((".response", ".failed"))]
    return visible(ending[0] if ending and ending[0] else round_.decided_via or "the run")


def _why_by_itself(round_: Round) -> str:
    if round_.decided_via != recommended.VIA:
        return ""
    return "Nobody answered in time, so the run went on with what the agent recommended."


def _feedback(round_: Round) -> str:
    """What the agent reads as the result of a denied call (R19)."""
    content = ((round_.responses or {}).get(APPROVAL_KEY) or {}).get("content") or {}
    return str(content.get("feedback") or "")


def _happened(event: Event) -> str:
    kind, _, what = event.type.rpartition(".")
    payload = event.payload
    if what == "request":
        return "Asked"
    if what == "response":
        return str(payload.get("outcome") or "answered").replace("_", " ").capitalize()
    if what == "failed":
        return visible(str(payload.get("message") or "Ended without an answer"))
    if what == "late_answer":
        return "Answered after the deadline; not used"
    return visible(f"{kind} {what}".replace("_", " ").strip().capitalize())
