"""Many at once on what an account has beside its runs: rules, ledger, keys of requests, end users, agents, servers.

On SQLite they take turns; on PostgreSQL each of these needs a lock or a condition, and without it something is lost.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
from django.db import DatabaseError, transaction
from django.utils import timezone

from approvals import decisions, policies, renewals
from approvals.facts import Effect, Scope
from approvals.models import Policy, Source
from approvals.policies import grant
from approvals.rules import Rule
from runs import agents, audit, control, end_users, events, idempotency, races, servers, tasks
from runs.access import Actor
from runs.audit_check import check
from runs.errors import StateConflict
from runs.models import Account, Agent, EndUser, IdempotencyKey, LedgerEntry, Round, Run, Server, Turn, User
from runs.servers import ServerValues
from tests.services.test_contention import ALLOW, TIMES, at_once, history_is_whole, winners

MakeRun = Callable[..., Run]
MakeRound = Callable[..., Round]
Acting = Callable[[User], Actor]

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def allow(account: Account, desk: Server, ada: User, acting: Acting) -> Callable[[], Policy]:
    """Makes one and the same allow rule."""
    rule = Rule(account=account, effect=Effect.ALLOW, scope=Scope.ACCOUNT, target="desk:get_customer")
    return lambda: grant(acting(ada), rule, source=Source.API, confirmed=True)


def ledger_is_whole(account: Account) -> bool:
    return list(check(account)) == []


def told_of(policy_id: int, action: str) -> list[dict[str, Any]]:
    entries = LedgerEntry.objects.filter(subject=f"policy {policy_id}", action=action).order_by("seq")
    return list(entries.values_list("facts", flat=True))


def test_two_admins_who_edit_one_rule_follow_each_other(
    allow: Callable[[], Policy], account: Account, ada: User, acting: Acting
) -> None:
    for _ in range(TIMES):
        policy, end = allow(), timezone.now() + dt.timedelta(days=2)

        results = at_once(
            *(
                lambda note=note: policies.edit(acting(ada), policy.pk, expires_at=end, note=note)  # noqa: B023
                for note in ("one", "two", "three")
            )
        )

        assert len(winners(results)) == 3
        edits = told_of(policy.pk, "policy.edited")
        assert all(later["before"] == earlier["after"] for earlier, later in pairwise(edits))
        policy.refresh_from_db()
        assert policies.said(policy) == edits[-1]["after"]
        policies.revoke(acting(ada), policy.pk)
    assert ledger_is_whole(account)


def test_a_suspension_is_never_lifted_by_somebody_who_has_not_read_its_reason(
    allow: Callable[[], Policy], ada: User, acting: Acting
) -> None:
    for number in range(TIMES):
        policy = allow()
        policies.suspend(acting(ada), policy.pk, "first reason")
        seen = renewals.renewal_of(acting(ada), policy.pk)
        assert seen is not None

        renewed, suspended = at_once(
            lambda policy=policy, seen=seen: renewals.renew(acting(ada), policy.pk, seen.token),
            lambda policy=policy, number=number: policies.suspend(acting(ada), policy.pk, f"reason {number}"),
        )

        assert not isinstance(suspended, Exception)
        assert not isinstance(renewed, Exception) or isinstance(renewed, StateConflict)
        policy.refresh_from_db()
        assert policy.suspended_reason == f"reason {number}"


def test_a_rule_that_is_revoked_while_it_is_remembered_is_there_or_not_and_never_half(
    make_round: MakeRound, account: Account, alice: User, ada: User, acting: Acting
) -> None:
    for _ in range(TIMES):
        remember = decisions.Remember(scope="account")
        decisions.decide(
            acting(alice), make_round().pk, ALLOW, idempotency_key="a", remember=remember, via="api"
        )
        policy, asked = Policy.objects.get(), make_round()

        revoked, decided = at_once(
            lambda policy=policy: policies.revoke(acting(ada), policy.pk),
            lambda asked=asked, remember=remember: decisions.decide(
                acting(alice), asked.pk, ALLOW, idempotency_key="b", remember=remember
            ),
        )

        assert revoked is None
        assert not isinstance(decided, Exception)
        asked.refresh_from_db()
        assert (asked.outcome, asked.context["remembered"]["scope"]) == ("allowed", "account")
        assert {row.pk for row in Policy.objects.all()} <= {asked.context["remembered"]["rule_id"]}
        Policy.objects.all().delete()
    assert ledger_is_whole(account)


def test_of_many_requests_under_one_key_one_is_carried_out_and_all_get_its_turn(
    agent: Agent, account: Account
) -> None:
    def start() -> Turn:
        return control.create_run(agent, control.Submission(message="go")).turns.get()

    for number in range(TIMES):
        before = Run.objects.count()

        results = at_once(*(lambda: idempotency.once(account, f"key {number}", "d", start) for _ in range(6)))  # noqa: B023

        assert Run.objects.count() == before + 1
        assert len({receipt.turn.pk for receipt in results}) == 1
        assert [receipt.replayed for receipt in results].count(False) == 1
    assert not IdempotencyKey.objects.filter(turn=None).exists()


def test_the_ledger_is_one_chain_whoever_writes_in_it(account: Account, ada: User) -> None:
    def note(number: int) -> None:
        with transaction.atomic():
            audit.note(account, ada, "test.noted", f"thing {number}", {"number": number})

    for _ in range(TIMES):
        at_once(*(lambda number=number: note(number) for number in range(6)))

    entries = LedgerEntry.objects.filter(account=account, action="test.noted")
    assert entries.count() == 6 * TIMES
    assert ledger_is_whole(account)


def test_the_events_of_a_run_are_one_chain_whoever_records_them(make_run: MakeRun) -> None:
    run = make_run()

    def record(number: int) -> None:
        with transaction.atomic():
            events.record(Run.objects.get(pk=run.pk), "test.noted", {"number": number})

    for _ in range(TIMES):
        at_once(*(lambda number=number: record(number) for number in range(6)))

    assert history_is_whole(run)


def test_an_end_user_who_comes_back_by_a_run_and_by_a_profile_keeps_the_profile(
    agent: Agent, ada: User, acting: Acting
) -> None:
    for number in range(TIMES):
        user_id = f"cust_{number}"
        run = control.create_run(agent, control.Submission(message="go", user_id=user_id))
        Run.objects.filter(pk=run.pk).update(status="finished", outcome="completed")
        end_users.remove(acting(ada), user_id)

        at_once(
            lambda user_id=user_id: control.create_run(
                agent, control.Submission(message="go", user_id=user_id)
            ),
            lambda user_id=user_id: end_users.create(acting(ada), user_id, {"name": "Ann"}),
        )

        found = EndUser.objects.get(user_id=user_id)
        assert found.removed_at is None
        assert found.name in ("Ann", "")  # "" if the run came first, and the profile was then refused


def or_lost(deed: Callable[[], Any]) -> Any:
    """What a deed returned, or the error of a race that it lost; any other error is raised."""
    try:
        return deed()
    except DatabaseError as error:
        if not races.lost(error):
            raise
        return error


def test_an_end_user_who_is_removed_while_a_run_for_them_begins_leaves_no_run_of_nobody(
    agent: Agent, ada: User, acting: Acting
) -> None:
    """The check of the one may come before the row of the other; then one of them is told to try again."""
    for number in range(TIMES):
        user_id = f"cust_{number}"
        end_users.create(acting(ada), user_id, {})

        created, removed = at_once(
            lambda user_id=user_id: or_lost(
                lambda: control.create_run(agent, control.Submission(message="go", user_id=user_id))
            ),
            lambda user_id=user_id: or_lost(lambda: end_users.remove(acting(ada), user_id)),
        )

        assert [each for each in (created, removed) if isinstance(each, DatabaseError)] in (
            [],
            [created],
            [removed],
        )
        if isinstance(created, Run):
            assert Run.objects.get(pk=created.pk).end_user is not None


def test_a_page_that_saves_an_agent_leaves_what_a_program_changed_meanwhile(
    agent: Agent, ada: User, acting: Acting
) -> None:
    read_before = agents.agent_of(acting(ada), agent.pk)
    agents.change(acting(ada), agent.pk, {"metadata": {"plan": "gold"}})

    values = agents.AgentValues(name="Renamed", definition='{"steps": [{"say": "Hello."}]}')
    agents.save(acting(ada), read_before, values)

    agent.refresh_from_db()
    assert (agent.name, agent.metadata) == ("Renamed", {"plan": "gold"})


def test_whoever_edits_an_agent_and_whoever_uses_it_do_not_wait_for_each_other(
    agent: Agent, desk: Server, ada: User, acting: Acting
) -> None:
    """A new row that names an agent or a server takes a part in its lock; who edits them stays out of its way."""
    for number in range(2 * TIMES):
        results = at_once(
            lambda number=number: agents.change(acting(ada), agent.pk, {"instructions": f"text {number}"}),
            lambda: tasks.create(acting(ada), agent.pk, {"name": "t", "instructions": "go"}),
            lambda: control.create_run(agent, control.Submission(message="go")),
            lambda number=number: servers.set_trusted(acting(ada), desk.pk, bool(number % 2)),
            lambda: tasks.create(acting(ada), agent.pk, {"name": "u", "instructions": "go"}),
        )

        assert len(winners(results)) == 5


def test_a_server_that_many_programs_bring_for_the_first_time_is_one_row(
    account: Account, desk: Server
) -> None:
    for number in range(TIMES):
        values = ServerValues(name=f"own-{number}", entry="desk")

        results = at_once(*(lambda values=values: servers.put(account, values) for _ in range(4)))

        assert {server.pk for server in results} == {Server.objects.get(name=values.name).pk}
