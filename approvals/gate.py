"""What the worker asks before every operation: the facts of the call, the plain decision, the verdict.

The order of the decision stands in `approvals.permission`; here is only where its facts come from.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from django.db.models import F
from django.utils import timezone

from approvals import pins
from approvals.condition_shape import read_condition
from approvals.facts import CallFacts, Drift, Drifted, Effect, PolicyFacts, Scope
from approvals.models import Policy
from approvals.permission import Code, Decision, decide
from approvals.pins import Offer
from runs import definitions, local_tools
from runs.canonical import digest
from runs.gate import Verdict
from runs.local_tools import LOCAL
from runs.models import Round, Run, ToolCall, Turn
from runs.risk import Risk, effective_risk
from runs.run_states import HumanInput, PermissionMode

TOOL = "tool"


class PolicyGate:
    """`runs.gate.Gate` by the rules of the account."""

    def decide(self, run: Run, turn: Turn, call: ToolCall) -> Verdict:
        """Decide one call from what the database holds now, and count the use of the rule that allowed it."""
        offer = _offer(run, call)
        decision = _evaluate(run, turn, call, offer)
        record_use(decision)
        if decision.diff and offer.server and decision.diff.server != decision.diff.server_before:
            # The host may have changed its entry: only the next look would remember what stands behind it now.
            definitions.keep_present_address(offer.server)
        return _verdict(call, offer, decision)

    def recheck(self, run: Run, turn: Turn, call: ToolCall) -> Verdict:
        """What would be decided now, counting no use of a rule: asked right before a call is sent."""
        offer = _offer(run, call)
        return _verdict(call, offer, _evaluate(run, turn, call, offer))


def _offer(run: Run, call: ToolCall) -> Offer:
    return pins.look(run.account_id, call.server_name, call.name)


def _verdict(call: ToolCall, offer: Offer, decision: Decision) -> Verdict:
    return Verdict(
        effect=decision.effect.value,
        code=decision.code.value,
        reason=decision.reason,
        risk=decision.risk.value,
        rule_id=decision.rule_id,
        subject=_subject(call, offer),
        remember=tuple(scope.value for scope in decision.remember),
        remember_preselected=decision.remember_preselected,
        diff=asdict(decision.diff) if decision.diff else None,
    )


def _subject(call: ToolCall, offer: Offer) -> str:
    """Stands for what is decided about: the server, the tool's definition, its risk."""
    definition = offer.tool.digest if offer.tool and call.operation == TOOL else None
    return digest([offer.identity, definition, _risk(call, offer).value])


def is_as_asked(round_: Round) -> bool:
    """Whether server, definition and risk are still those for which an approval was asked; if not, an allow does not
    let the call go: it is decided anew before it is sent."""
    subject = (round_.context.get("verdict") or {}).get("subject")
    if not subject or round_.step is None:
        return True
    call = round_.step.call
    return bool(subject == _subject(call, _offer(round_.run, call)))


def evaluate(run: Run, turn: Turn, call: ToolCall) -> Decision:
    """The decision on a call as things stand, changing nothing. `run` and `turn` must be freshly read."""
    return _evaluate(run, turn, call, _offer(run, call))


def _evaluate(run: Run, turn: Turn, call: ToolCall, offer: Offer) -> Decision:
    unknown = _unknown(run, turn, call, offer)
    if unknown is not None:
        return Decision(effect=Effect.DENY, code=Code.REMOVED, reason=unknown, risk=Risk.WRITE)
    now = timezone.now()
    candidates = Policy.objects.candidates(
        account=run.account_id,
        end_user=run.end_user_id,
        run=run.pk,
        target=(call.server_name, call.name),
        arguments=call.arguments,
        now=now,
    )
    rules = [policy_facts(policy, offer) for policy in candidates]
    return decide(_call_facts(run, turn, call, offer), rules, now=now)


def record_use(decision: Decision) -> None:
    """Count that a rule allowed a call (R27); one that preceded its server takes its pins now."""
    if decision.effect is not Effect.ALLOW or decision.rule_id is None:
        return
    rule = Policy.objects.filter(pk=decision.rule_id).first()
    if rule is None:
        return  # revoked by somebody since it was read: the call came first
    if not pins.is_pinned(rule):
        pins.pin(rule)
        rule.save(update_fields=["server", "pinned_identity", "pinned_tools"])
    Policy.objects.filter(pk=rule.pk).update(hits=F("hits") + 1, last_used_at=timezone.now())


