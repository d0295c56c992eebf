"""Many at once on one thing: exactly one wins, the others are told, and nobody waits for somebody who waits for them.

On SQLite these take their turns by the file's lock, on PostgreSQL by the rows that each service locks and in which
order; there a wrong order shows as a deadlock, which the server ends with an error within a fraction of a second.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import pytest
from django.db import connections, transaction

from approvals import decisions
from approvals.facts import Effect, Scope
from approvals.models import Policy, Source
from approvals.policies import grant
from approvals.rules import Rule
from runs import agents, control, lease, servers, turns
from runs.access import Actor
from runs.errors import LeaseLost, M3Error, ModelValidationError
from runs.models import Account, Agent, EndUser, Event, Round, Run, Server, Step, Turn, User
from runs.round_rows import Decider
from runs.run_states import Outcome
from runs.worker.deadlines import sweep

MakeRun = Callable[..., Run]
MakeRound = Callable[..., Round]
Acting = Callable[[User], Actor]

ALLOW = {"approval": {"action": "accept", "content": {"decision": "allow"}}}
DENY = {"approval": {"action": "accept", "content": {"decision": "deny"}}}
TIMES = 8
"""How often each race is run; a wrong order of locks shows in the first few."""

pytestmark = pytest.mark.django_db(transaction=True)


def at_once(*deeds: Callable[[], Any]) -> list[Any]:
    """Do all of them at the same moment, each in a thread; gives what each returned, or the refusal it raised."""
    together = threading.Barrier(len(deeds))

    def do(deed: Callable[[], Any]) -> Any:
        try:
            together.wait(20)
            return deed()
        except (M3Error, LeaseLost) as refusal:
            return refusal
        finally:
            connections.close_all()

    with ThreadPoolExecutor(len(deeds)) as pool:
        return list(pool.map(do, deeds, timeout=60))


def winners(results: Sequence[Any]) -> list[Any]:
    return [result for result in results if not isinstance(result, Exception)]


def history_is_whole(run: Run) -> bool:
    """The run's events are numbered without a gap and each follows from the one before."""
    events = list(Event.objects.filter(run=run).order_by("seq"))
    chained = all(later.previous == earlier.hash for earlier, later in pairwise(events))
    return [event.seq for event in events] == list(range(1, len(events) + 1)) and chained


def test_of_eight_answers_at_once_one_counts(
    make_round: MakeRound, alice: User, bob: User, acting: Acting
) -> None:
    for _ in range(TIMES):
        round_ = make_round()

        def answer(number: int, round_: Round = round_) -> Round:
            person, response = ((alice, ALLOW), (bob, DENY))[number % 2]
            return decisions.decide(acting(person), round_.pk, response, idempotency_key=f"key {number}")

        results = at_once(*(lambda number=number: answer(number) for number in range(8)))

        (won,) = winners(results)
        round_.refresh_from_db()
        assert (round_.outcome, round_.decided_by) == (won.outcome, won.decided_by)
        assert {error.details["decided_by"] for error in results if error is not won} == {
            won.decided_by.get_username()
        }
        assert history_is_whole(round_.run)


def test_an_answer_a_cancel_a_reply_and_a_mode_at_once_leave_one_story(
    make_round: MakeRound, alice: User, acting: Acting
) -> None:
    for _ in range(TIMES):
        round_ = make_round()
        run_id = round_.run_id

        at_once(
            lambda round_=round_: decisions.decide(acting(alice), round_.pk, ALLOW, idempotency_key="k"),
            lambda run_id=run_id: control.cancel(run_id, decider=Decider(user=alice, via="page")),
            lambda run_id=run_id: control.reply(run_id, "and then?", user=alice),
            lambda run_id=run_id: decisions.switch_mode(acting(alice), run_id, "autonomous"),
            sweep,
        )

        round_.refresh_from_db()
        ended = {Turn.objects.get(pk=round_.turn_id).outcome, round_.outcome}
        assert "cancelled" in ended  # whatever came first, the turn was cancelled
        assert history_is_whole(round_.run)


