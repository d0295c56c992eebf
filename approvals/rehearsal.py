"""What a rule would have done: replayed over the last decisions before it is saved.

Every past call is decided again, by the one order, as if it were asked now: with the arguments that the agent asked
for, the run and end user that it had, and the risk and the deny and ask rules of today, in a run in approval mode
without a selection, because that is where rules decide. Calls that the new rule decides there are the ones that it
"would have" allowed, denied or asked about. Other allow rules are left out: that something allows a call already is
no reason to be silent about what this rule covers.

Two findings about an allow need a confirmation: that it covers a call which a person denied, and that it covers a tool
of high stakes. A confirmation is bound to the rule and to these findings; if either changes, it has to be given again.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from django.db.models import Q
from django.utils import timezone

from approvals import gate, pins
from approvals.condition_shape import match_keys
from approvals.facts import CallFacts, Effect, PolicyFacts, Scope
from approvals.models import Policy
from approvals.past_calls import PastCall, last_decisions
from approvals.permission import decide
from approvals.pins import Offer
from approvals.rules import Rule
from runs import local_tools
from runs.canonical import digest
from runs.errors import StateConflict
from runs.local_tools import LOCAL
from runs.models import Account, Tool
from runs.risk import HIGH_STAKES, Risk
from runs.run_states import PermissionMode
from runs.visible import visible

_NEW: Final = 0
"""The id of the rule that has none yet."""


class UnconfirmedRule(StateConflict):
    """The rule needs a confirmation, or is another one than was shown; `details` is the rehearsal to show now."""

    code: ClassVar[str] = "rule_unconfirmed"


@dataclass(frozen=True, kw_only=True)
class Covered:
    """A high-stakes tool that the rule allows."""

    target: str
    risk: Risk

    @property
    def sentence(self) -> str:
        return f"{visible(self.target)} is high-stakes ({self.risk.value}): {self.risk.describe}"


@dataclass(frozen=True, kw_only=True)
class Rehearsal:
    """What a rule says and would have done. `decided` are the calls that it would have decided, newest first."""

    rule: Rule
    looked_at: int
    decided: tuple[PastCall, ...]
    high_stakes: tuple[Covered, ...]

    @property
    def would_allow(self) -> int:
        return self._count(Effect.ALLOW)

    @property
    def would_deny(self) -> int:
        return self._count(Effect.DENY)

    @property
    def would_ask(self) -> int:
        return self._count(Effect.ASK)

    @property
    def covered_denials(self) -> tuple[PastCall, ...]:
        """The calls that a person denied and the rule would have allowed."""
        if self.rule.effect is not Effect.ALLOW:
            return ()
        return tuple(call for call in self.decided if call.denied_by_person)

    @property
    def needs_confirmation(self) -> bool:
        return bool(self.covered_denials or self.high_stakes)

    @property
    def digest(self) -> str:
        """What a confirmation is bound to: the rule, and the findings that it needs one for."""
        return digest(
            {
                "rule": self.rule.digest,
                "denials": sorted([call.run_id, call.step] for call in self.covered_denials),
                "high_stakes": sorted([tool.target, tool.risk.value] for tool in self.high_stakes),
            }
        )

    @property
    def summary(self) -> str:
        """What it would have done, in one sentence."""
        done = _DONE[self.rule.effect]
        if not self.decided:
            return f"Of the last {_calls(self.looked_at)} that were decided here, it would have {done} none."
        denied = len(self.covered_denials)
        but = f", of which people denied {denied}" if denied else ""
        return (
            f"Of the last {_calls(self.looked_at)} that were decided here, it would have {done} "
            f"{len(self.decided)}{but}."
        )

    def as_details(self) -> dict[str, Any]:
        """JSON-safe, for a program that is to show it and to confirm `confirmation`."""
        return {
            "rule": self.rule.sentence,
            "summary": self.summary,
            "looked_at": self.looked_at,
            "would_allow": self.would_allow,
            "would_deny": self.would_deny,
            "would_ask": self.would_ask,
            "covered_denials": [
                {
                    "run_id": call.run_id,
                    "step": call.step,
                    "round_id": call.round_id,
                    "denied_by": call.person,
                }
                for call in self.covered_denials
            ],
            "high_stakes": [{"tool": tool.target, "risk": tool.risk.value} for tool in self.high_stakes],
            "needs_confirmation": self.needs_confirmation,
            "confirmation": self.digest,
        }

    def _count(self, effect: Effect) -> int:
        return len(self.decided) if self.rule.effect is effect else 0


_DONE: Final = {Effect.ALLOW: "allowed", Effect.ASK: "asked about", Effect.DENY: "denied"}


def rehearse(rule: Rule, stage: Stage | None = None) -> Rehearsal:
    """Replay a rule over the last decisions of its account; changes nothing.

    `stage` is given by whoever rehearses several rules on the same server.
    """
    stage = stage or Stage(rule.account, rule.target)
    mine, history = _facts(rule), stage.history.about(rule.target)
    return Rehearsal(
        rule=rule,
        looked_at=history.looked_at,
        decided=tuple(call for call in history.calls if stage.decides(mine, call)),
        high_stakes=tuple(_high_stakes(rule, stage)) if rule.effect is Effect.ALLOW else (),
    )


def check(rehearsal: Rehearsal, *, shown: str | None, confirmed: bool) -> None:
    """Raise UnconfirmedRule unless the rule may be saved.

    `shown` is the digest of the rehearsal that the person saw, None if they saw none; `confirmed` is whether they
    confirmed its findings.
    """
    if shown is not None and shown != rehearsal.digest:
        raise UnconfirmedRule(
            "This is not the rule that you were shown. Look at it once more.", details=rehearsal.as_details()
        )
    if rehearsal.needs_confirmation and (shown is None or not confirmed):
        found = [tool.sentence for tool in rehearsal.high_stakes[:1]]
        found += [rehearsal.summary] if rehearsal.covered_denials else []
        raise UnconfirmedRule(
            f"This rule has to be confirmed. {' '.join(found)}", details=rehearsal.as_details()
        )


class Stage:
    """What rules are rehearsed on: the last decisions about a target, its tools and the other rules as they are now.

    It serves every rule on that target or a narrower one; everything is looked up once.
    """

    def __init__(self, account: Account, target: str) -> None:
        self.account, self.server_name = account, target.partition(":")[0]
        self.now, self.history = timezone.now(), last_decisions(account, target)
        self._standing = _standing(account, self.server_name, self.history.calls, self.now)
        self._offers: dict[str, Offer] = {}
        self._rules: dict[str, list[PolicyFacts]] = {}

    def risk(self, tool: str) -> Risk:
        return gate.tool_risk(self.server_name, tool, self._offer(tool))

    def decides(self, mine: PolicyFacts, call: PastCall) -> bool:
        """Whether the new rule would have the word on this call."""
        tool = call.target.partition(":")[2]
        facts = CallFacts(
            target=call.target,
            risk=self.risk(tool) if call.operation == gate.TOOL else Risk.READ,
            mode=PermissionMode.APPROVAL,
            run_id=call.run_id,
            user_id=call.user_id,
            arguments=call.arguments,
        )
        return decide(facts, [mine, *self._rules_on(tool)], now=self.now).rule_id == mine.id

    def _offer(self, tool: str) -> Offer:
        if tool not in self._offers:
            self._offers[tool] = pins.look(self.account, self.server_name, tool)
        return self._offers[tool]

    def _rules_on(self, tool: str) -> list[PolicyFacts]:
        if tool not in self._rules:
            offer = self._offer(tool)
            self._rules[tool] = [gate.policy_facts(policy, offer) for policy in self._standing]
        return self._rules[tool]


def _facts(rule: Rule) -> PolicyFacts:
    """The rule as it is from now on; that it will expire does not matter to what lies behind."""
    return PolicyFacts(
        id=_NEW,
        effect=rule.effect,
        scope=rule.scope,
        target=rule.target,
        user_id=rule.end_user.user_id if rule.end_user else None,
        run_id=rule.run.pk if rule.run else None,
        condition=rule.condition,
    )


def _standing(account: Account, server: str, calls: Sequence[PastCall], now: dt.datetime) -> list[Policy]:
    """The deny and ask rules that could have the word on one of these calls."""
    keys = {key for call in calls for key in match_keys(call.arguments)}
    if not keys:
        return []
    owners = Q(scope=Scope.ACCOUNT.value)
    owners |= Q(
        scope=Scope.USER.value, end_user__user_id__in={call.user_id for call in calls if call.user_id}
    )
    owners |= Q(scope=Scope.RUN.value, run__in={call.run_id for call in calls})
    tools = {"", *(call.target.partition(":")[2] for call in calls)}
    return list(
        Policy.objects.in_force(now)
        .filter(owners, account=account, effect__in=[Effect.DENY.value, Effect.ASK.value])
        .filter(target_server=server, target_tool__in=tools, match_key__in=keys)
        .select_related("end_user")
    )


def _high_stakes(rule: Rule, stage: Stage) -> Iterable[Covered]:
    server, _, tool = rule.target.partition(":")
    for name in [tool] if tool else _tools_of(rule, server):
        if (risk := stage.risk(name)) in HIGH_STAKES:
            yield Covered(target=f"{server}:{name}", risk=risk)


def _tools_of(rule: Rule, server: str) -> list[str]:
    if server == LOCAL:
        return local_tools.names()
    rows = Tool.objects.filter(server__account=rule.account, server__name=server, present=True)
    return list(rows.values_list("name", flat=True))


def _calls(count: int) -> str:
    return f"{count} call" if count == 1 else f"{count} calls"
