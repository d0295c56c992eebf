"""What a card shows of a change: what it asks because of, and whether that is still how things are (R28)."""

from __future__ import annotations

from typing import Any

from approvals import changes, renewals
from approvals.gate import is_as_asked
from approvals.permission import Code
from runs.access import Actor
from runs.models import Round
from runs.round_states import RoundKind, RoundStatus


def changed_fields(round_: Round, actor: Actor) -> dict[str, Any]:
    """The fields `changed`, `renewal` and `stale` of a card; none for what is no approval."""
    if round_.kind != RoundKind.APPROVAL:
        return {}
    pending = round_.status == RoundStatus.PENDING
    verdict = round_.context.get("verdict") or {}
    drifted = changes.drifted_of(round_.context)
    suspended = pending and verdict.get("code") == Code.SUSPENDED
    return {
        "changed": changes.show(round_.account_id, round_.server_name, drifted) if drifted else None,
        "renewal": renewals.renewal_of(actor, verdict.get("rule_id"), in_view=drifted) if suspended else None,
        "stale": pending and not is_as_asked(round_),
    }
