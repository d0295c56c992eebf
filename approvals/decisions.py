"""What a person decides about a pause, and what follows: the answer, the rule to remember, the mode of the run.

Every way in (page, API) calls these functions; they know the roles, `runs.rounds` knows the states.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django.db import transaction

from approvals import batch, resolutions
from approvals.batch import Choice
from approvals.gate import evaluate
from approvals.remembering import Remember, check_repeat, remembered, rule_of, save
from approvals.resolutions import ALLOW
from runs import access, control, rounds, write_behind
from runs.access import Actor
from runs.canonical import canonical_json
from runs.errors import ManagedInputValidationError, StateConflict
from runs.models import Role, Round, Run
from runs.readable import check_readable
from runs.requests import APPROVAL_KEY, MAX_WORDS, OUTCOME_KEY, PLAN_KEY
from runs.round_checks import check_form, check_responses, checked_shape
from runs.round_rows import Decider, ending, lock
from runs.round_states import RoundKind, RoundStatus
from runs.run_states import PermissionMode

__all__ = ["DENIED", "Remember", "decide", "decide_several", "save_draft", "switch_mode"]

DENIED = (
    "A person denied this call and gave no reason. Do not repeat it as it is: "
    "go on without it, or ask what to do instead."
)
"""What the agent is told when a deny carries no words (R19)."""


def decide(
    actor: Actor,
    round_id: str,
    responses: Mapping[str, Mapping[str, Any]],
    *,
    idempotency_key: str,
    shown_digest: str | None = None,
    remember: Remember | None = None,
    note: str = "",
    via: str = "page",
) -> Round:
    """Answer a pause as `actor`; answer, remembered rule and what the rule closes are one transaction.

    `responses` carries exactly the round's keys, `shown_digest` the digest of what the person saw (R12), `note`
    their words to the agent where the answer itself has none. `remember` counts only for an allowed approval;
    with a deny it is ignored, because a person must be able to deny whatever else the form says.

    Raises NotFound, NotAllowed; ManagedInputValidationError when the answer, edited arguments (R20) or what is to
    be remembered (R16) is not acceptable, with the rehearsal to show in `details` if it has to be confirmed, and then
    nothing has changed; StateConflict or ManagedInputConflict
    when the round is over or shows something else now, with who decided what and when in `details` (R2, R7).
    """
    found = _authorise(actor, round_id)
    with transaction.atomic(), write_behind.kept():
        settled = _decide(
            actor,
            _lock(found),
            responses,
            idempotency_key=idempotency_key,
            shown_digest=shown_digest,
            remember=remember,
            note=note,
            via=via,
        )
    return rounds.accepted(settled)


def decide_several(
    actor: Actor, choices: Sequence[Choice], *, idempotency_key: str, via: str = "page"
) -> list[Round]:
    """Allow several waiting calls as they are, all of them or none, in one transaction (R21).

    Nothing is edited or remembered here: that needs the card of the one call. The same choices with the same
    key again give the same rounds. Raises NotFound, NotAllowed; ManagedInputValidationError for a choice that
    no page offers; StateConflict if any call has ended, shows something else now, or has to be decided alone.
    Then none is allowed, and `details["refused"]` has for each such call its present state with a `message`;
    only the expiry of an overdue one is kept.
    """
    actor.require(Role.OPERATOR)
    chosen = batch.checked(choices, idempotency_key)
    found = {choice: access.get(actor, Round.objects.all(), pk=choice.round_id) for choice in chosen}
    if any(round_.kind != RoundKind.APPROVAL for round_ in found.values()):
        raise ManagedInputValidationError("Only tool calls can be allowed together; answer the rest alone.")
    # Everybody locks in this order (younger runs first), so that no two wait for each other.
    chosen.sort(key=lambda choice: (-found[choice].run_id, choice.round_id))
    key = batch.member_key(idempotency_key, chosen)
    with transaction.atomic():
        members = [lock(choice.round_id) for choice in chosen]
        if all(round_.response_idempotency_key == key for round_ in members):
            return members
        for round_ in filter(batch.overdue, members):
            rounds.try_answer(
                round_.pk, ALLOW, decider=Decider(user=actor.user, via=via), idempotency_key=key
            )
        settled = _allow_all(actor, chosen, key, via)
    if isinstance(settled, StateConflict):
        raise settled
    return settled


def save_draft(
    actor: Actor, round_id: str, key: str, response: Mapping[str, Any], *, via: str = "page"
) -> Round:
    """Keep the answer to one request of a pause; the last one answers the whole pause with all of them (A21).

    Raises what `decide` raises.
    """
    found = _authorise(actor, round_id)
    decider = Decider(user=actor.user, via=via)
    with transaction.atomic():
        _lock(found)
        settled = rounds.save_draft(round_id, key, response, decider=decider)
        if isinstance(settled, Round) and settled.status == RoundStatus.PENDING:
            settled = _answer_if_complete(actor, settled, via)
    return rounds.accepted(settled)


@transaction.atomic
def switch_mode(actor: Actor, run_id: int, mode: str, *, via: str = "page") -> Run:
    """Change the permission mode of a run; to autonomous also lets pending approvals go that need nobody now.

    Questions, plans, and calls that ask in every mode stay (m8tes-http 4.4). Raises NotFound, NotAllowed,
    ModelValidationError for an unknown mode, StateConflict on a finished run.
    """
    access.get(actor, Run.objects.all(), pk=run_id)
    actor.require(Role.OPERATOR)
    why = f"{actor.user.get_username()} switched the run to autonomous."
    return _switch(run_id, mode, Decider(user=actor.user, via=via), why)


def _switch(run_id: int, mode: str, decider: Decider, why: str) -> Run:
    run = control.set_mode(run_id, mode, decider=decider)
    if run.mode == PermissionMode.AUTONOMOUS:
        resolutions.close_autonomous(run, why)
        run.refresh_from_db()
    return run


def _follow_plan(actor: Actor, settled: Round, via: str) -> None:
    """The mode that an approval of a plan names counts from its commit on (m8tes-http 4.4)."""
    content = (settled.responses or {})[PLAN_KEY].get("content") or {}
    if "then" in content:
        why = f"{actor.user.get_username()} approved the plan, and that the run goes on as autonomous."
        _switch(settled.run_id, content["then"], Decider(user=actor.user, via=via), why)
        settled.run.refresh_from_db()


def _lock(found: Round) -> Round:
    """The pause, for a decision. One on a plan may change the mode of its run and of those under it: they are locked
    before it, from young to old like everywhere."""
    if found.kind == RoundKind.PLAN:
        control.locked_with_children(found.run_id)
    round_ = lock(found.pk)
    check_readable(round_, found.pk)
    return round_


def _allow_all(actor: Actor, chosen: Sequence[Choice], key: str, via: str) -> list[Round] | StateConflict:
    """Allow every chosen call, or none and say why not; the caller has locked them."""
    refused = []
    for choice in chosen:
        round_ = lock(choice.round_id)  # read anew: the expiry of another one may have ended its run
        why = batch.changed(round_, choice.shown_digest) or batch.why_alone(
            round_, evaluate(round_.run, round_.turn, round_.own_step.call)
        )
        if why:
            refused.append({**ending(round_), "message": why})
    if not refused:
        try:
            with transaction.atomic():
                return [_allow(actor, choice, key, via) for choice in chosen]
        except StateConflict as late:  # a deadline passed since; its expiry is left to the sweep
            refused.append({**late.details, "message": late.message})
    return StateConflict(
        f"Nothing was allowed: of {len(chosen)} chosen calls, {len(refused)} cannot be allowed with the others.",
        details={"refused": refused},
    )


def _allow(actor: Actor, choice: Choice, key: str, via: str) -> Round:
    return rounds.accepted(
        _decide(
            actor,
            lock(choice.round_id),
            ALLOW,
            idempotency_key=key,
            shown_digest=choice.shown_digest,
            via=via,
        )
    )


def _authorise(actor: Actor, round_id: str) -> Round:
    """The pause with what of it never changes, if this person may decide it."""
    found = access.one(actor, Round, round_id, "id", "kind", "run")
    actor.require(Role.OPERATOR)
    return found


def _decide(
    actor: Actor,
    round_: Round,
    responses: Mapping[str, Mapping[str, Any]],
    *,
    idempotency_key: str,
    shown_digest: str | None = None,
    remember: Remember | None = None,
    note: str = "",
    via: str,
) -> Round | StateConflict:
    first = round_.status == RoundStatus.PENDING
    payload = checked_shape(responses)
    check_responses(round_, payload)
    words = _words(round_, payload, note)
    if round_.kind == RoundKind.APPROVAL:
        payload = {APPROVAL_KEY: {"action": "accept", "content": _approval(round_, payload, words)}}
        if payload[APPROVAL_KEY]["content"]["decision"] == "deny":
            remember = None
    elif remember is not None:
        raise ManagedInputValidationError("Only an allowed tool call can be remembered.")
    rule = rule_of(round_, remember, payload) if first and remember else None
    settled = rounds.try_answer_locked(
        round_,
        payload,
        decider=Decider(user=actor.user, via=via),
        idempotency_key=idempotency_key,
        shown_digest=shown_digest,
        note=words,
    )
    if isinstance(settled, Round) and settled.kind == RoundKind.PLAN and first:
        _follow_plan(actor, settled, via)
    if isinstance(settled, StateConflict) or settled.kind != RoundKind.APPROVAL:
        return settled
    if not first:
        check_repeat(settled, remember)
        return settled
    saved = remembered(save(actor, rule, remember), remember) if rule and remember else {}
    resolutions.record(settled, saved)
    return settled


def _answer_if_complete(actor: Actor, round_: Round, via: str) -> Round | StateConflict:
    if round_.drafts.keys() != round_.requests.keys():
        return round_
    return _decide(actor, round_, round_.drafts, idempotency_key=rounds.draft_key(round_.pk), via=via)


def _words(round_: Round, payload: Mapping[str, Mapping[str, Any]], note: str) -> str:
    """What the person says to the agent: the text in the answer, else the note."""
    fields = {
        RoundKind.APPROVAL: (APPROVAL_KEY, "feedback"),
        RoundKind.PLAN: (PLAN_KEY, "text"),
        RoundKind.OUTCOME: (OUTCOME_KEY, "text"),
    }
    key, name = fields.get(RoundKind(round_.kind), (None, ""))
    words = str(payload[key]["content"].get(name, "")) if key else ""
    words = words.strip() or note.strip()
    if len(words) > MAX_WORDS:
        raise ManagedInputValidationError(f"A note has at most {MAX_WORDS:,} characters.")
    return words


def _approval(round_: Round, payload: Mapping[str, Mapping[str, Any]], words: str) -> dict[str, Any]:
    """The answer to an approval as it is stored: checked edits only if there are any, a deny always with words."""
    content = payload[APPROVAL_KEY]["content"]
    if content["decision"] == "deny":
        return {"decision": "deny", "feedback": words or DENIED}
    allowed = {"decision": "allow"} | ({"feedback": words} if words else {})
    edited = content.get("arguments")
    if edited is None or canonical_json(edited) == canonical_json(round_.context["arguments"]):
        return allowed
    check_form(round_.context["input_schema"], edited, key=APPROVAL_KEY, under=["arguments"])
    return {**allowed, "arguments": edited}
