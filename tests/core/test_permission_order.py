"""The order in which a call is decided: first match wins (design section 7)."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from approvals.conditions import exactly
from approvals.permission import (
    CallFacts,
    Code,
    Decision,
    Drift,
    Drifted,
    Effect,
    PolicyFacts,
    Scope,
    decide,
    in_mode,
    redecide,
)
from runs.risk import Risk
from runs.run_states import PermissionMode

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
AUTONOMOUS, APPROVAL, PLAN = PermissionMode.AUTONOMOUS, PermissionMode.APPROVAL, PermissionMode.PLAN


def a_call(**changes: Any) -> CallFacts:
    facts: dict[str, Any] = {
        "target": "desk:refund",
        "risk": Risk.WRITE,
        "mode": APPROVAL,
        "run_id": 1,
        "user_id": "cust_123",
    }
    return CallFacts(**(facts | changes))


def a_rule(effect: Effect, **changes: Any) -> PolicyFacts:
    facts: dict[str, Any] = {"id": 7, "effect": effect, "scope": Scope.USER, "target": "desk:refund"}
    if changes.get("scope", Scope.USER) is Scope.USER:
        facts["user_id"] = "cust_123"
    return PolicyFacts(**(facts | changes))


def decided(call: CallFacts, *rules: PolicyFacts) -> Decision:
    return decide(call, rules, now=NOW)


ALLOW = a_rule(Effect.ALLOW, id=1)
ASK = a_rule(Effect.ASK, id=2)
DENY = a_rule(Effect.DENY, id=3)
GREW = Drifted(tool="refund", server_before="s1", server="s1", definition_before="d1", definition="d2")
SUSPENDED = a_rule(Effect.ALLOW, id=4, suspended="the tool has changed.", diff=GREW)


class TestEachStepBeatsTheStepsBelowIt:
    """One line per step: the facts that make it match stay, while everything below it would decide otherwise."""

    @pytest.mark.parametrize(
        ("changes", "rules", "code", "effect"),
        [
            # 0: outside the selection
            (
                {"selection": frozenset({"desk:other"}), "risk": Risk.BLOCKED, "mode": AUTONOMOUS},
                (ALLOW, ASK, DENY),
                Code.NOT_SELECTED,
                Effect.DENY,
            ),
            # 1: blocked, or gone
            ({"risk": Risk.BLOCKED, "mode": AUTONOMOUS}, (ALLOW, ASK, DENY), Code.BLOCKED, Effect.DENY),
            ({"drift": Drift.REMOVED, "mode": AUTONOMOUS}, (ALLOW, ASK, DENY), Code.REMOVED, Effect.DENY),
            # 2: a deny rule
            ({"mode": AUTONOMOUS}, (ALLOW, ASK, DENY), Code.DENY_RULE, Effect.DENY),
            ({"mode": PLAN, "risk": Risk.STRICT}, (DENY,), Code.DENY_RULE, Effect.DENY),
            # 3: plan mode before approval
            ({"mode": PLAN}, (ALLOW, ASK), Code.PLAN_FIRST, Effect.DENY),
            ({"mode": PLAN, "risk": Risk.STRICT}, (), Code.PLAN_FIRST, Effect.DENY),
            (
                {"mode": PLAN, "selection": frozenset({"desk"}), "selection_approves": True},
                (),
                Code.PLAN_FIRST,
                Effect.DENY,
            ),
            # 4: strict, changed since the turn started, or an ask rule
            ({"risk": Risk.STRICT, "mode": AUTONOMOUS}, (ALLOW, ASK), Code.STRICT, Effect.ASK),
            ({"drift": Drift.CHANGED, "mode": AUTONOMOUS}, (ALLOW, ASK), Code.CHANGED, Effect.ASK),
            ({"mode": AUTONOMOUS}, (ALLOW, ASK), Code.ASK_RULE, Effect.ASK),
            ({"mode": PLAN, "risk": Risk.READ}, (ASK,), Code.ASK_RULE, Effect.ASK),
            # 5: autonomous
            ({"mode": AUTONOMOUS, "risk": Risk.MONEY}, (SUSPENDED,), Code.AUTONOMOUS, Effect.ALLOW),
            # 6: named by an M3 submission
            (
                {"selection": frozenset({"desk:refund"}), "selection_approves": True, "risk": Risk.MONEY},
                (SUSPENDED,),
                Code.SELECTED,
                Effect.ALLOW,
            ),
            # 7: a suspended grant
            ({"risk": Risk.READ}, (ALLOW, SUSPENDED), Code.SUSPENDED, Effect.ASK),
            # 8: an allow rule, or remembered in this run
            ({"risk": Risk.MONEY}, (ALLOW,), Code.ALLOW_RULE, Effect.ALLOW),
            (
                {"risk": Risk.DESTROY},
                (a_rule(Effect.ALLOW, scope=Scope.RUN, run_id=1),),
                Code.REMEMBERED,
                Effect.ALLOW,
            ),
            # 9: high-stakes
            ({"risk": Risk.MONEY}, (), Code.HIGH_STAKES, Effect.ASK),
            ({"risk": Risk.ACCESS}, (), Code.HIGH_STAKES, Effect.ASK),
            ({"risk": Risk.DESTROY, "target": "local:Agent"}, (), Code.HIGH_STAKES, Effect.ASK),
            # 10: safe
            ({"risk": Risk.READ}, (), Code.SAFE, Effect.ALLOW),
            ({"risk": Risk.READ, "mode": PLAN}, (), Code.SAFE, Effect.ALLOW),
            ({"target": "local:Agent"}, (), Code.SAFE, Effect.ALLOW),
            ({"target": "local:pause_schedule", "mode": PLAN}, (), Code.SAFE, Effect.ALLOW),
            # 11: everything else
            ({}, (), Code.NO_RULE, Effect.ASK),
            ({"mode": PLAN, "plan_approved": True}, (), Code.NO_RULE, Effect.ASK),
            ({"target": "local:book"}, (), Code.NO_RULE, Effect.ASK),
        ],
    )
    def test_first_match_wins(
        self, changes: dict[str, Any], rules: tuple[PolicyFacts, ...], code: Code, effect: Effect
    ) -> None:
        decision = decided(a_call(**changes), *rules)
        assert (decision.code, decision.effect) == (code, effect)


def test_the_reason_is_a_short_sentence_that_names_the_call() -> None:
    assert (
        decided(a_call(risk=Risk.MONEY)).reason == "desk:refund is high-stakes (money); no policy covers it."
    )
    assert decided(a_call(), DENY).reason == "Rule 3 denies desk:refund."
    assert decided(a_call(mode=PLAN)).reason == "desk:refund has to wait: propose a plan first (write)."
    assert decided(a_call(target="desk:pay\u202ed")).reason.startswith("desk:pay⟨U+202E⟩d ")


def test_the_rule_that_decided_is_named_the_most_specific_one_first() -> None:
    wide = a_rule(Effect.ALLOW, id=1, target="desk")
    narrow = a_rule(Effect.ALLOW, id=9)
    assert decided(a_call(), wide, narrow).rule_id == 9
    assert decided(a_call(), wide).rule_id == 1
    assert decided(a_call(), narrow, replace(narrow, id=8)).rule_id == 8
    assert decided(a_call()).rule_id is None


def test_a_suspended_grant_asks_with_its_reason_and_the_change() -> None:
    decision = decided(a_call(), SUSPENDED)
    assert decision.reason == "Rule 4, which allowed desk:refund, is suspended: the tool has changed."
    assert (decision.rule_id, decision.diff) == (4, GREW)


def test_a_tool_that_changed_since_the_turn_started_asks_with_the_change() -> None:
    assert decided(a_call(drift=Drift.CHANGED, diff=GREW)).diff == GREW


def test_suspending_a_deny_or_ask_rule_does_not_lift_it() -> None:
    call = a_call(mode=AUTONOMOUS)
    for rule, effect in [(DENY, Effect.DENY), (ASK, Effect.ASK)]:
        assert decided(call, replace(rule, suspended="the tool has changed.")).effect is effect


class TestWhichRulesConcernACall:
    @pytest.mark.parametrize(
        ("target", "concerns"),
        [
            ("desk:refund", True),
            ("desk", True),
            ("des", False),
            ("desk:ref", False),
            ("desk:refund:x", False),
            ("desk:", False),
            ("other:refund", False),
            ("refund", False),
        ],
    )
    def test_a_target_is_a_server_or_one_tool_and_never_a_prefix(self, target: str, concerns: bool) -> None:
        assert (decided(a_call(), a_rule(Effect.ALLOW, target=target)).effect is Effect.ALLOW) is concerns

    def test_a_tool_name_may_hold_colons(self) -> None:
        call = a_call(target="docs:file:///x")
        assert decided(call, a_rule(Effect.ALLOW, target="docs:file:///x")).effect is Effect.ALLOW
        assert decided(call, a_rule(Effect.ALLOW, target="docs:file")).effect is Effect.ASK

    @pytest.mark.parametrize(
        ("rule_user", "call_user", "concerns"),
        [
            ("cust_123", "cust_123", True),
            ("cust_123", "cust_999", False),
            ("cust_123", None, False),
            (None, None, True),
            (None, "cust_123", False),
        ],
    )
    def test_an_allow_matches_exactly_its_scope(
        self, rule_user: str | None, call_user: str | None, concerns: bool
    ) -> None:
        scope = Scope.ACCOUNT if rule_user is None else Scope.USER
        rule = a_rule(Effect.ALLOW, scope=scope, user_id=rule_user)
        assert (decided(a_call(user_id=call_user), rule).effect is Effect.ALLOW) is concerns

    @pytest.mark.parametrize("effect", [Effect.ASK, Effect.DENY])
    @pytest.mark.parametrize("user", ["cust_123", "cust_999", None])
    def test_deny_and_ask_rules_of_the_account_match_every_run(
        self, effect: Effect, user: str | None
    ) -> None:
        rule = a_rule(effect, scope=Scope.ACCOUNT)
        assert decided(a_call(user_id=user, mode=AUTONOMOUS), rule).effect is effect

    @pytest.mark.parametrize("effect", [Effect.ASK, Effect.DENY])
    def test_deny_and_ask_rules_of_a_user_match_that_user_only(self, effect: Effect) -> None:
        assert decided(a_call(mode=AUTONOMOUS), a_rule(effect)).effect is effect
        assert decided(a_call(mode=AUTONOMOUS, user_id="cust_999"), a_rule(effect)).effect is Effect.ALLOW

    def test_what_one_run_remembers_holds_in_no_other_run(self) -> None:
        rule = a_rule(Effect.ALLOW, scope=Scope.RUN, run_id=1)
        assert decided(a_call(run_id=1), rule).effect is Effect.ALLOW
        assert decided(a_call(run_id=2), rule).effect is Effect.ASK

    def test_a_rule_ends_at_exactly_its_expiry(self) -> None:
        for expires_at, effect in [(NOW + timedelta(seconds=1), Effect.ALLOW), (NOW, Effect.ASK)]:
            assert decided(a_call(), a_rule(Effect.ALLOW, expires_at=expires_at)).effect is effect

    def test_a_condition_on_the_arguments_limits_the_rule(self) -> None:
        rule = a_rule(Effect.ALLOW, condition=exactly({"amount": 5}))
        assert decided(a_call(arguments={"amount": 5}), rule).effect is Effect.ALLOW
        assert decided(a_call(arguments={"amount": 50}), rule).effect is Effect.ASK

    @pytest.mark.parametrize(
        ("scope", "user_id", "run_id"),
        [
            (Scope.USER, None, None),
            (Scope.USER, "u", 1),
            (Scope.ACCOUNT, "u", None),
            (Scope.ACCOUNT, None, 1),
            (Scope.RUN, None, None),
            (Scope.RUN, "u", 1),
        ],
    )
    def test_a_rule_that_does_not_name_exactly_its_owner_is_refused(
        self, scope: Scope, user_id: str | None, run_id: int | None
    ) -> None:
        with pytest.raises(ValueError, match="owner"):
            PolicyFacts(id=1, effect=Effect.ALLOW, scope=scope, target="a", user_id=user_id, run_id=run_id)


class TestTheSelection:
    @pytest.mark.parametrize("selected", ["desk", "desk:refund"])
    def test_an_m8tes_selection_limits_but_approves_nothing(self, selected: str) -> None:
        assert decided(a_call(selection=frozenset({selected}))).code is Code.NO_RULE

    def test_an_empty_selection_permits_nothing(self) -> None:
        assert decided(a_call(selection=frozenset(), mode=AUTONOMOUS)).code is Code.NOT_SELECTED

    def test_a_submission_without_a_selection_approves_nothing(self) -> None:
        assert decided(a_call(selection=None, selection_approves=True)).effect is Effect.ASK


class TestWhatMayBeRemembered:
    def test_a_run_of_a_user_offers_the_run_and_the_user_never_the_account(self) -> None:
        assert decided(a_call()).remember == (Scope.RUN, Scope.USER)

    def test_a_run_without_a_user_offers_the_run_and_the_account(self) -> None:
        assert decided(a_call(user_id=None)).remember == (Scope.RUN, Scope.ACCOUNT)

    def test_remember_is_preselected_for_ordinary_calls_only(self) -> None:
        assert decided(a_call()).remember_preselected is True
        for risk in (Risk.MONEY, Risk.ACCESS, Risk.DESTROY):
            decision = decided(a_call(risk=risk))
            assert decision.remember == (Scope.RUN, Scope.USER)
            assert decision.remember_preselected is False

    @pytest.mark.parametrize(
        ("changes", "rules"),
        [
            ({"risk": Risk.STRICT}, ()),
            ({"drift": Drift.CHANGED}, ()),
            ({}, (ASK,)),
            ({}, (SUSPENDED,)),
            ({}, (DENY,)),
            ({}, (ALLOW,)),
        ],
    )
    def test_nothing_is_offered_where_it_could_not_keep_its_promise(
        self, changes: dict[str, Any], rules: tuple[PolicyFacts, ...]
    ) -> None:
        assert decided(a_call(**changes), *rules).remember == ()


def test_an_ask_where_nobody_may_be_asked_is_a_deny_that_says_so() -> None:
    decision = decided(a_call(may_ask=False, risk=Risk.MONEY))
    assert (decision.effect, decision.code) == (Effect.DENY, Code.HUMAN_INPUT_REQUIRED)
    assert decision.reason == (
        "desk:refund is high-stakes (money); no policy covers it. Nobody may be asked in this run."
    )
    assert decision.remember == ()


def test_what_needs_nobody_is_decided_as_ever_where_nobody_may_be_asked() -> None:
    assert decided(a_call(may_ask=False), ALLOW).effect is Effect.ALLOW
    assert decided(a_call(may_ask=False), DENY).code is Code.DENY_RULE


def test_switching_to_autonomous_closes_only_the_gates_that_are_then_allowed() -> None:
    pending = {
        "plain": a_call(),
        "money": a_call(risk=Risk.MONEY),
        "strict": a_call(risk=Risk.STRICT),
        "asked": a_call(target="desk:send"),
        "blocked": a_call(risk=Risk.BLOCKED),
        "denied": a_call(target="desk:drop"),
    }
    rules = [a_rule(Effect.ASK, target="desk:send"), a_rule(Effect.DENY, target="desk:drop")]
    assert redecide(pending, rules, now=NOW) == {}
    switched = {key: in_mode(call, AUTONOMOUS) for key, call in pending.items()}
    assert set(redecide(switched, rules, now=NOW)) == {"plain", "money"}


def test_a_new_rule_closes_the_other_cards_that_it_covers_and_is_named() -> None:
    pending = {1: a_call(), 2: a_call(target="desk:send")}
    closed = redecide(pending, [a_rule(Effect.ALLOW, id=5)], now=NOW)
    assert {key: decision.rule_id for key, decision in closed.items()} == {1: 5}