def _unknown(run: Run, turn: Turn, call: ToolCall, offer: Offer) -> str | None:
    """A sentence for a server or tool that this turn never had; None if it has or had it."""
    if call.server_name == LOCAL:
        return None
    bound = turn.bindings.get(call.server_name)
    if bound is None:
        return f"{run.agent.name} has no server {call.server_name}. Add it to the agent, then start again."
    if call.operation != TOOL or offer.server is None or offer.tool or call.name in bound["tools"]:
        return None
    if offer.server.listed_at is None and not bound["tools"]:
        return f"The tools of {call.server_name} are not known yet. Test its connection on the servers page."
    return f"{call.server_name} offers no tool {call.name}. Look at its page for the names that it has."


def _call_facts(run: Run, turn: Turn, call: ToolCall, offer: Offer) -> CallFacts:
    return CallFacts(
        target=call.full_name,
        risk=_risk(call, offer),
        mode=PermissionMode(run.mode),
        run_id=run.pk,
        user_id=run.end_user.user_id if run.end_user else None,
        arguments=call.arguments,
        plan_approved=run.plan_approved,
        selection=None if turn.tools is None else frozenset(turn.tools),
        selection_approves=turn.tools_approve,
        drift=_drift(turn, call, offer),
        diff=_drifted(turn, call, offer),
        may_ask=run.human_input == HumanInput.MANAGED,
    )


def _risk(call: ToolCall, offer: Offer) -> Risk:
    """Prompts and resources only look things up; a tool's risk is its effective one (design section 6)."""
    return tool_risk(call.server_name, call.name, offer) if call.operation == TOOL else Risk.READ


def tool_risk(server_name: str, name: str, offer: Offer) -> Risk:
    """The effective risk of a tool, whether there is such a tool yet or not (design section 6)."""
    local = local_tools.find(name) if server_name == LOCAL else None
    if local is not None:
        return effective_risk(admin=local.risk, annotations={}, trusted=False, tool=name)
    tool, server = offer.tool, offer.server
    return effective_risk(
        admin=Risk(tool.risk) if tool and tool.risk else None,
        annotations=tool.annotations if tool else {},
        trusted=server.trusted if server else False,
        tool=name,
    )


def _drift(turn: Turn, call: ToolCall, offer: Offer) -> Drift:
    """The live definition against the one frozen when the turn began (design section 2)."""
    if call.server_name == LOCAL:
        return Drift.SAME
    bound: Mapping[str, Any] = turn.bindings[call.server_name]
    if offer.identity is None or (call.operation == TOOL and offer.tool is None):
        return Drift.REMOVED
    if bound["identity"] != offer.identity:
        return Drift.CHANGED
    # A server that had never been listed when the turn began gives nothing to compare with.
    if offer.tool is None or call.operation != TOOL or not bound["tools"]:
        return Drift.SAME
    return Drift.SAME if bound["tools"].get(call.name) == offer.tool.digest else Drift.CHANGED


def _drifted(turn: Turn, call: ToolCall, offer: Offer) -> Drifted | None:
    """From what to what it has changed since the turn began; of use only where `_drift` says that it has."""
    bound: Mapping[str, Any] = turn.bindings.get(call.server_name) or {}
    if not bound or offer.identity is None:
        return None
    return Drifted(
        tool=call.name,
        server_before=bound["identity"],
        server=offer.identity,
        definition_before=bound["tools"].get(call.name, ""),
        definition=offer.tool.digest if offer.tool else "",
    )


def policy_facts(policy: Policy, offer: Offer) -> PolicyFacts:
    """A stored rule for the decision on a call of the tool behind `offer`. Its `end_user` should be loaded."""
    return PolicyFacts(
        id=policy.pk,
        effect=Effect(policy.effect),
        scope=Scope(policy.scope),
        target=policy.target,
        user_id=policy.end_user.user_id if policy.end_user else None,
        run_id=policy.run_id,
        condition=read_condition(policy.condition),
        expires_at=policy.expires_at,
        suspended=pins.suspension(policy, offer),
        diff=pins.change(policy, offer),
    )
