"""What follows from somebody's word reaches every pause that it concerns, also one whose run a worker has in hand, and
one that is stored at the same moment."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection, transaction

from approvals import policies
from approvals.decisions import Remember, decide
from approvals.models import Policy
from runs import servers, tool_words
from runs.access import Actor, actor_for
from runs.models import Round, Server, User
from runs.risk import Risk
from runs.tool_standing import Words
from tests.services.holding import elsewhere, somebody_does, somebody_holds
from tests.services.policy_helpers import grant_as_shown, rule

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(connection.vendor != "postgresql", reason="on SQLite writers take turns"),
]
MakeRound = Callable[..., Round]

ALLOW = {"approval": {"action": "accept", "content": {"decision": "allow"}}}
DENY = {"approval": {"action": "accept", "content": {"decision": "deny"}}}


@pytest.fixture
def admin(ada: User) -> Actor:
    return actor_for(ada)


def fresh(round_: Round) -> Round:
    return Round.objects.select_related("run").get(pk=round_.pk)


def say(admin: Actor, desk: Server, risk: Risk) -> None:
    tool_words.say(admin, desk.pk, desk.tools.get(name="send_email").pk, Words(risk=risk))


def test_a_changed_risk_takes_back_a_card_whose_run_is_being_written(
    admin: Actor, desk: Server, make_round: MakeRound
) -> None:
    busy, other = make_round(), make_round()
    woken = busy.run.wake_seq
    with somebody_holds(busy.run):
        say(admin, desk, Risk.MONEY)
    for round_ in (busy, other):
        assert (fresh(round_).outcome, fresh(round_).failure_code) == ("superseded", "risk_changed")
    assert fresh(busy).run.wake_seq > woken
    assert fresh(busy).decided_by == admin.user


def test_a_card_that_is_decided_before_its_turn_comes_stays_decided(
    admin: Actor, alice: User, desk: Server, make_round: MakeRound
) -> None:
    busy = make_round()
    with somebody_holds(busy.run, lambda: decide(actor_for(alice), busy.pk, DENY, idempotency_key="k")):
        say(admin, desk, Risk.MONEY)
    assert fresh(busy).outcome == "denied"


def test_a_card_that_shows_what_counts_again_by_then_stays(
    admin: Actor, desk: Server, make_round: MakeRound
) -> None:
    busy = make_round()
    with somebody_holds(busy.run, lambda: desk.tools.filter(name="send_email").update(risk=None)):
        say(admin, desk, Risk.MONEY)
    assert fresh(busy).status == "pending"


def test_a_change_that_fails_takes_no_card_back(admin: Actor, desk: Server, make_round: MakeRound) -> None:
    busy = make_round()

    def fails() -> None:
        with transaction.atomic():
            say(admin, desk, Risk.MONEY)
            raise RuntimeError("on purpose")

    with somebody_holds(busy.run):
        with pytest.raises(RuntimeError):
            fails()
        decide(admin, busy.pk, ALLOW, idempotency_key="k")
    assert fresh(busy).outcome == "allowed"


def test_a_new_rule_closes_a_card_whose_run_is_being_written(
    admin: Actor, desk: Server, make_round: MakeRound
) -> None:
    busy, other = make_round(), make_round()
    with somebody_holds(busy.run):
        policy = grant_as_shown(admin, rule(desk.account))
    for round_ in (busy, other):
        assert fresh(round_).outcome == "allowed"
        assert fresh(round_).context["allowed_by"]["rule_id"] == policy.pk


def test_remembering_with_a_decision_closes_a_card_whose_run_is_being_written(
    alice: User, make_round: MakeRound
) -> None:
    busy, mine = make_round(), make_round()
    with somebody_holds(busy.run):
        decide(actor_for(alice), mine.pk, ALLOW, idempotency_key="k", remember=Remember(scope="account"))
    assert (fresh(busy).outcome, fresh(busy).decided_via) == ("allowed", "rule")


def test_a_rule_that_is_revoked_before_the_card_s_turn_comes_does_not_close_it(
    admin: Actor, desk: Server, make_round: MakeRound
) -> None:
    busy = make_round()

    def revoke() -> Any:
        return policies.revoke(admin, Policy.objects.get().pk)

    with somebody_holds(busy.run, revoke):
        grant_as_shown(admin, rule(desk.account))
    assert fresh(busy).status == "pending"


def test_a_card_that_is_stored_before_the_change_counts_is_taken_back_when_it_does(
    admin: Actor, desk: Server, make_round: MakeRound
) -> None:
    made: list[Round] = []
    with transaction.atomic():
        say(admin, desk, Risk.MONEY)
        elsewhere(lambda: made.append(make_round()))
    assert fresh(made[0]).outcome == "superseded"


def test_a_card_that_is_stored_before_a_rule_counts_is_closed_when_it_does(
    admin: Actor, desk: Server, make_round: MakeRound
) -> None:
    made: list[Round] = []
    with transaction.atomic():
        grant_as_shown(admin, rule(desk.account))
        elsewhere(lambda: made.append(make_round()))
    assert (fresh(made[0]).outcome, fresh(made[0]).decided_via) == ("allowed", "rule")


def test_two_admins_at_once_leave_no_card_with_a_risk_that_neither_meant(
    admin: Actor, desk: Server, make_round: MakeRound
) -> None:
    desk.tools.filter(name="send_email").update(risk="write", annotations={"destructiveHint": True})
    servers.set_trusted(admin, desk.pk, False)
    card = make_round()
    tool = desk.tools.get(name="send_email")
    # Still a write: the server is not trusted. And still a write: an admin says so.
    with somebody_does(lambda: tool_words.say(admin, desk.pk, tool.pk, Words())):
        servers.set_trusted(admin, desk.pk, True)
    tool.refresh_from_db()
    desk.refresh_from_db()
    assert tool_words.standing_of(tool, desk).risk is Risk.DESTROY
    assert fresh(card).outcome == "superseded"
