"""What follows from an approval: the record of how it ended, and pauses that need no person any more.

A new allow rule closes the other pending approvals that it covers (R9), a switch to autonomous those of its run
(m8tes-http 4.4). Both decide every call anew by the one order; only an Allow closes, and everything else stays
as it is (R8). Every function must run inside the transaction of what it follows from.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.db.models import QuerySet

from approvals.condition_shape import exact_arguments, read_condition
from approvals.facts import Effect, Scope
from approvals.gate import evaluate, record_use
from approvals.models import Policy
from approvals.permission import Decision
from runs import events, round_rows, rounds
from runs.canonical import digest
from runs.errors import StateConflict
from runs.models import Round, Run
from runs.requests import APPROVAL_KEY
from runs.round_rows import Decider, Take
from runs.round_states import RoundKind, RoundStatus

VIA_RULE = "rule"
VIA_MODE = "mode"

ALLOW = {APPROVAL_KEY: {"action": "accept", "content": {"decision": "allow"}}}
"""The answer to an approval that allows the call as it is."""


def record(round_: Round, facts: dict[str, Any]) -> None:
    """Keep with a decided approval why it ended so, and tell of it.

    `facts` go into the round's context, for the card: {"remembered": {...}} if a rule was stored with the
    decision, {"allowed_by": {...}} if no person decided.
    """
    round_.context = {**round_.context, **facts}
    round_.save(update_fields=["context"])
    content = (round_.responses or {})[APPROVAL_KEY]["content"]
    arguments = content.get("arguments", round_.context["arguments"])
    why = facts.get("remembered") or facts.get("allowed_by") or {}
    events.record(
        round_.run,
        "permission_resolved",
        {
            "request_id": round_.pk,
            "step": round_.own_step.seq,
            "tool": f"{round_.server_name}:{round_.operation_name}",
            "resolved_status": round_.outcome,
            "automatic": "allowed_by" in facts,
            "remembered": "remembered" in facts,
            "rule_id": why.get("rule_id"),
            "reason": why.get("text"),
            "shown_digest": round_.shown_digest,
            "decided_digest": digest(arguments),
            "edited": "arguments" in content,
        },
        turn=round_.turn,
        actor=round_.decided_by,
        actor_name=round_.decided_via,
    )


def close_covered(policy: Policy, sentence: str) -> None:
    """Allow the pending approvals that a new allow rule decides; `sentence` is the rule in words."""
    waiting = Round.objects.filter(account=policy.account_id, server_name=policy.target_server)
    if policy.target_tool:
        waiting = waiting.filter(operation_name=policy.target_tool)
    wanted = exact_arguments(read_condition(policy.condition))
    if wanted is not None:
        waiting = waiting.filter(shown_digest=digest(wanted))
    if policy.scope == Scope.RUN:
        waiting = waiting.filter(run=policy.run_id)
    else:
        waiting = waiting.filter(run__end_user=policy.end_user_id)
    round_rows.now_and_again(
        lambda take: _close(waiting, VIA_RULE, sentence, lambda decision: decision.rule_id == policy.pk, take)
    )


def close_autonomous(run: Run, sentence: str) -> None:
    """Allow the pending approvals of a run, which the caller has locked, that may go on without asking; `sentence`
    says who switched it."""
    _close(Round.objects.filter(run=run), VIA_MODE, sentence, lambda _decision: True, round_rows.if_free)


def _close(
    waiting: QuerySet[Round], via: str, sentence: str, closes: Callable[[Decision], bool], take: Take
) -> None:
    def close(round_: Round) -> None:
        decision = decided(round_) if round_.status == RoundStatus.PENDING else None
        if decision is None:
            return  # somebody has decided it: it is theirs
        settled = rounds.try_answer(
            round_.pk, ALLOW, decider=Decider(user=None, via=via), idempotency_key=f"{via}:{round_.pk}"
        )
        if isinstance(settled, StateConflict):
            return  # its deadline had passed; it has expired now
        record(settled, {"allowed_by": {"rule_id": decision.rule_id, "text": sentence}})
        record_use(decision)

    def decided(round_: Round) -> Decision | None:
        decision = evaluate(round_.run, round_.turn, round_.own_step.call)
        return decision if decision.effect is Effect.ALLOW and closes(decision) else None

    pending = (
        waiting.filter(status="pending", kind=RoundKind.APPROVAL.value)
        .select_related("run__agent", "run__end_user", "turn", "step__call")
        .order_by("created_at", "pk")
    )
    for round_ in pending:
        if decided(round_):
            take(round_.pk, close)
