"""What an admin says about a tool counts, is traced, and reaches the calls that wait because of it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from approvals.models import Policy
from approvals.permission import Code
from runs import servers, tool_words
from runs.access import Actor, actor_for
from runs.errors import NotAllowed, NotFound
from runs.gate import Verdict
from runs.models import Round, Run, Server, Tool, ToolWord, User
from runs.risk import HIGH_STAKES, ROUTINE_TARGETS, Risk
from runs.tool_standing import Whose, Words, standing

VerdictOn = Callable[..., Verdict]
MakeRun = Callable[..., Run]
MakeRound = Callable[..., Round]


@pytest.fixture
def admin(ada: User) -> Actor:
    return actor_for(ada)


def tool_of(server: Server, name: str = "send_email") -> Tool:
    return server.tools.get(name=name)


@pytest.mark.parametrize(
    ("words", "annotations", "trusted", "tool", "expected"),
    [
        (Words(), {}, False, "x", (Risk.WRITE, Whose.NOBODY, False, Whose.NOBODY, False)),
        (Words(), {"readOnlyHint": True}, False, "x", (Risk.WRITE, Whose.NOBODY, False, Whose.NOBODY, False)),
        (Words(), {"readOnlyHint": True}, True, "x", (Risk.READ, Whose.SERVER, True, Whose.READS, True)),
        (Words(), {"idempotentHint": True}, True, "x", (Risk.WRITE, Whose.NOBODY, True, Whose.SERVER, True)),
        (
            Words(),
            {"idempotentHint": True},
            False,
            "x",
            (Risk.WRITE, Whose.NOBODY, False, Whose.NOBODY, False),
        ),
        (
            Words(risk=Risk.MONEY),
            {"readOnlyHint": True},
            True,
            "x",
            (Risk.MONEY, Whose.ADMIN, False, Whose.NOBODY, False),
        ),
        (Words(risk=Risk.READ), {}, False, "x", (Risk.READ, Whose.ADMIN, True, Whose.READS, True)),
        (
            Words(risk=Risk.READ, idempotent=False),
            {},
            False,
            "x",
            (Risk.READ, Whose.ADMIN, False, Whose.ADMIN, False),
        ),
        (
            Words(replay_allowed=True),
            {},
            False,
            "x",
            (Risk.WRITE, Whose.NOBODY, False, Whose.NOBODY, True),
        ),
        (
            Words(),
            {"readOnlyHint": True},
            True,
            "decide_value_observation",
            (Risk.STRICT, Whose.OURS, True, Whose.READS, True),
        ),
    ],
)
def test_what_counts_and_whose_word_it_is(
    words: Words,
    annotations: dict[str, bool],
    trusted: bool,
    tool: str,
    expected: tuple[Risk, Whose, bool, Whose, bool],
) -> None:
    found = standing(words, annotations, trusted=trusted, tool=tool)
    assert (found.risk, found.risk_by, found.idempotent, found.idempotent_by, found.repeated) == expected


def test_an_admin_s_word_is_stored_with_who_said_it(desk: Server, admin: Actor) -> None:
    tool = tool_of(desk)
    tool_words.say(admin, desk.pk, tool.pk, Words(risk=Risk.MONEY, idempotent=True, replay_allowed=True))
    tool_words.say(admin, desk.pk, tool.pk, Words(risk=Risk.MONEY, idempotent=True, replay_allowed=True))
    tool_words.say(admin, desk.pk, tool.pk, Words())
    assert [
        (word.risk, word.idempotent, word.replay_allowed, word.said_by_name)
        for word in ToolWord.objects.all()
    ] == [
        (None, None, False, "ada"),
        ("money", True, True, "ada"),
    ]
    assert tool_words.words_on(tool_of(desk)) == Words()
    assert tool_words.latest_words(desk)[tool.pk].risk is None


def test_only_an_admin_of_the_account_has_a_say(desk: Server, alice: User, otto: User) -> None:
    otto.memberships.update(role="admin")
    for user, refusal in ((alice, NotAllowed), (otto, NotFound)):
        with pytest.raises(refusal):
            tool_words.say(actor_for(user), desk.pk, tool_of(desk).pk, Words(risk=Risk.READ))
    assert not ToolWord.objects.exists()


def test_approvals_that_show_another_risk_are_taken_back_and_decided_anew(
    desk: Server, admin: Actor, make_round: MakeRound
) -> None:
    stale, other = make_round(), make_round(tool="desk:refund")
    woken = stale.run.wake_seq
    tool_words.say(admin, desk.pk, tool_of(desk).pk, Words(risk=Risk.MONEY))
    for round_ in (stale, other):
        round_.refresh_from_db()
        round_.run.refresh_from_db()
    assert (stale.status, stale.outcome, stale.failure_code) == ("failed", "superseded", "risk_changed")
    assert stale.failure_message == "desk:send_email counts as money now, so the call is decided anew."
    assert stale.decided_by == admin.user
    assert stale.run.wake_seq > woken
    assert stale.run.status == "running_turn"
    assert other.status == "pending", "its tool has not changed"


def test_a_word_that_changes_no_risk_leaves_waiting_approvals_alone(
    desk: Server, admin: Actor, make_round: MakeRound
) -> None:
    round_ = make_round()
    tool_words.say(admin, desk.pk, tool_of(desk).pk, Words(risk=Risk.WRITE, idempotent=True))
    round_.refresh_from_db()
    assert round_.status == "pending"


def test_trusting_a_server_decides_anew_what_its_annotations_change(
    desk: Server, admin: Actor, make_round: MakeRound
) -> None:
    servers.set_trusted(admin, desk.pk, False)
    lookup, mail = make_round(tool="desk:get_customer"), make_round()
    servers.set_trusted(admin, desk.pk, True)
    lookup.refresh_from_db()
    mail.refresh_from_db()
    assert (lookup.outcome, mail.outcome) == ("superseded", None)


@pytest.mark.parametrize("risk", sorted(HIGH_STAKES))
def test_high_stakes_ask_and_never_preselect_remember(
    desk: Server, admin: Actor, make_run: MakeRun, verdict_on: VerdictOn, risk: Risk
) -> None:
    tool_words.say(admin, desk.pk, tool_of(desk).pk, Words(risk=risk))
    verdict = verdict_on(make_run())
    assert (verdict.effect, verdict.code, verdict.remember_preselected) == ("ask", Code.HIGH_STAKES, False)
    assert verdict.remember


@pytest.mark.parametrize("target", sorted(ROUTINE_TARGETS))
def test_routine_task_setup_goes_on_without_a_stored_policy(
    desk: Server, make_run: MakeRun, verdict_on: VerdictOn, target: str
) -> None:
    verdict = verdict_on(make_run(), target)
    assert (verdict.effect, verdict.code, verdict.rule_id) == ("allow", Code.SAFE, None)
    assert not Policy.objects.exists()


def test_deciding_a_value_observation_is_strict_out_of_the_box_until_an_admin_says_otherwise(
    desk: Server, admin: Actor, make_run: MakeRun, verdict_on: VerdictOn
) -> None:
    tool = Tool.objects.create(
        server=desk, name="decide_value_observation", digest="sha256:d", annotations={"readOnlyHint": True}
    )
    target = f"desk:{tool.name}"
    assert verdict_on(make_run(mode="autonomous"), target).code == "strict"
    assert verdict_on(make_run(), target).remember == ()
    tool_words.say(admin, desk.pk, tool.pk, Words(risk=Risk.READ))
    assert verdict_on(make_run(), target).code == "safe"