def test_a_child_that_ends_and_a_parent_that_is_cancelled_do_not_wait_for_each_other(
    make_run: MakeRun, agent: Agent, alice: User
) -> None:
    for _ in range(TIMES):
        parent = make_run()
        children = [child_of(parent, agent, number) for number in (1, 2)]
        held = [lease.claim(child.pk, f"worker {child.pk}") for child in children]

        results = at_once(
            lambda parent=parent: control.cancel(parent.pk, decider=Decider(user=alice, via="page")),
            *(
                lambda child=child, mine=mine: finish(child, mine)
                for child, mine in zip(children, held, strict=True)
            ),
            sweep,
        )

        assert not isinstance(results[0], Exception)
        for run in (parent, *children):
            run.refresh_from_db()
            assert run.status == "finished"
            assert history_is_whole(run)
        assert parent.outcome == "cancelled"


def child_of(parent: Run, agent: Agent, number: int) -> Run:
    """A run that the parent's worker started, as it is stored."""
    step = Step.objects.create(
        run=parent, turn=parent.turns.get(), seq=number, kind="run", path=f"steps.{number}", params={}
    )
    return control.create_run(agent, control.Submission(message="go"), parent_step=step)


def finish(run: Run, held: lease.Lease | None) -> None:
    """What a worker does when the run that it drives is done."""
    assert held is not None
    with transaction.atomic():
        lease.fence(held)
        fresh = Run.objects.get(pk=run.pk)
        turn = turns.current(fresh)
        assert turn is not None
        turns.finish(fresh, turn, Outcome.COMPLETED, output="done")


def test_rules_that_close_each_others_pauses_do_not_wait_for_each_other(
    make_round: MakeRound, alice: User, bob: User, acting: Acting
) -> None:
    """Both remember for the account; each rule covers what the other one is deciding at that moment."""
    for _ in range(TIMES):
        Policy.objects.all().delete()
        ours, theirs, third = make_round(), make_round(), make_round()
        remember = decisions.Remember(scope="account")

        results = at_once(
            lambda: decisions.decide(acting(alice), ours.pk, ALLOW, idempotency_key="a", remember=remember),  # noqa: B023
            lambda: decisions.decide(acting(bob), theirs.pk, ALLOW, idempotency_key="b", remember=remember),  # noqa: B023
        )

        assert len(winners(results)) >= 1
        for round_ in (ours, theirs, third):
            round_.refresh_from_db()
            assert round_.outcome == "allowed"
        assert Policy.objects.count() == 1


def test_one_rule_granted_by_many_is_one_row(
    account: Account, desk: Server, ada: User, acting: Acting
) -> None:
    rule = Rule(account=account, effect=Effect.DENY, scope=Scope.ACCOUNT, target="desk:refund")

    results = at_once(
        *(lambda: grant(acting(ada), rule, source=Source.API, confirmed=True) for _ in range(6))
    )

    assert {policy.pk for policy in winners(results)} == {Policy.objects.get().pk}


def test_an_end_user_seen_by_many_for_the_first_time_is_one_row(agent: Agent) -> None:
    submission = control.Submission(message="go", user_id="cust_1")

    results = at_once(*(lambda: control.create_run(agent, submission) for _ in range(6)))

    assert {run.end_user_id for run in winners(results)} == {EndUser.objects.get().pk}
    assert len(winners(results)) == 6


def test_replies_at_once_are_turns_one_after_the_other(make_run: MakeRun, alice: User) -> None:
    run = make_run()

    at_once(
        *(lambda number=number: control.reply(run.pk, f"reply {number}", user=alice) for number in range(6))
    )

    assert list(run.turns.values_list("index", flat=True)) == list(range(7))
    assert history_is_whole(run)


def test_a_name_is_given_once_and_the_others_are_told_so(
    account: Account, ada: User, acting: Acting, desk: Server
) -> None:
    values = agents.AgentValues(name="Twin", definition='{"steps": [{"say": "Hello."}]}')
    address = servers.ServerValues(name="twin", entry="desk")

    of_agents = at_once(*(lambda: agents.save(acting(ada), None, values) for _ in range(4)))
    of_servers = at_once(*(lambda: servers.register(acting(ada), address) for _ in range(4)))

    for results in (of_agents, of_servers):
        assert len(winners(results)) == 1
        refused = [result for result in results if isinstance(result, Exception)]
        assert all(isinstance(error, ModelValidationError) for error in refused)


def test_many_sweeps_at_once_wake_every_sleeper(make_run: MakeRun) -> None:
    asleep = [make_run() for _ in range(10)]
    Run.objects.update(seen_seq=1, wake_seq=1, next_at="2020-01-01T00:00:00Z")

    at_once(*[sweep] * 6)

    assert set(Run.objects.due(Run.objects.latest("created_at").created_at)) == set(asleep)
