"""The facts of a decision: the call, the rules, and which rules are about the call (design section 7).

Plain module. The gate makes these values from rows; `approvals.permission` decides with them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from approvals.conditions import Condition, condition_holds
from runs.described import DescribedEnum
from runs.risk import Risk
from runs.run_states import PermissionMode
from runs.steps import Json


class Effect(StrEnum):
    """What a decision says, and what a rule wants."""

    ALLOW = "allow"
    ASK = "ask"
    DENY = "deny"


class Scope(DescribedEnum):
    """Whose calls a rule decides."""

    RUN = "run", "This run only."
    USER = "user", "Every run of this end user."
    ACCOUNT = "account", "Runs of the account; an allow only those that carry no end user."


class Drift(DescribedEnum):
    """The live definition of a tool against the one frozen when the turn started (design section 2)."""

    SAME = "same", "Nothing has changed."
    CHANGED = "changed", "The tool or its server has changed since the turn started."
    REMOVED = "removed", "The tool, or the host's entry for its server, is gone."


@dataclass(frozen=True, kw_only=True)
class Drifted:
    """From what to what a tool or its server has changed: digests, "" for what was not there or is not there any more.

    `server_before` and `server` are identities, `definition_before` and `definition` digests of the tool's definition;
    `approvals.changes` shows the texts behind them.
    """

    tool: str
    server_before: str
    server: str
    definition_before: str = ""
    definition: str = ""


@dataclass(frozen=True, kw_only=True)
class CallFacts:
    """One call, as far as the decision is concerned.

    `target` is the full name `server:tool` (`local:name` for local tools). `selection` holds the targets
    that the caller limited the run to, None for no limit; `selection_approves` is true only for M3
    submissions (C48). `diff` is what has changed where `drift` is changed. `may_ask` is false where
    `human_input` is fail.
    """

    target: str
    risk: Risk
    mode: PermissionMode
    run_id: int
    user_id: str | None = None
    arguments: Mapping[str, Json] = field(default_factory=dict)
    plan_approved: bool = False
    selection: frozenset[str] | None = None
    selection_approves: bool = False
    drift: Drift = Drift.SAME
    diff: Drifted | None = None
    may_ask: bool = True


@dataclass(frozen=True, kw_only=True)
class PolicyFacts:
    """One rule, as far as the decision is concerned.

    `target` is `server` or `server:tool`. `suspended` says why an allow rule is out of force (an admin's
    word, or the tool or server it was pinned to has changed, R28), None while it is in force; `diff` is the change.
    Deny and ask rules keep their force whatever changes: only revoking lifts
    them. Raises ValueError when scope, `user_id` and `run_id` do not fit together.
    """

    id: int
    effect: Effect
    scope: Scope
    target: str
    user_id: str | None = None
    run_id: int | None = None
    condition: Condition = ()
    expires_at: datetime | None = None
    suspended: str | None = None
    diff: Drifted | None = None

    def __post_init__(self) -> None:
        owner = (self.user_id is not None, self.run_id is not None)
        if owner != (self.scope is Scope.USER, self.scope is Scope.RUN):
            raise ValueError(f"A rule of the scope {self.scope} names exactly its own owner.")


def covers(target: str, call_target: str) -> bool:
    """Whether `server` or `server:tool` names the call's tool; there are no prefixes (design section 7)."""
    return target == call_target or (":" not in target and target == call_target.partition(":")[0])


def concerns(rule: PolicyFacts, call: CallFacts, *, now: datetime) -> bool:
    """Whether a rule is about a call: target, scope, time and arguments, whatever its effect.

    An allow matches exactly its scope: an account-wide one only runs that carry no user (R30). Deny and ask
    rules of the account match every run.
    """
    if rule.expires_at is not None and rule.expires_at <= now:
        return False
    if rule.scope is Scope.RUN:
        in_scope = rule.run_id == call.run_id
    elif rule.scope is Scope.USER:
        in_scope = rule.user_id == call.user_id
    else:
        in_scope = rule.effect is not Effect.ALLOW or call.user_id is None
    return in_scope and covers(rule.target, call.target) and condition_holds(rule.condition, call.arguments)
