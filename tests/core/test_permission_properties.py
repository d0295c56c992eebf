"""What no rule and no mode can bring about (R24, R30)."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from approvals.conditions import ArgumentTest, Condition, TestKind, condition_holds, exactly
from approvals.permission import CallFacts, Code, Drift, Effect, PolicyFacts, Scope, decide, in_mode
from runs.risk import Risk
from runs.run_states import PermissionMode

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
USERS = ["alice", "bob"]
TARGETS = ["desk", "desk:refund", "desk:find", "mail", "mail:send", "local:Agent"]
CALLED = ["desk:refund", "desk:find", "mail:send", "local:Agent", "local:book"]
ARGUMENTS = [{}, {"amount": 1}, {"amount": 2}, {"amount": 1, "to": "ann@example.com"}]
CONDITIONS: list[Condition] = [
    (),
    *map(exactly, ARGUMENTS),
    (ArgumentTest(path=("amount",), value=1),),
    (ArgumentTest(path=("to",), value="*@example.com", kind=TestKind.GLOB),),
    (
        ArgumentTest(path=("amount",), value=1),
        ArgumentTest(path=("to",), value="*", kind=TestKind.GLOB),
    ),
]

calls = st.builds(
    CallFacts,
    target=st.sampled_from(CALLED),
    risk=st.sampled_from(list(Risk)),
    mode=st.sampled_from(list(PermissionMode)),
    run_id=st.integers(1, 2),
    user_id=st.sampled_from([None, *USERS]),
    arguments=st.sampled_from(ARGUMENTS),
    plan_approved=st.booleans(),
    selection=st.none() | st.frozensets(st.sampled_from(TARGETS), max_size=4),
    selection_approves=st.booleans(),
    drift=st.sampled_from(list(Drift)),
    may_ask=st.booleans(),
)


def rules(effects: st.SearchStrategy[Effect]) -> st.SearchStrategy[PolicyFacts]:
    owners = st.one_of(
        st.just((Scope.ACCOUNT, None, None)),
        st.sampled_from(USERS).map(lambda user: (Scope.USER, user, None)),
        st.integers(1, 2).map(lambda run: (Scope.RUN, None, run)),
    )
    return st.builds(
        lambda owner, **facts: PolicyFacts(scope=owner[0], user_id=owner[1], run_id=owner[2], **facts),
        owner=owners,
        id=st.integers(1, 10_000),
        effect=effects,
        target=st.sampled_from(TARGETS),
        condition=st.sampled_from(CONDITIONS),
        expires_at=st.sampled_from([None, NOW - timedelta(days=1), NOW + timedelta(days=1)]),
        suspended=st.sampled_from([None, None, "the tool has changed."]),
    )


any_rule = rules(st.sampled_from(list(Effect)))
allow_rule = rules(st.just(Effect.ALLOW))
rule_lists = st.lists(any_rule, max_size=6, unique_by=lambda rule: rule.id)


@given(calls, rule_lists, st.lists(allow_rule, max_size=4))
def test_adding_allows_never_makes_a_denied_call_run(
    call: CallFacts, rules: list[PolicyFacts], allows: list[PolicyFacts]
) -> None:
    before = decide(call, rules, now=NOW)
    # A call that is denied only because nobody may be asked is one that a rule is there to allow.
    if before.effect is Effect.DENY and before.code is not Code.HUMAN_INPUT_REQUIRED:
        assert decide(call, [*rules, *allows], now=NOW) == before


@given(calls, rule_lists, st.lists(allow_rule, max_size=4))
def test_no_allow_makes_a_strict_call_run(
    call: CallFacts, rules: list[PolicyFacts], allows: list[PolicyFacts]
) -> None:
    strict = replace(call, risk=Risk.STRICT)
    assert decide(strict, [*rules, *allows], now=NOW).effect is not Effect.ALLOW


@given(calls, rule_lists, st.lists(allow_rule, max_size=4), st.sampled_from([Effect.ASK, Effect.DENY]))
def test_no_allow_beats_an_ask_or_deny_rule_however_specific_it_is(
    call: CallFacts, rules: list[PolicyFacts], allows: list[PolicyFacts], effect: Effect
) -> None:
    server = call.target.partition(":")[0]
    rule = PolicyFacts(id=20_000, effect=effect, scope=Scope.ACCOUNT, target=server)
    before = decide(call, [*rules, rule], now=NOW)
    assert before.effect is not Effect.ALLOW
    assert decide(call, [*rules, rule, *allows], now=NOW) == before


@given(calls, rule_lists, allow_rule)
def test_an_allow_of_one_user_never_decides_for_another_or_for_the_account(
    call: CallFacts, rules: list[PolicyFacts], allow: PolicyFacts
) -> None:
    stranger = next(user for user in USERS if user != call.user_id)
    theirs = replace(allow, scope=Scope.USER, user_id=stranger, run_id=None)
    assert decide(call, [*rules, theirs], now=NOW) == decide(call, rules, now=NOW)


@given(calls, rule_lists, allow_rule, st.sampled_from(USERS))
def test_an_allow_of_the_account_never_decides_for_a_user(
    call: CallFacts, rules: list[PolicyFacts], allow: PolicyFacts, user: str
) -> None:
    mine = replace(call, user_id=user)
    accounts = replace(allow, scope=Scope.ACCOUNT, user_id=None, run_id=None)
    assert decide(mine, [*rules, accounts], now=NOW) == decide(mine, rules, now=NOW)


@given(calls, rule_lists, allow_rule)
def test_what_one_run_remembers_never_decides_for_another(
    call: CallFacts, rules: list[PolicyFacts], allow: PolicyFacts
) -> None:
    elsewhere = replace(allow, scope=Scope.RUN, user_id=None, run_id=call.run_id + 1)
    assert decide(call, [*rules, elsewhere], now=NOW) == decide(call, rules, now=NOW)


@given(calls, rule_lists)
def test_autonomous_never_overrides_a_block_a_deny_a_strict_tool_or_an_ask(
    call: CallFacts, rules: list[PolicyFacts]
) -> None:
    autonomous = in_mode(call, PermissionMode.AUTONOMOUS)
    asked = decide(replace(autonomous, mode=PermissionMode.APPROVAL), rules, now=NOW)
    held = {
        Code.NOT_SELECTED,
        Code.REMOVED,
        Code.BLOCKED,
        Code.DENY_RULE,
        Code.STRICT,
        Code.CHANGED,
        Code.ASK_RULE,
    }
    decision = decide(autonomous, rules, now=NOW)
    if asked.code in held:
        assert decision == asked
    elif asked.code is not Code.HUMAN_INPUT_REQUIRED:
        assert (decision.effect, decision.code) == (Effect.ALLOW, Code.AUTONOMOUS)


@given(calls, rule_lists, st.randoms())
def test_the_order_of_the_rules_never_matters(
    call: CallFacts, rules: list[PolicyFacts], random: Random
) -> None:
    shuffled = list(rules)
    random.shuffle(shuffled)
    assert decide(call, shuffled, now=NOW) == decide(call, rules, now=NOW)


@given(calls, rule_lists)
def test_every_decision_has_a_sentence_and_offers_only_what_fits_the_run(
    call: CallFacts, rules: list[PolicyFacts]
) -> None:
    decision = decide(call, rules, now=NOW)
    assert decision.reason.endswith(".")
    assert len(decision.reason) < 200
    assert decision.effect is Effect.ASK or not decision.remember
    assert not (decision.remember_preselected and not decision.remember)
    if call.user_id is not None:
        assert Scope.ACCOUNT not in decision.remember
    else:
        assert Scope.USER not in decision.remember
    if call.risk is Risk.STRICT:
        assert decision.remember == ()


@given(calls, rule_lists)
def test_a_remembered_allow_makes_the_same_call_run_next_time(
    call: CallFacts, rules: list[PolicyFacts]
) -> None:
    decision = decide(call, rules, now=NOW)
    for scope in decision.remember:
        remembered = PolicyFacts(
            id=20_000,
            effect=Effect.ALLOW,
            scope=scope,
            target=call.target,
            user_id=call.user_id if scope is Scope.USER else None,
            run_id=call.run_id if scope is Scope.RUN else None,
        )
        assert decide(call, [*rules, remembered], now=NOW).effect is Effect.ALLOW
        just_this = replace(remembered, condition=exactly(call.arguments))
        assert decide(call, [*rules, just_this], now=NOW).effect is Effect.ALLOW


@given(calls, rule_lists, any_rule)
def test_a_rule_never_decides_about_a_call_whose_arguments_do_not_fit_its_condition(
    call: CallFacts, rules: list[PolicyFacts], rule: PolicyFacts
) -> None:
    if not condition_holds(rule.condition, call.arguments):
        assert decide(call, [*rules, rule], now=NOW) == decide(call, rules, now=NOW)


@given(calls, rule_lists, allow_rule)
def test_a_condition_on_an_allow_never_lets_more_run_than_the_allow_without_it(
    call: CallFacts, rules: list[PolicyFacts], allow: PolicyFacts
) -> None:
    plain = replace(allow, id=20_000, condition=())
    narrower = replace(allow, id=20_000)
    # A suspended rule asks about what it covers, so the wider one asks about more.
    if allow.suspended is None and decide(call, [*rules, narrower], now=NOW).effect is Effect.ALLOW:
        assert decide(call, [*rules, plain], now=NOW).effect is Effect.ALLOW


@given(calls, rule_lists, allow_rule)
def test_a_suspended_allow_never_lets_a_call_run_that_would_not_run_without_it(
    call: CallFacts, rules: list[PolicyFacts], allow: PolicyFacts
) -> None:
    suspended = replace(allow, id=20_000, suspended="an admin said so.")
    if decide(call, [*rules, suspended], now=NOW).effect is Effect.ALLOW:
        assert decide(call, rules, now=NOW).effect is Effect.ALLOW


@given(calls, rule_lists)
def test_where_nobody_may_be_asked_nothing_ever_asks(call: CallFacts, rules: list[PolicyFacts]) -> None:
    assert decide(replace(call, may_ask=False), rules, now=NOW).effect is not Effect.ASK
