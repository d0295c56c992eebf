"""Allowing and denying a request as m8tes clients do: the table of m8tes-http 4.2 over the services of the page.

The same decision may come twice and changes nothing, the opposite one is told what counts. A decision never fails
because it could not be remembered; `remembered` then says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from django.db import transaction

from approvals import decisions, remembering, resolutions
from approvals.decisions import Remember
from approvals.permission_requests import (
    ALLOWED,
    CANCELLED,
    DENIED,
    PENDING,
    TIMEOUT,
    URL_TOOL,
    PermissionRequest,
    scope_of,
)
from approvals.rehearsal import rehearse
from approvals.request_refusals import GateCancelled, GateResolvedOtherwise, RunNotActive, UseAnswer
from approvals.run_requests import Found, find
from runs import access
from runs.access import Actor
from runs.asked import QUESTION_TOOL
from runs.errors import (
    ManagedInputValidationError,
    ModelValidationError,
    NotAllowed,
    StateConflict,
)
from runs.models import Role, Round, Run
from runs.requests import APPROVAL_KEY
from runs.round_rows import ending, lock
from runs.round_states import RoundKind, RoundOutcome
from runs.run_states import TurnStatus


class Verdict(StrEnum):
    """What a client decides about a request."""

    ALLOW = "allow"
    DENY = "deny"


_STATUS: Final[Mapping[str, str]] = {Verdict.ALLOW: ALLOWED, Verdict.DENY: DENIED}
_NOT_REMEMBERED: Final = (ManagedInputValidationError, ModelValidationError, NotAllowed)
"""What storing a rule may be refused with. Everything else of the decision was checked before."""


@dataclass(frozen=True, kw_only=True)
class Decided:
    """The request as it is now, and whether this decision made its run go on."""

    request: PermissionRequest
    resumed: bool


def approve(
    actor: Actor,
    run_id: int,
    request_id: str,
    decision: str,
    *,
    remember: bool = False,
    reason: str = "",
    via: str = "api",
) -> Decided:
    """Allow or deny one request. `reason` is for the agent; `remember` stores an allow rule in the run's own scope and
    counts only for an allowed call.

    Raises NotFound (no such run), NotAllowed, and what `approvals.request_refusals` names.
    """
    run = access.get(actor, Run.objects.all(), pk=run_id)
    actor.require(Role.OPERATOR)
    found = find(run, request_id)
    if found.round_ is None or found.request.tool_name == QUESTION_TOOL:
        raise UseAnswer("This is a question. Answer it; it is neither allowed nor denied.")
    turn_id, refused, resumed = found.round_.turn_id, None, False
    with transaction.atomic():
        lock(found.round_.pk)
        found = find(run, request_id)  # as it is now that nobody else can change it
        if found.request.status == PENDING:
            refused = _decide(actor, found, decision, remember=remember, reason=reason, via=via)
            resumed = refused is None and not Round.objects.filter(turn=turn_id).pending().exists()
        else:
            _check_same(found, decision)
            if remember and decision == Verdict.ALLOW:
                _remember_later(actor, found)
    found = find(run, request_id)
    if refused is not None:  # after the commit: if its time was up, that end had to be kept
        raise _too_late(found) if found.request.status == TIMEOUT else _refused(refused)
    return Decided(request=found.request, resumed=resumed)


def _check_same(found: Found, decision: str) -> None:
    """Raise unless the request was decided in the same way."""
    status, round_ = found.request.status, found.round_
    if status == _STATUS[decision]:
        return
    if status in (ALLOWED, DENIED):
        raise GateResolvedOtherwise(
            f"This request is {status} already; that is what counts. Nothing you sent was used.",
            details=ending(round_) if round_ else {},
        )
    if status == CANCELLED and (round_ is None or round_.outcome != RoundOutcome.SUPERSEDED):
        raise GateCancelled("This request was cancelled; there is nothing left to decide.")
    raise _too_late(found)


def _too_late(found: Found) -> RunNotActive:
    why = (
        "The time of this request was up before you decided."
        if found.request.status == TIMEOUT
        else "The run ended while this request was open."
    )
    return RunNotActive(
        f"{why} Nothing you sent was used.", details=ending(found.round_) if found.round_ else {}
    )


def _refused(error: StateConflict) -> RunNotActive:
    return RunNotActive(error.message, details=error.details)


def _decide(
    actor: Actor, found: Found, decision: str, *, remember: bool, reason: str, via: str
) -> StateConflict | None:
    """Decide a pending request of a locked round.

    A refusal is returned, because what it tells of (a deadline that has passed) has to be kept.
    """
    round_ = found.round_
    if round_ is None:
        raise TypeError("an ask that did not wait is not decided")
    if round_.turn.status == TurnStatus.FINISHED:
        raise _too_late(found)
    try:
        _send(actor, round_, found, decision, remember=remember, reason=reason, via=via)
    except StateConflict as error:
        return error
    return None


def _send(
    actor: Actor, round_: Round, found: Found, decision: str, *, remember: bool, reason: str, via: str
) -> None:
    key = f"m8tes:{found.request.request_id}"[:200]
    if found.request.tool_name == URL_TOOL:
        response = {"action": "accept" if decision == Verdict.ALLOW else "decline"}
        if len(round_.requests) > 1:
            decisions.save_draft(actor, round_.pk, found.request.key, response, via=via)
        else:
            decisions.decide(
                actor, round_.pk, {found.request.key: response}, idempotency_key=key, note=reason, via=via
            )
        return
    responses = {APPROVAL_KEY: {"action": "accept", "content": {"decision": decision}}}
    asked = _asked_to_remember(actor, round_) if remember and decision == Verdict.ALLOW else None
    if asked is not None:
        try:
            with transaction.atomic():
                decisions.decide(
                    actor, round_.pk, responses, idempotency_key=key, remember=asked, note=reason, via=via
                )
        except (*_NOT_REMEMBERED, StateConflict):
            pass  # decide without; a deadline that has passed is found again, and then its end is kept
        else:
            return
    decisions.decide(actor, round_.pk, responses, idempotency_key=key, note=reason, via=via)


def _asked_to_remember(actor: Actor, round_: Round) -> Remember | None:
    """What `remember=true` says: this tool, in the run's own scope, until revoked; None if no such rule is possible.

    It is explicit and confirms what the rehearsal finds, as a tick on the card does: a program is not shown anything
    first (m8tes-http 4.2, 4.3).
    """
    scope = scope_of(round_.run)
    try:
        rule = remembering.rule_for(round_, scope, None, None)
    except ModelValidationError:
        return None
    return Remember(scope=scope.value, shown=rehearse(rule).digest, confirmed=True)


def _remember_later(actor: Actor, found: Found) -> None:
    """Store the rule of a call that was allowed without one; what is remembered already stays as it is."""
    round_ = found.round_
    if round_ is None or round_.kind != RoundKind.APPROVAL or found.request.remembered:
        return
    asked = _asked_to_remember(actor, round_)
    if asked is None:
        return
    try:
        with transaction.atomic():
            rule = remembering.rule_of(round_, asked, round_.responses or {})
            facts = remembering.remembered(remembering.save(actor, rule, asked), asked)
            resolutions.record(round_, facts)
    except _NOT_REMEMBERED:
        return
